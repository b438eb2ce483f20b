"""`planner selftest`."""

from planner.cli.selftest.selftest_command import command

__all__ = ["command"]
