"""What goes on behind the panels of a workbench: capture, plans, searches, runs. No widget and no browser."""

from widgets.session.session import Session

__all__ = ["Session"]
