"""The script and the style sheet that a browser loads."""

from widgets.page.bundle import packed_script, script, style
from widgets.page.panel_names import EVERY_PANEL

__all__ = ["EVERY_PANEL", "packed_script", "script", "style"]
