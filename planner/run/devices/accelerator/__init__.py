"""Attached accelerators as devices."""
