"""What every picture has in common, and what is drawn of its numbers."""

import inspect
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest
import torch
from plotly.graph_objects import Figure

import widgets
from planner.errors import StowageError
from planner.graph import Graph, GraphBuilder, Kind, Phase
from planner.plan import SwapPlan
from planner.profile import machine
from planner.run import RunResult
from planner.swap import plan_swaps
from planner.units import format_seconds, several
from tests import preloaded
from tests.widgets.steps import MIB, by_hand, plan_by_hand, real, real_plan
from widgets import figures

SPEC = "mlp:optimizer=adam"
THEMES = ["light", "dark"]
HOSTILE = '<b onmouseover="alert(1)">$x^2$ & </b>%{y} \N{PILE OF POO}<script>'


def run_of(plan: SwapPlan, steps: int = 3) -> RunResult:
    """A run that went as predicted."""
    timelines = tuple(replace(plan.predicted) for _ in range(steps))
    return RunResult(
        name=SPEC, device="cpu", losses=(1.0,) * steps, extras=(), step_seconds=(plan.predicted.seconds,) * steps,
        eager_step_seconds=(),
        predicted_step_seconds=plan.predicted.seconds, budget_bytes=plan.budget_bytes, peak_bytes=plan.peak_bytes,
        predicted_peak_bytes=plan.peak_bytes, host_bytes=plan.host_bytes, mismatches=(), compared=7,
        timelines=timelines, outputs=(), plan=plan,
    )  # fmt: skip


def plots(graph: Graph, plan: SwapPlan, theme: Any = "light") -> dict[str, Figure]:
    return {
        "captured": figures.memory_by_kind(graph, theme=theme),
        "memory": figures.memory_by_kind(graph, plan, theme=theme),
        "slots": figures.memory_by_kind(graph, plan, axis="slots", theme=theme),
        "address": figures.address_map(graph, plan, theme=theme),
        "address, slots": figures.address_map(graph, plan, axis="slots", theme=theme),
        "streams": figures.streams(graph, plan, theme=theme),
        "holders": figures.holders(graph, plan, by="line", theme=theme),
        "icicle": figures.peak_icicle(graph, plan, theme=theme),
        "icicle, lines": figures.peak_icicle(graph, by="line", theme=theme),
        "run": figures.predicted_and_measured(plan, run_of(plan), theme=theme),
    }


