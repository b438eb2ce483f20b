"""The static form of a panel where widgets do not work: on GitHub, in an export, or without a kernel.

It has a light background of its own, no script, and is readable as plain text.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape

from planner.units import bytes_label, several
from widgets.fallback.fallback_svg import WIDTH, draw
from widgets.fallback.header_summary import get_answers
from widgets.figures import FONT, LIGHT
from widgets.messages import Message

_CARD = (
    f"max-width:{WIDTH}px;padding:12px 16px;border:1px solid {LIGHT.line};border-radius:6px;background:{LIGHT.paper};"
    f"color:{LIGHT.ink};font:12px/17px {escape(FONT)};text-align:left"
)
_TABLE = "width:100%;margin:10px 0 6px;border-collapse:collapse;table-layout:fixed;border:0;font-size:12px"
_CELL = f"padding:0 12px 0 0;border:0;background:{LIGHT.paper};text-align:left;vertical-align:top;white-space:normal"
_MORE = "A still picture of the workbench: run the cell to look closer."


def fallback_view(messages: Sequence[Message]) -> dict[str, str]:
    """The messages as HTML and as plain text, by MIME type."""
    return {"text/html": fallback_html(messages), "text/plain": fallback_text(messages)}


def fallback_html(messages: Sequence[Message]) -> str:
    """The messages as HTML without script."""
    known = {each.kind: each for each in messages}
    title, phrases = _head(known)
    parts = [f'<b style="font-size:15px">{escape(title)}</b>&ensp;{escape(" · ".join(phrases))}']
    answers = get_answers(known)
    if answers:
        cells = "".join(
            f'<td style="{_CELL}"><span style="color:{LIGHT.second}">{escape(each.question)}</span><br>'
            f'<b style="font-size:14px">{escape(each.head)}</b><br>{escape(each.rest)}</td>'
            for each in answers
        )
        row = f'<tr style="background:{LIGHT.paper}">{cells}</tr>'
        parts.append(f'<table style="{_TABLE}"><tbody>{row}</tbody></table>')
    if "plan" in known:
        drawing = base64.b64encode(draw(known["graph"], known["plan"]).encode()).decode()
        said = escape(" ".join(_summaries(known)), quote=True)
        parts.append(
            f'<img alt="{said}" width="{WIDTH}" style="max-width:100%;height:auto" '
            f'src="data:image/svg+xml;base64,{drawing}">'
        )
    sentences = [*_summaries(known), _MORE]
    parts.append(f'<p style="margin:6px 0 0;color:{LIGHT.second}">{escape(" ".join(sentences))}</p>')
    return f'<div style="{_CARD}">{"".join(parts)}</div>'


def fallback_text(messages: Sequence[Message]) -> str:
    """The messages as plain text."""
    known = {each.kind: each for each in messages}
    title, phrases = _head(known)
    answers = [f"{each.question} {each.head}: {each.rest}" for each in get_answers(known)]
    return "\n".join([" · ".join([title, *phrases]), *answers, *_summaries(known)])


def _head(known: dict[str, Message]) -> tuple[str, list[str]]:
    """The title, and facts about the step."""
    if "graph" not in known:
        for kind, key in (("refused", "title"), ("loading", "name")):
            if kind in known:
                return str(known[kind].content[key]), ["" if kind == "refused" else "being captured"]
        return "Stowage", ["no step yet"]
    graph = known["graph"].content
    ops = {name: length for name, _, length in graph["columns"]}["op_target"]
    phrases = [*graph["facts"], several(ops, "op"), f"step peak {bytes_label(graph['step_peak_bytes'])}"]
    if "machine" in known:
        phrases.append(str(known["machine"].content["label"]))
    if "budget" in known:
        phrases.append(f"budget {bytes_label(known['budget'].content['budget_bytes'])}")
    return str(graph["name"]), phrases


def _summaries(known: dict[str, Message]) -> list[str]:
    if "refused" in known and "graph" not in known:
        return [str(known["refused"].content["sentence"])]
    if "plan" not in known:
        return []
    plan = known["plan"].content
    return [str(plan[key]) for key in ("summary", "memory_summary", "streams_summary")]
