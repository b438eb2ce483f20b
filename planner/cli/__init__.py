"""The command line: a thin layer over the Python functions."""

from planner.cli.main import main, run_command

__all__ = ["main", "run_command"]
