"""The command line: a thin layer over the Python functions."""

from planner.cli.main import main, run_command
from planner.cli.output import examples

__all__ = ["examples", "main", "run_command"]
