"""Save workbenches as files."""

from __future__ import annotations

from pathlib import Path

from widgets.fallback import save_page
from widgets.panels.panel import Panel
from widgets.session import Session


def save_html(source: Session | Panel, path: str | Path) -> None:
    """Save the current state of a workbench, a panel or a session as one HTML file that needs no network.

    Blocks until the capture has ended and the first plan is known.

    Args:
        source: the session or panel to save; a panel is saved alone.
        path: the file, written atomically.

    Raises:
        StowageError: the step cannot be captured, or the file cannot be written.
    """
    if isinstance(source, Panel):
        source.save(path)
    else:
        _ = source.plan
        save_page(source.messages(), path)