def texts(value: Any) -> Iterator[str]:
    """Every string anywhere in a figure."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from texts(each)


def one_op() -> Graph:
    build = GraphBuilder("one op")
    out = build.add_tensor("y", build.add_storage("y", 4, Kind.OUTPUT), (1,))
    build.add_op("f", "aten.f.default", [], [out])
    return build.build([out])


def empty_and_zero_bytes() -> Graph:
    build = GraphBuilder("nothing")
    out = build.add_tensor("y", build.add_storage("y", 0, Kind.OUTPUT), (0,))
    build.add_op("f", "aten.f.default", [], [out])
    return build.build([out])


def hostile() -> Graph:
    """A training step all of whose names are markup."""
    build = GraphBuilder(HOSTILE)
    build.modules |= {"": HOSTILE, HOSTILE.replace(".", ""): HOSTILE}
    weight = build.add_tensor(HOSTILE, build.add_storage(f"w{HOSTILE}", 64 * MIB, Kind.PARAMETER), (16 * MIB,))
    out = build.add_tensor(HOSTILE, build.add_storage(f"y{HOSTILE}", 64 * MIB, Kind.ACTIVATION), (16 * MIB,))
    build.add_op(f"f{HOSTILE}", f"aten.{HOSTILE}", [weight], [out], module=HOSTILE.replace(".", ""))
    loss = build.add_tensor(HOSTILE, build.add_storage(f"l{HOSTILE}", 4, Kind.OUTPUT), (1,))
    build.add_op(f"g{HOSTILE}", f"aten.{HOSTILE}", [out], [loss])
    build.add_op(f"h{HOSTILE}", f"aten.{HOSTILE}", [weight, out], [weight], phase=Phase.OPTIMIZER)
    return build.build([loss])


def plan_of(graph: Graph) -> SwapPlan:
    return plan_swaps(graph, machine("cpu"), 256 * MIB, method="swap")


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("budget", ["60%", "100%"])
def test_every_plot_is_plain_data_with_its_summary(theme: str, budget: str) -> None:
    for name, figure in plots(real(SPEC)[1], real_plan(SPEC, budget), theme).items():
        assert isinstance(figure, Figure), name
        data = json.loads(figure.to_json())
        assert data["layout"]["meta"]["summary"].endswith(".")
        assert data["layout"]["meta"]["summary"].partition(".")[0] in " ".join(texts(data)).replace("<br>", " ")
        assert data["layout"]["paper_bgcolor"] == {"light": "#ffffff", "dark": "#212121"}[theme]
        assert "width" not in data["layout"], "a plot takes the width of its notebook"
        assert len(figure.layout.shapes) <= 4, "rectangles are bars, never shapes"


@pytest.mark.parametrize("make", [one_op, empty_and_zero_bytes])
def test_the_smallest_steps_are_drawn(make: Callable[[], Graph]) -> None:
    graph = make()
    for figure in plots(graph, plan_of(graph)).values():
        assert figure.layout.meta["summary"]
    assert figures.module_graph(graph)


@pytest.mark.parametrize("theme", THEMES)
def test_names_are_shown_and_never_read_as_markup(theme: str) -> None:
    graph = hostile()
    for name, figure in plots(graph, plan_of(graph), theme).items():
        templates = {trace.hovertemplate for trace in figure.data}
        for text in texts(json.loads(figure.to_json())):
            assert "<b on" not in text or text == figure.layout.meta["summary"], name
            assert "<script" not in text or text == figure.layout.meta["summary"], name
            assert "%{" not in text or text == figure.layout.meta["summary"] or text in templates, name
            assert "$x" not in text or text == figure.layout.meta["summary"], name
    shown = " ".join(texts(json.loads(figures.address_map(graph, plan_of(graph)).to_json())))
    assert "&lt;b onmouseover" in shown


def test_the_map_has_one_trace_for_each_kind_and_a_bar_for_each_box() -> None:
    graph, plan = real(SPEC)[1], real_plan(SPEC, "60%")
    figure = figures.address_map(graph, plan)
    info = widgets.info.get_address_map(graph, plan)
    bars = {trace.name: trace for trace in figure.data if trace.name not in ("on the link", "names")}
    assert len(bars) == len(set(info.group.tolist()))
    assert sum(len(trace.x) for trace in bars.values()) == len(info.storage)
    (line,) = figure.layout.shapes
    assert line.y0 == line.y1 == plan.budget_bytes / MIB
    assert max(max(trace.base + trace.y) for trace in bars.values()) == pytest.approx(plan.peak_bytes / MIB)


def test_the_stack_reaches_the_peak() -> None:
    figure = figures.memory_by_kind(by_hand(), plan_by_hand(by_hand()))
    stacked = [trace for trace in figure.data if trace.type == "scatter" and trace.stackgroup]
    assert max(map(sum, zip(*(trace.y for trace in stacked), strict=True))) == 22
    assert {trace.name: max(trace.y) for trace in stacked} == {
        "parameters": 6, "input": 1, "activations": 11, "gradients": 2, "workspace": 5,
    }  # fmt: skip


def test_stalls_are_hatched_and_marked() -> None:
    figure = figures.streams(by_hand(), plan_by_hand(by_hand()))
    hatched = [trace for trace in figure.data if trace.name == "stalls" and trace.marker.pattern.shape]
    assert [trace.width.tolist() for trace in hatched] == [[0.5, 1.5]]
    assert "waits for a/mm to arrive" in hatched[0].hovertext[1]


def test_many_boxes_and_spans_stay_few_rectangles() -> None:
    build, tensors = GraphBuilder("many"), []
    for number in range(12_000):
        storage = build.add_storage(f"y{number}", 64 * (1 + number % 5), Kind.ACTIVATION)
        tensors.append(build.add_tensor(f"y{number}", storage, (1,)))
        build.add_op(f"f{number}", "aten.f.default", tensors[-2:-1], tensors[-1:])
    graph = build.build(tensors[-1:])
    for name, figure in plots(graph, plan_of(graph)).items():
        for trace in figure.data:
            assert len(trace.values if trace.type == "icicle" else trace.x) <= 5000, name
        assert len(figure.to_json()) < 3e6, name


def test_figures_use_the_words_and_separators_of_the_rest() -> None:
    figure = figures.memory_by_kind(by_hand())
    assert figure.layout.xaxis.title.text == "op number"
    assert "at op 1" in figure.layout.meta["summary"]
    assert several(11625, "op") == "11,625 ops"
    said = " ".join(text for plot in plots(real(SPEC)[1], real_plan(SPEC, "60%")).values() for text in texts(
        json.loads(plot.to_json())
    ))  # fmt: skip
    assert not {"slot", "slots", "gaps", "holes", "nobody", "anybody"} & set(re.findall(r"\w+", said))


def test_an_unknown_theme_is_refused() -> None:
    with pytest.raises(StowageError, match='choose "auto", "light" or "dark"'):
        figures.memory_by_kind(by_hand(), theme="sepia")  # type: ignore[arg-type]
    with pytest.raises(StowageError, match='choose "auto", "light" or "dark"'):
        figures.module_graph(by_hand(), theme="sepia")  # type: ignore[arg-type]


@pytest.mark.parametrize("theme", ["auto", *THEMES])
@pytest.mark.parametrize("make", [hostile, by_hand, one_op, lambda: real("gpt:optimizer=adam")[1]])
def test_the_module_graph_has_a_row_for_each_box_and_an_arrow_for_each_edge(
    make: Callable[[], Graph], theme: Any
) -> None:
    graph = make()
    root = ElementTree.fromstring(figures.module_graph(graph, theme=theme)._repr_html_())
    info = widgets.info.get_module_graph(graph)
    assert root.get("aria-label") == info.summary
    kinds = [(element.get("class") or "").split() for element in root.iter()]
    assert sum("box" in each for each in kinds) == len(info.boxes)
    assert sum("edge" in each for each in kinds) == len(info.edges)
    tags = {element.tag for element in root.iter()}
    assert tags <= {"div", "span", "b", "u", "em", "i", "style", "svg", "g", "path", "title"}
    assert not [element for element in root.iter() if set(element.keys()) & {"onmouseover", "onclick", "href"}]


def test_without_plotly_one_sentence_says_what_to_do() -> None:
    code = (
        "import sys\n"
        "for name in [*sys.modules]:\n"
        "    if name.partition('.')[0] in ('plotly', 'widgets'): del sys.modules[name]\n"
        "sys.modules['plotly'] = None\n"
        "import widgets\n"
        "from planner.errors import StowageError\n"
        "from tests.widgets.steps import by_hand\n"
        "try: widgets.memory_by_kind(by_hand())\n"
        "except StowageError as error: print(error)"
    )
    told = subprocess.run(preloaded.command("-c", code), capture_output=True, text=True, check=True).stdout
    assert told == "plots need the package plotly, which is missing: run `pip install plotly`\n"


def test_importing_widgets_waits_for_nothing_heavy() -> None:
    code = "import widgets, sys; print({'torch', 'numba', 'plotly', 'numpy'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
    assert widgets.memory_by_kind is figures.memory_by_kind
    with pytest.raises(AttributeError, match=r"it has .*address_map"):
        _ = widgets.address_maps


def test_a_name_in_a_narrow_box_keeps_the_module_that_tells_it_from_others() -> None:
    graph, plan = real(SPEC)[1], real_plan(SPEC, "100%")
    shown = next(trace.text for trace in figures.address_map(graph, plan).data if trace.name == "names")
    modules = {path.rpartition(".")[2] for path in graph.modules if path}
    cut = [text for text in shown if text not in {storage.name for storage in graph.storages}]
    made_in_modules = {op.name.rpartition("/")[2] for op in graph.ops if op.module}
    assert not set(cut) & made_in_modules - modules


def test_no_time_is_less_than_nothing() -> None:
    assert format_seconds(-1e-17) == format_seconds(0.0) == "0 s"
    assert (format_seconds(1.5e-9), format_seconds(-2e-3)) == ("1.50 ns", "-2.00 ms")


def of_graphs() -> Iterator[str]:
    """The figures whose first argument is a graph."""
    for name in figures.__all__:
        drawn = getattr(figures, name)
        if inspect.isfunction(drawn) and next(iter(inspect.signature(drawn).parameters)) == "graph":
            yield name


@pytest.mark.parametrize("name", [*of_graphs()])
def test_a_figure_of_a_graph_that_is_given_a_model_says_where_graphs_come_from(name):
    draw = getattr(figures, name)
    needed = [each for each in inspect.signature(draw).parameters.values() if each.default is each.empty][1:]
    with pytest.raises(StowageError, match=r"a Linear is not a graph; pass what planner\.capture\(step\) returns"):
        draw(torch.nn.Linear(1, 1), *(None for _ in needed))
