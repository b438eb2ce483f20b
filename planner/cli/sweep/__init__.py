"""`planner sweep`."""

from planner.cli.sweep.sweep_command import command

__all__ = ["command"]
