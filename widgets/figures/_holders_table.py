"""The holders of the peak, as rows under the stack."""

from __future__ import annotations

from planner.units import bytes_label, format_seconds, several
from widgets.figures._bar_rows import Row, Table
from widgets.figures.theme import Theme, escape, shorten
from widgets.info import Holder, MemoryByKind, PeakHolders

_MOST_ROWS = 8
_NAME_LETTERS = 22
#: As wide as the square before a name.
_INDENT = "&nbsp;" * 5


def holders_table(info: MemoryByKind | PeakHolders, theme: Theme) -> Table:
    """A table of the largest holders, and the rest in one row."""
    shown = info.holders if len(info.holders) <= _MOST_ROWS else info.holders[: _MOST_ROWS - 1]
    rows = [row for holder in shown for row in (_row(holder, theme), *(_row(part, theme, 1) for part in holder.parts))]
    if rest := info.holders[len(shown) :]:
        what = "line" if isinstance(info, PeakHolders) and info.by == "line" else "group"
        label = f'<span style="color:{theme.third}">{several(len(rest), f"smaller {what}")}</span>'
        rows.append(Row(label, 0, bytes_label(sum(holder.bytes for holder in rest)), theme.third))
    when = f"at {format_seconds(info.peak_at)}" if info.axis == "seconds" else f"at op {info.peak_at:,.0f}"
    note = f'<span style="color:{theme.third}">{bytes_label(info.peak_bytes)} {when}</span>'
    return Table(f"<b>Who holds the peak</b>&nbsp; {note}", rows, max((row.value for row in rows), default=0))


def _row(holder: Holder, theme: Theme, depth: int = 0) -> Row:
    """A row; a part of a holder is below it, indented and with a fainter amount, for the sum has it too."""
    indent, groups = _INDENT * depth, (holder.group, *holder.more_groups)
    square = f'<span style="color:{theme.kinds[holder.group]}">\N{BLACK SQUARE}</span>'
    kind = holder.group.value + (" and others" if holder.more_groups else "")
    what = f'<span style="color:{theme.third};font-size:10px">{kind}, {holder.storages}</span>'
    more = holder.storages - len(holder.tensors)
    named = escape(", ".join(holder.tensors)) + (f" and {more:,} more" if more else "")
    hover = f"{several(holder.storages, 'storage')}, {', '.join(group.value for group in groups)}"
    name, size = escape(shorten(holder.name, _NAME_LETTERS)), bytes_label(holder.bytes)
    return Row(
        f"{indent}{square}&nbsp; {name}<br>{indent}{_INDENT}{what}", holder.bytes,
        f'<span style="color:{theme.third}">{size}</span>' if depth else size,
        theme.kinds[holder.group],
        f"<b>{escape(holder.name)}</b><br>{hover}<br>{several(holder.bytes, 'byte')}<br>{named}",
    )  # fmt: skip
