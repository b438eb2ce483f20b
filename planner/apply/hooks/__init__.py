"""Hooks of autograd that follow a schedule."""
