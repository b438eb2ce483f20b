"""Plots that follow a search or run in the background."""
