"""`planner snapshot`."""

from planner.cli.snapshot.snapshot_command import command

__all__ = ["command"]
