"""A workbench without a kernel: a standalone HTML page and a static picture."""

from widgets.fallback.fallback_view import fallback_html, fallback_text, fallback_view
from widgets.fallback.saved_page import page_text, save_page

__all__ = ["fallback_html", "fallback_text", "fallback_view", "page_text", "save_page"]
