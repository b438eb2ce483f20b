"""What is left of a workbench where no kernel answers: a page that is a file of its own, and a still picture."""

from widgets.static.page import page_text, save_html
from widgets.static.still import picture, still_html, still_text

__all__ = ["page_text", "picture", "save_html", "still_html", "still_text"]
