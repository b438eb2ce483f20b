"""Stopping a run from another thread."""
