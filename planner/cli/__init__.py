"""The command line: the same functions, thin."""

from planner.cli.main import main

__all__ = ["main"]
