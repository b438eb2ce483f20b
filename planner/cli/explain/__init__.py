"""`planner explain`."""

from planner.cli.explain.explain_command import command

__all__ = ["command"]
