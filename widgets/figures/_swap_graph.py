"""The host beside the modules, and what a plan moves there and back."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING

from widgets.figures.theme import Theme
from widgets.info.module_graph import ModuleGraph
from widgets.info.units import bytes_text, count_text

if TYPE_CHECKING:
    from graphviz import Digraph

UP, DOWN = "\N{UPWARDS ARROW}", "\N{DOWNWARDS ARROW}"
#: Less than this share of all that is moved is told at the host and not drawn.
_WORTH = 0.01


def moved(info: ModuleGraph) -> dict[int, tuple[int, int]]:
    """By box, bytes of its own that leave for the host, and bytes that come back because it needs them.

    The box -1 stands for what no box owns or needs.
    """
    sums: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    for swap in info.swaps:
        sums[swap.source][0] += swap.out_bytes
        sums[swap.target][1] += swap.in_bytes
    return {box: (out, into) for box, (out, into) in sorted(sums.items())}


def move_text(out: int, into: int) -> str:
    """`↑ 1.20 GiB  ↓ 0.40 GiB`, without what is nothing."""
    parts = [f"{sign}\N{NO-BREAK SPACE}{bytes_text(size)}" for sign, size in ((UP, out), (DOWN, into)) if size]
    return "\N{NO-BREAK SPACE}\N{NO-BREAK SPACE}".join(parts)


def draw_host(graph: Digraph, info: ModuleGraph, theme: Theme) -> None:
    """Add the host to a drawing with boxes `b0`, `b1`, ...: a column with an entry beside each that moves much."""
    sums = moved(info)
    least = _WORTH * max(info.out_bytes, info.in_bytes)
    drawn = {box: pair for box, pair in sums.items() if box >= 0 and max(pair) >= least and not info.boxes[box].opened}
    rest = [sum(pair[way] for box, pair in sums.items() if box not in drawn) for way in (0, 1)]
    title = f"<B>Host memory</B><BR/>{move_text(info.out_bytes, info.in_bytes)}"
    if any(rest):
        title += f'<BR/><FONT COLOR="{theme.third}">of it elsewhere {move_text(*rest)}</FONT>'
    graph.attr(newrank="true")  # so that an entry of one cluster can be level with a box of another
    with graph.subgraph(name="clusterhost") as host:
        host.attr(
            label=f"<{title}>", labeljust="c", fontsize="10", margin="9", style="filled,dashed", color=theme.second,
            fillcolor=theme.sunken,
        )  # fmt: skip
        for box, pair in drawn.items():
            host.node(
                f"h{box}", label=f"{move_text(*pair)}\\l", width="1.9", fillcolor=theme.sunken, penwidth="0",
                fontcolor=theme.second,
            )  # fmt: skip
        for above, below in pairwise(drawn):
            host.edge(f"h{above}", f"h{below}", style="invis")
    for box, (out, into) in drawn.items():
        with graph.subgraph() as level:
            level.attr(rank="same")
            level.node(f"b{box}")
            level.node(f"h{box}")
        way = "both" if out and into else "forward" if out else "back"
        graph.edge(f"b{box}", f"h{box}", style="dashed", dir=way, color=theme.second, tooltip=_said(info, box))


def _said(info: ModuleGraph, box: int) -> str:
    """Where what leaves a box goes, and where what it needs comes from."""
    lines = [
        f"{_label(info, swap.source)}: {count_text(swap.storages, 'tensor')}, "
        f"{move_text(swap.out_bytes, swap.in_bytes)}, next in {_label(info, swap.target)}"
        for swap in info.swaps
        if box in (swap.source, swap.target)
    ]
    return "\n".join(lines)


def _label(info: ModuleGraph, box: int) -> str:
    if box < 0:
        return "nothing"
    paths = info.boxes[box].paths
    return paths[0] if len(paths) == 1 else f"{paths[0]} to {paths[-1]}" if paths else info.boxes[box].label
