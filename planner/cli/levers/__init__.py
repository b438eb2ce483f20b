"""`planner levers`."""

from planner.cli.levers.levers_command import command

__all__ = ["command"]
