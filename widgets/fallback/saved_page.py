"""A workbench as one HTML file with script, style and messages, without any network access."""

from __future__ import annotations

import base64
import gzip
import html
import json
import re
import struct
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from planner.errors import StowageError
from planner.files import write_text
from widgets.fallback.fallback_view import fallback_html
from widgets.messages import Message, at_rest
from widgets.page import EVERY_PANEL, script, style

_HERE = Path(__file__).parent
#: Forbids every fetch, whatever a model's names contain; images made by the page itself are allowed.
_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title} in Stowage</title>
<link rel="icon" href="data:,">
<style>
{style}
</style>
</head>
<body>
<header class="page-head">
<h1>Stowage</h1>
<p>A saved workbench: look, point and zoom; planning and running need a notebook.</p>
<button type="button" id="theme">Dark</button>
</header>
<main id="stowage"><noscript>{still}</noscript></main>
<script type="application/octet-stream" id="messages">{messages}</script>
<script type="module">
{script}
</script>
</body>
</html>
"""


def save_page(messages: Sequence[Message], path: str | Path, panels: Sequence[str] = EVERY_PANEL) -> None:
    """Write the HTML page of `page_text` to a file, atomically.

    Args:
        messages, panels: as in `page_text`.
        path: the file to write.

    Raises:
        StowageError: no message is a graph, or the file cannot be written.
    """
    write_text(path, page_text(messages, panels))


def page_text(
    messages: Sequence[Message], panels: Sequence[str] = EVERY_PANEL, shown: Mapping[str, Any] | None = None
) -> str:
    """The HTML of a page that shows the given messages.

    Args:
        messages: one of them must be a graph.
        panels: names of the panels, as in the trait `panels` of a widget.
        shown: what of it a view shows, with which the page opens, as `core/shown_part.js` has it; None for the whole.

    Raises:
        StowageError: no message is a graph.
    """
    graph = next((each for each in messages if each.kind == "graph"), None)
    if graph is None:
        raise StowageError("there is nothing to save yet: wait until the step is captured")
    return _PAGE.format(
        policy=_POLICY, title=html.escape(str(graph.content["name"])), style=f"{style()}\n{_part('saved_page.css')}",
        still=fallback_html(messages), messages=_packed(at_rest(messages, "saved"), panels, shown), script=_script(),
    )  # fmt: skip


def _packed(messages: Sequence[Message], panels: Sequence[str], shown: Mapping[str, Any] | None) -> str:
    """All messages in one compressed, base64-encoded block: the length of the head, the head, and all buffers."""
    head: dict[str, Any] = {
        "panels": list(panels),
        "shown": shown,
        "messages": [[each.content, [len(buffer) for buffer in each.buffers]] for each in messages],
    }
    text = json.dumps(head, separators=(",", ":"), allow_nan=False).encode()
    data = b"".join([struct.pack("<I", len(text)), text, *(buffer for each in messages for buffer in each.buffers)])
    return base64.b64encode(gzip.compress(data, mtime=0)).decode()


@cache
def _script() -> str:
    """The script of the page; sequences in its strings that would end or open a script element are escaped."""
    return re.sub(r"<(?=/script|!--)", r"<\\", script("saved_page"))


def _part(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")
