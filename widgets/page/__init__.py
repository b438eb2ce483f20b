"""The script and the style sheet that a browser loads."""

from widgets.page.bundle import script, style
from widgets.page.panel_names import EVERY_PANEL

__all__ = ["EVERY_PANEL", "script", "style"]
