"""Processes that begin with everything imported: forked from one that the tests of a session share.

A program that uses Stowage imports for three seconds before it does anything. Tests that need a process of their own,
and do not show how one starts, take it from here: `command` says how, and kernels of notebooks come by themselves.
"""

from tests.preloaded.session import begin, command, end

__all__ = ["begin", "command", "end"]
