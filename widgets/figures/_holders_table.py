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
    rows = [_row(holder, theme) for holder in info.holders]
    if len(rows) > _MOST_ROWS:
        rest = info.holders[_MOST_ROWS - 1 :]
        label = f'<span style="color:{theme.third}">{several(len(rest), "smaller group")}</span>'
        rows[_MOST_ROWS - 1 :] = [Row(label, 0, bytes_label(sum(holder.bytes for holder in rest)), theme.third)]
    when = f"at {format_seconds(info.peak_at)}" if info.axis == "seconds" else f"at op {info.peak_at:,.0f}"
    note = f'<span style="color:{theme.third}">{bytes_label(info.peak_bytes)} {when}</span>'
    return Table(f"<b>Who holds the peak</b>&nbsp; {note}", rows, max((row.value for row in rows), default=0))


def _row(holder: Holder, theme: Theme) -> Row:
    square = f'<span style="color:{theme.kinds[holder.group]}">\N{BLACK SQUARE}</span>'
    what = f'<span style="color:{theme.third};font-size:10px">{holder.group.value}, {holder.storages}</span>'
    hover = f"{several(holder.storages, 'storage')}, {holder.group.value}<br>{several(holder.bytes, 'byte')}"
    return Row(
        f"{square}&nbsp; {escape(shorten(holder.name, _NAME_LETTERS))}<br>{_INDENT}{what}", holder.bytes,
        bytes_label(holder.bytes),
        theme.kinds[holder.group], f"<b>{escape(holder.name)}</b><br>{hover}",
    )  # fmt: skip
