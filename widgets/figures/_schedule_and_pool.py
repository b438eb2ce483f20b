"""Four small timelines below each other: two schedules in one pool, and the same two in another."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from planner.graph import Phase
from planner.swap import Case, Span
from widgets.figures.frame import SQUARE, add_key, framed, plotly, tag, value_axis
from widgets.figures.theme import Theme
from widgets.info import Group, ScheduleAndPool

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_LANES = {"compute": 2, "out": 1, "in": 0}
#: Pixels of a timeline with its caption, of the timeline alone, and of the axis.
_CASE, _LANES_HEIGHT, _FOOT = 138, 72, 24
_THICK = 0.78


def draw(info: ScheduleAndPool, theme: Theme) -> Figure:
    """Draw the four cases."""
    figure = framed(theme, "The best schedule depends on the pool", "", info.summary, _CASE * len(info.cases) + _FOOT)
    figure.update_layout(barmode="overlay")
    for number, case in enumerate(info.cases):
        _draw_case(figure, case, info, theme, number)
    entries = [
        ("op", theme.phases[Phase.BACKWARD], SQUARE), ("parameter copied", theme.kinds[Group.PARAMETER], SQUARE),
        ("activation copied", theme.kinds[Group.ACTIVATION], SQUARE), ("compute waits", theme.limit, SQUARE),
    ]  # fmt: skip
    add_key(figure, theme, entries)
    return figure


def _draw_case(figure: Figure, case: Case, info: ScheduleAndPool, theme: Theme, number: int) -> None:
    height = _CASE * len(info.cases)
    floor = 1 - (_CASE * (number + 1) - 30) / height
    roof = floor + _LANES_HEIGHT / height
    suffix = "" if number == 0 else str(number + 1)
    figure.update_layout(
        {
            f"xaxis{suffix}": value_axis(
                theme, range=[0, info.units], dtick=1, anchor=f"y{suffix}", fixedrange=True
            ),
            f"yaxis{suffix}": value_axis(
                theme, domain=[floor, roof], range=[-0.5, len(_LANES) - 0.5], anchor=f"x{suffix}", fixedrange=True,
                showgrid=False, tickvals=list(_LANES.values()),
                ticktext=[name if name == "compute" else f"swap {name}" for name in _LANES],
            ),
        }
    )  # fmt: skip
    own = f"{case.schedule}: <b>{case.units:g} units</b>"
    if info.cases[number - 1].pool != case.pool:
        own = f'<span style="color:{theme.second}">pool of {case.pool}</span><br>{own}'
    best = info.best(case.pool) is case
    figure.add_annotation(
        tag(
            f"{own}, the better" if best else own, theme.ink if best else theme.second,
            xref="paper", x=0, xanchor="left", yref="paper", y=roof, yanchor="bottom",
            yshift=3, align="left",
        )
    )  # fmt: skip
    ops = sorted((span for span in case.spans if span.stream == "compute"), key=lambda span: span.start)
    copies = [span for span in case.spans if span.stream != "compute"]
    waits = [Span("compute", "waits", one.stop, other.start) for one, other in pairwise(ops) if other.start > one.stop]
    parameters = [span for span in copies if span.name.startswith("W")]
    activations = [span for span in copies if not span.name.startswith("W")]
    for spans, colour, ink, hatched in (
        (ops, theme.phases[Phase.BACKWARD], theme.paper, False),
        (parameters, theme.kinds[Group.PARAMETER], theme.on_kinds[Group.PARAMETER], False),
        (activations, theme.kinds[Group.ACTIVATION], theme.on_kinds[Group.ACTIVATION], False),
        (waits, theme.limit, theme.limit, True),
    ):
        if spans:
            _bars(figure, spans, colour, ink, suffix, theme, hatched)


def _bars(
    figure: Figure, spans: Sequence[Span], colour: str, ink: str, suffix: str, theme: Theme, hatched: bool
) -> None:
    pattern = {"shape": "/", "size": 5, "solidity": 0.4, "fgcolor": colour, "bgcolor": theme.paper} if hatched else {}
    figure.add_trace(
        plotly().Bar(
            orientation="h", y=[_LANES[span.stream] for span in spans], width=_THICK,
            base=[span.start for span in spans], x=[span.stop - span.start for span in spans],
            text=["" if hatched else span.name for span in spans], textposition="inside", insidetextanchor="middle",
            textfont={"color": ink, "size": 10}, textangle=0, constraintext="none",
            marker={"color": colour, "line": {"color": theme.paper, "width": 1.5}, "pattern": pattern},
            hovertext=[f"<b>{span.name}</b><br>{span.start:g} to {span.stop:g}" for span in spans], hoverinfo="text",
            xaxis=f"x{suffix}", yaxis=f"y{suffix}",
        )
    )  # fmt: skip
