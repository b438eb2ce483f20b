"""`planner compare`."""

from planner.cli.compare.compare_command import command

__all__ = ["command"]
