"""Block map of a tensor: which rectangle of it each worker has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.units import bytes_label, several
from widgets.figures.frame import framed, plotly, value_axis
from widgets.figures.theme import Theme, escape, mixed
from widgets.info import TensorBlock, TensorBlocks

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_HEIGHT, _FOOT = 300, 34
#: Worker numbers that are written into a block; of more, only how many there are.
_MOST_NUMBERS = 8


def draw(info: TensorBlocks, theme: Theme) -> Figure:
    """Draw the blocks, the darker the higher the number of their first worker."""
    figure = framed(theme, "Blocks", info.name, info.summary, _HEIGHT + _FOOT)
    rows, columns = info.sizes
    figure.update_layout(
        barmode="overlay", uniformtext={"mode": "hide", "minsize": 10},
        xaxis=_axis(info, theme, 1, [0, columns]), yaxis=_axis(info, theme, 0, [rows, 0]),
    )  # fmt: skip
    colour, high = theme.kinds[info.group], max(info.workers - 1, 1)
    shades = [0.15 + 0.7 * block.workers[0] / high for block in info.blocks]
    figure.add_trace(
        plotly().Bar(
            x=[sum(block.columns) / 2 for block in info.blocks],
            width=[block.columns[1] - block.columns[0] for block in info.blocks],
            base=[block.rows[0] for block in info.blocks],
            y=[block.rows[1] - block.rows[0] for block in info.blocks],
            name="blocks", text=[_numbers(block) for block in info.blocks],
            textposition="inside", insidetextanchor="middle", textangle=0,
            textfont={
                "size": 12, "color": [theme.on_kinds[info.group] if shade > 0.6 else theme.ink for shade in shades]
            },
            marker={
                "color": [mixed(theme.paper, colour, shade) for shade in shades],
                "line": {"color": theme.paper, "width": 1},
            },
            hovertext=[_hover(info, block) for block in info.blocks], hoverinfo="text",
        )
    )  # fmt: skip
    return figure


def _axis(info: TensorBlocks, theme: Theme, place: int, ends: list[int]) -> dict[str, object]:
    """An axis of indices, from top to bottom or from left to right."""
    dimension, size = info.axes[place], info.sizes[place]
    text = f"dimension {dimension} ({info.shape[dimension]:,})" if dimension >= 0 else ""
    return value_axis(
        theme, range=ends, nticks=6, fixedrange=True, showgrid=False, showticklabels=dimension >= 0,
        minallowed=0, maxallowed=size, tickformat=",d",
        title={"text": text, "font": {"size": 11, "color": theme.third}, "standoff": 6},
    )  # fmt: skip


def _numbers(block: TensorBlock) -> str:
    if len(block.workers) > _MOST_NUMBERS:
        return several(len(block.workers), "worker")
    return ", ".join(map(str, block.workers))


def _hover(info: TensorBlocks, block: TensorBlock) -> str:
    drawn = (block.rows[1] - block.rows[0]) * (block.columns[1] - block.columns[0])
    size = info.bytes * drawn / (info.whole[0] * info.whole[1])
    rows, columns = (f"{first:,} to {stop - 1:,}" for first, stop in (block.rows, block.columns))
    down, right = info.axes
    lines = [f"<b>{escape(info.name)}</b>", f"{'worker' if len(block.workers) == 1 else 'workers'} {_list(block)}"]
    lines += [f"dimension {axis}: {span}" for axis, span in ((down, rows), (right, columns)) if axis >= 0]
    return "<br>".join([*lines, f"{bytes_label(size)} of {bytes_label(info.bytes)}"])


def _list(block: TensorBlock) -> str:
    numbers = ", ".join(map(str, block.workers[:16]))
    return numbers if len(block.workers) <= 16 else f"{numbers}, …"
