"""`planner fit`."""

from planner.cli.fit.fit_command import command

__all__ = ["command"]
