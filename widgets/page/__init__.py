"""The script and the style sheet that a browser loads."""

from widgets.page.bundle import script, style

__all__ = ["script", "style"]
