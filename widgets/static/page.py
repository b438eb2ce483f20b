"""A workbench as one HTML file: the script, the style and the messages of a notebook, and nothing from a network."""

from __future__ import annotations

import base64
import gzip
import html
import json
import re
import struct
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.errors import StowageError
from planner.files import write_text
from widgets.canvas.bundle import script, style
from widgets.canvas.columns import Message
from widgets.static.still import still_html

if TYPE_CHECKING:
    from widgets.canvas.panel import Panel
    from widgets.session import Session

EVERY_PANEL = ("header", "graph", "memory", "holders", "streams", "selection", "search", "run")

_HERE = Path(__file__).parent
#: Nothing may be fetched, whatever a model's names may hold; pictures that the page itself makes may be shown.
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
<p>Saved from a notebook: look, point and zoom; planning and running need the notebook.</p>
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


def save_html(source: Session | Panel, path: str | Path) -> None:
    """Save what is known by now of a workbench, a panel or a session as one HTML file that needs no network.

    Waits for the capture and for the first plan.

    Args:
        source: what to save; a panel is saved alone.
        path: the file to write, whole or not at all.

    Raises:
        StowageError: the step cannot be captured, or the file cannot be written.
    """
    session: Session = getattr(source, "session", source)
    _ = session.plan
    write_text(path, page_text(session.messages(), tuple(getattr(source, "panels", EVERY_PANEL))))


def page_text(messages: Sequence[Message], panels: Sequence[str] = EVERY_PANEL) -> str:
    """The HTML of a page that shows some messages.

    Args:
        messages: with a graph among them.
        panels: by name, as a widget's trait has them.

    Raises:
        StowageError: there is no graph.
    """
    graph = next((each for each in messages if each.kind == "graph"), None)
    if graph is None:
        raise StowageError("there is nothing to save yet: wait until the step is captured")
    return _PAGE.format(
        policy=_POLICY, title=html.escape(str(graph.content["name"])), style=f"{style()}\n{_part('page.css')}",
        still=still_html(messages), messages=_packed(_rested(messages), panels), script=_script(),
    )  # fmt: skip


def _packed(messages: Sequence[Message], panels: Sequence[str]) -> str:
    """All messages in one: the length of the head, the head, and all buffers; compressed."""
    head: dict[str, Any] = {
        "panels": list(panels),
        "messages": [[each.content, [len(buffer) for buffer in each.buffers]] for each in messages],
    }
    text = json.dumps(head, separators=(",", ":"), allow_nan=False).encode()
    data = b"".join([struct.pack("<I", len(text)), text, *(buffer for each in messages for buffer in each.buffers)])
    return base64.b64encode(gzip.compress(data, mtime=0)).decode()


@cache
def _script() -> str:
    """The script of the page; what would end or open a script element, in strings of it, is said with a backslash."""
    return re.sub(r"<(?=/script|!--)", r"<\\", script("page"))


def _part(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def _rested(messages: Sequence[Message]) -> list[Message]:
    """Messages as they are where nothing goes on any more."""
    plan = next((each.content for each in messages if each.kind == "plan"), None)
    rested = []
    for each in messages:
        content, state = dict(each.content), each.content.get("state")
        if each.kind == "search" and state == "running":
            content |= {"state": "paused", "doing": "", "sentence": "The page was saved while this search went on."}
        elif each.kind == "run" and state in ("planning", "running"):
            content |= {"state": "cancelled" if content["step_seconds"] else "empty", "doing": ""}
            content["sentence"] = "The page was saved while this run went on."
        elif each.kind == "budget" and state == "planning":
            fits = plan is not None and not plan["stand_in"] and plan["budget_bytes"] == content["budget_bytes"]
            content |= {"state": "planned" if fits else "none", "doing": ""}
            content["sentence"] = "" if fits else "The page was saved before there was a plan."
        elif each.kind == "front":
            content |= {"doing": "", "share": None}
        rested.append(Message(content, each.buffers))
    return rested
