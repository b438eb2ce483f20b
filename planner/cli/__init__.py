"""The command line: a thin layer over the Python functions."""

from planner.cli.main import main

__all__ = ["main"]
