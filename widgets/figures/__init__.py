"""Figures of a step, its plan and its run: each function takes planner objects and returns one figure.

Every figure is drawn from a dataclass of `widgets.info`, which has the same numbers. Plots are plotly figures; their
`layout.meta["summary"]` describes them in one sentence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from widgets.figures.graph_argument import of_graph
from widgets.figures.theme import FONT, LIGHT, Theme, ThemeName, get_theme

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from planner.fit import Fit
    from planner.graph import Graph
    from planner.levers import Levers
    from planner.partition import PartitionPlan
    from planner.plan import PlanComparison, SwapPlan, Timeline
    from planner.progress import ShowProgress
    from planner.run import Run, RunResult
    from planner.snapshot import MemorySnapshot
    from planner.step import Step
    from planner.swap import BudgetPoint, SwapSearch
    from widgets.figures.html_drawing import Drawing
    from widgets.info import Axis, GroupBy, IcicleLevels

__all__ = [
    "FONT", "LIGHT", "Theme", "ThemeName", "address_map", "compare_methods", "compare_peaks", "compare_plans",
    "compare_speeds", "dataflow", "fit", "get_theme", "holders", "level_bytes", "levers", "live_memory",
    "memory_by_kind", "module_graph", "pareto", "partition_splits", "peak_icicle", "predicted_and_measured",
    "schedule_and_pool", "search_history", "snapshot_map", "streams", "tensor_blocks", "worker_memory",
]  # fmt: skip


@of_graph
def module_graph(
    graph: Graph, plan: SwapPlan | None = None, *, most_boxes: int = 20, theme: ThemeName = "auto"
) -> Drawing:
    """The model as nested boxes with the bytes each holds at the step's peak, identical neighbours folded.

    With a plan, also its swaps: bytes of each box copied to the host, and bytes copied back because the box needs them.

    Args:
        graph: the step.
        plan: a plan whose copies are drawn, if any.
        most_boxes: limit on the number of boxes; more than about 60 are hard to read.
        theme: `"light"`, `"dark"`, or `"auto"`: as the notebook is, and light outside of one.

    Raises:
        StowageError: the theme is unknown, or the plan is for another graph.
    """
    from widgets.figures import _module_graph
    from widgets.info import get_module_graph

    return _module_graph.draw(get_module_graph(graph, most_boxes, plan), get_theme(theme))


@of_graph
def dataflow(graph: Graph, module: str = "", *, most_ops: int = 40, theme: ThemeName = "auto") -> Drawing:
    """The ops of a step or of one of its modules, with the bytes passed between them; laid out by Graphviz.

    Args:
        graph: the step.
        module: path of the module whose ops of all phases are drawn, such as `"blocks.0"`; `""` for the whole step.
        most_ops: limit on the number of ops; more than 60 are hard to read.
        theme: `"light"`, `"dark"`, or `"auto"`: as the notebook is, and light outside of one.

    Raises:
        StowageError: there is no such module, it runs no ops or more than `most_ops`, the theme is unknown, or Graphviz
            is missing.
    """
    from widgets.figures import _dataflow
    from widgets.info import get_dataflow

    return _dataflow.draw(get_dataflow(graph, module, most_ops), get_theme(theme))


@of_graph
def memory_by_kind(
    graph: Graph,
    plan: SwapPlan | None = None,
    budget: str | int | float | None = None,
    timeline: Timeline | None = None,
    *,
    axis: Axis = "seconds",
    theme: ThemeName = "auto",
) -> Figure:
    """Bytes on the device over time, stacked by kind, and what holds the peak.

    Args:
        graph: the step.
        plan: its plan; by default the captured order with nothing swapped, op by op.
        budget: a limit to draw, such as `"8GiB"` or `"40%"` of the unswapped peak; by default the plan's budget.
        timeline: times of the ops and copies, such as measured ones; by default the predicted ones.
        axis: `"seconds"`, or `"slots"` for op numbers; without a plan, always op numbers.
        theme: `"light"`, `"dark"`, or `"auto"`: as the notebook is, and light outside of one.

    Raises:
        StowageError: the plan or timeline is for another graph, the budget is invalid, or plotly is missing.
    """
    from widgets.figures import _memory_by_kind
    from widgets.info import get_memory_by_kind

    return _memory_by_kind.draw(get_memory_by_kind(graph, plan, budget, timeline, axis), get_theme(theme))


@of_graph
def holders(
    graph: Graph,
    plan: SwapPlan | None = None,
    timeline: Timeline | None = None,
    *,
    by: GroupBy = "module",
    theme: ThemeName = "auto",
) -> Figure:
    """What holds the peak, the largest first; unfolds until no row but a single tensor holds more than a quarter.

    Args:
        graph: the step.
        plan: its plan; by default the captured order with nothing swapped, op by op.
        timeline: times of the ops and copies, such as measured ones; by default the predicted ones.
        by: `"module"`, `"line"` for the line of code that makes or first uses a tensor, or `"kind"`.
        theme: `"light"`, `"dark"`, or `"auto"`: as the notebook is, and light outside of one.

    Raises:
        StowageError: `by` is another word, the plan or timeline is for another graph, or plotly is missing.
    """
    from widgets.figures import _holders
    from widgets.info import get_peak_holders

    return _holders.draw(get_peak_holders(graph, plan, timeline, by), get_theme(theme))


def compare_peaks(
    steps: Mapping[str, Graph | Step], *, theme: ThemeName = "auto", progress: ShowProgress = True
) -> Figure:
    """The peaks of several steps as bars, stacked by kind and labelled; nothing is swapped.

    Args:
        steps: by name, a step or its graph; a step is captured.
        theme: `"light"`, `"dark"`, or `"auto"`: as the notebook is, and light outside of one.
        progress: True shows the progress, False shows nothing; a function is called with the share done, 0 to 1, and
            the current activity.

    Raises:
        StowageError: there are no steps, one cannot be captured, the theme is unknown, or plotly is missing.
    """
    from widgets.figures import _compare_peaks
    from widgets.info import get_compare_peaks

    look = get_theme(theme)
    return _compare_peaks.draw(get_compare_peaks(steps, progress), look)


def compare_plans(comparison: PlanComparison, *, theme: ThemeName = "auto") -> Figure:
    """Memory of two plans over time, and when the tensors that they treat differently are on the device.

    Args:
        comparison: what `planner.compare_plans` returned.
        theme: `"light"`, `"dark"`, or `"auto"`: as the notebook is, and light outside of one.

    Raises:
        StowageError: it is something else, the theme is unknown, or plotly is missing.
    """
    from widgets.figures import _compare_plans
    from widgets.info import get_compare_plans

    return _compare_plans.draw(get_compare_plans(comparison), get_theme(theme))


@of_graph
def address_map(
    graph: Graph,
    plan: SwapPlan,
    timeline: Timeline | None = None,
    *,
    axis: Axis = "seconds",
    theme: ThemeName = "auto",
) -> Figure:
    """Every residency of a plan as a box of address and time, with the fragmentation between them and the budget.

    Args:
        graph: the step.
        plan: its plan.
        timeline: times of the ops and copies, such as measured ones; by default the predicted ones.
        axis: `"seconds"`, or `"slots"` for op numbers.
        theme: `"light"`, `"dark"`, or `"auto"`: as the notebook is, and light outside of one.

    Raises:
        StowageError: the plan or timeline is for another graph, or plotly is missing.
    """
    from widgets.figures import _address_map
    from widgets.info import get_address_map

    return _address_map.draw(get_address_map(graph, plan, timeline, axis), get_theme(theme))


def snapshot_map(snapshot: MemorySnapshot, *, axis: Axis = "seconds", theme: ThemeName = "auto") -> Figure:
    """Every block that a GPU had in use as a box of address and time, over the memory that was reserved.

    Addresses that are never reserved are left out.

    Args:
        snapshot: what `planner.snapshot.read` returned.
        axis: `"seconds"`, or `"slots"` for numbers of events.
        theme: `"light"`, `"dark"`, or `"auto"`: as the notebook is, and light outside of one.

    Raises:
        StowageError: the events were recorded without times, the theme is unknown, or plotly is missing.
    """
    from widgets.figures import _snapshot_map
    from widgets.info import get_snapshot_map

    return _snapshot_map.draw(get_snapshot_map(snapshot, axis), get_theme(theme))


@of_graph
def streams(graph: Graph, plan: SwapPlan, timeline: Timeline | None = None, *, theme: ThemeName = "auto") -> Figure:
    """Compute, copies out and copies in over time, with the stalls and their causes.

    Args:
        graph: the step.
        plan: its plan.
        timeline: a measured timeline; by default the plan's prediction.
        theme: `"light"`, `"dark"`, or `"auto"`: as the notebook is, and light outside of one.

    Raises:
        StowageError: the plan or timeline is for another graph, or plotly is missing.
    """
    from widgets.figures import _streams
    from widgets.info import get_streams

    return _streams.draw(get_streams(graph, plan, timeline), get_theme(theme))


@of_graph
def peak_icicle(
    graph: Graph,
    plan: SwapPlan | None = None,
    timeline: Timeline | None = None,
    *,
    by: IcicleLevels = "module",
    theme: ThemeName = "auto",
) -> Figure:
    """The peak as nested boxes, each as wide as what it holds, down to the kinds of tensors; a click zooms.

    Args:
        graph: the step.
        plan: its plan; by default the captured order with nothing swapped, op by op.
        timeline: times of the ops and copies, such as measured ones; by default the predicted ones.
        by: `"module"` for modules in modules, or `"line"` for lines of code in files.
        theme: `"light"`, `"dark"`, or `"auto"`: as the notebook is, and light outside of one.

    Raises:
        StowageError: `by` is another word, the plan or timeline is for another graph, or plotly is missing.
    """
    from widgets.figures import _peak_icicle
    from widgets.info import get_peak_icicle

    return _peak_icicle.draw(get_peak_icicle(graph, plan, timeline, by), get_theme(theme))


@of_graph
def pareto(graph: Graph, points: Sequence[BudgetPoint], *, theme: ThemeName = "auto") -> Figure:
    """Step time over budgets, with the lower bound and the step time with infinite memory.

    Args:
        graph: the step.
        points: what `planner.swap.pareto.sweep` returned.
        theme: `"light"`, `"dark"`, or `"auto"`: as the notebook is, and light outside of one.

    Raises:
        StowageError: there are no points, they are for another graph, or plotly is missing.
    """
    from widgets.figures import _pareto
    from widgets.info import get_pareto

    return _pareto.draw(get_pareto(graph, points), get_theme(theme))


@of_graph
def compare_methods(graph: Graph, sweeps: Mapping[str, Sequence[BudgetPoint]], *, theme: ThemeName = "auto") -> Figure:
    """The speeds that several methods reach over budgets, such as swapping, recomputing, and both in one plan.

    Args:
        graph: the step.
        sweeps: by method, what `planner.swap.sweep(..., method=...)` returned; one without any plan is left out.
        theme: `"light"`, `"dark"`, or `"auto"`: as the notebook is, and light outside of one.

    Raises:
        StowageError: there are no points, they are for another graph or for several machines, the theme is unknown, or
            plotly is missing.
    """
    from widgets.figures import _compare_methods
    from widgets.info import get_compare_methods

    return _compare_methods.draw(get_compare_methods(graph, sweeps), get_theme(theme))


def fit(found: Fit, *, theme: ThemeName = "auto") -> Figure:
    """Memory and speed over the sizes of a step that `planner.fit` tried, with the largest that fit.

    Args:
        found: what `planner.fit` returned.
        theme: `"light"`, `"dark"`, or `"auto"`: as the notebook is, and light outside of one.

    Raises:
        StowageError: it is something else, the theme is unknown, or plotly is missing.
    """
    from widgets.figures import _fit
    from widgets.info import get_fit_curves

    return _fit.draw(get_fit_curves(found), get_theme(theme))


def levers(result: Levers, *, theme: ThemeName = "auto") -> Figure:
    """The ways to make a step, by peak and speed, with the memory of the machine.

    Args:
        result: what `planner.levers` returned.
        theme: `"light"`, `"dark"`, or `"auto"`: as the notebook is, and light outside of one.

    Raises:
        StowageError: it is something else, the theme is unknown, or plotly is missing.
    """
    from widgets.figures import _levers
    from widgets.info import get_levers

    return _levers.draw(get_levers(result), get_theme(theme))


def compare_speeds(reached: Mapping[str, Mapping[str, tuple[float, str]]], *, theme: ThemeName = "auto") -> Figure:
    """The speeds that several ways of training reach, as shares of the first, which is the ideal.

    Args:
        reached: by model and way, samples per second, 0 where it does not fit, and a note, such as the batch.
        theme: `"light"`, `"dark"`, or `"auto"`: as the notebook is, and light outside of one.

    Raises:
        StowageError: a model has fewer than two ways or its first is not above 0, the theme is unknown, or plotly is
            missing.
    """
    from widgets.figures import _compare_speeds
    from widgets.info import get_compare_speeds

    return _compare_speeds.draw(get_compare_speeds(reached), get_theme(theme))


def predicted_and_measured(plan: SwapPlan, result: RunResult, *, theme: ThemeName = "auto") -> Figure:
    """Memory and times of a run beside the prediction of its plan.

    Args:
        plan: the plan that was run.
        result: what `planner.run` returned.
        theme: `"light"`, `"dark"`, or `"auto"`: as the notebook is, and light outside of one.

    Raises:
        StowageError: the run is not a run of this plan, or plotly is missing.
    """
    from widgets.figures import _predicted_and_measured
    from widgets.info import get_predicted_and_measured

    return _predicted_and_measured.draw(get_predicted_and_measured(plan, result), get_theme(theme))


def live_memory(run: Run, *, theme: ThemeName = "auto") -> Figure:
    """Memory of a run so far, step after step, over its plan's prediction; `widgets.watch_run` is the live version.

    Args:
        run: what `planner.run` returned; it may be running.
        theme: `"light"`, `"dark"`, or `"auto"`: as the notebook is, and light outside of one.

    Raises:
        StowageError: the theme is unknown, or plotly is missing.
    """
    from widgets.figures import _live_memory
    from widgets.info import get_live_memory

    return _live_memory.draw(get_live_memory(run), get_theme(theme))


def schedule_and_pool(*, theme: ThemeName = "auto", progress: ShowProgress = True) -> Figure:
    """The first figure of SwapAdvisor (ASPLOS 2020), planned anew: the best schedule depends on the pool.

    Args:
        theme: `"light"`, `"dark"`, or `"auto"`: as the notebook is, and light outside of one.
        progress: True shows the progress, False shows nothing; a function is called with the share done, 0 to 1, and
            the current activity.

    Raises:
        StowageError: the theme is unknown, or plotly is missing.
    """
    from widgets.figures import _schedule_and_pool
    from widgets.info import get_schedule_and_pool

    return _schedule_and_pool.draw(get_schedule_and_pool(progress), get_theme(theme))


@of_graph
def search_history(graph: Graph, search: SwapSearch, *, theme: ThemeName = "auto") -> Figure:
    """The best plan over the time of a search, the baselines, and the bound on the speed of any plan.

    Args:
        graph: the step that is planned.
        search: what `planner.swap.search_swaps` returned; it may be running.
        theme: `"light"`, `"dark"`, or `"auto"`: as the notebook is, and light outside of one.

    Raises:
        StowageError: the theme is unknown, or plotly is missing.
    """
    from widgets.figures import _search_history
    from widgets.info import get_search_history

    return _search_history.draw(get_search_history(graph, search), get_theme(theme))


@of_graph
def partition_splits(graph: Graph, plan: PartitionPlan, *, most_rows: int = 24, theme: ThemeName = "auto") -> Figure:
    """How a partition splits the largest tensors at each level, equal layers in one row.

    Args:
        graph: the step.
        plan: its partition.
        most_rows: limit on the number of rows.
        theme: `"light"`, `"dark"`, or `"auto"`: as the notebook is, and light outside of one.

    Raises:
        StowageError: the plan is for another graph, the limit is below 1, the theme is unknown, or plotly is missing.
    """
    from widgets.figures import _partition_splits
    from widgets.info import get_partition_splits

    return _partition_splits.draw(get_partition_splits(graph, plan, most_rows), get_theme(theme))


@of_graph
def level_bytes(graph: Graph, plan: PartitionPlan, *, theme: ThemeName = "auto") -> Figure:
    """The bytes that workers exchange at each level of a partition.

    Args:
        graph: the step.
        plan: its partition.
        theme: `"light"`, `"dark"`, or `"auto"`: as the notebook is, and light outside of one.

    Raises:
        StowageError: the plan is for another graph, the theme is unknown, or plotly is missing.
    """
    from widgets.figures import _level_bytes
    from widgets.info import get_level_bytes

    return _level_bytes.draw(get_level_bytes(graph, plan), get_theme(theme))


@of_graph
def worker_memory(
    graph: Graph, plan: PartitionPlan, limit: str | int | None = None, *, theme: ThemeName = "auto"
) -> Figure:
    """The memory that each worker of a partition takes, beside what it may take.

    Args:
        graph: the step.
        plan: its partition.
        limit: a limit to draw, such as `"8GiB"` or `"40%"` of what the step takes on one device.
        theme: `"light"`, `"dark"`, or `"auto"`: as the notebook is, and light outside of one.

    Raises:
        StowageError: the plan is for another graph, the limit is invalid, the theme is unknown, or plotly is missing.
    """
    from widgets.figures import _worker_peaks
    from widgets.info import get_worker_peaks

    return _worker_peaks.draw(get_worker_peaks(graph, plan, limit), get_theme(theme))


@of_graph
def tensor_blocks(graph: Graph, plan: PartitionPlan, tensor: str, *, theme: ThemeName = "auto") -> Figure:
    """Which block of a tensor each worker of a partition has.

    Args:
        graph: the step.
        plan: its partition.
        tensor: its name, such as `"layers.0.weight"`.
        theme: `"light"`, `"dark"`, or `"auto"`: as the notebook is, and light outside of one.

    Raises:
        StowageError: the plan is for another graph, there is no such tensor, the theme is unknown, or plotly is
            missing.
    """
    from widgets.figures import _tensor_blocks
    from widgets.info import get_tensor_blocks

    return _tensor_blocks.draw(get_tensor_blocks(graph, plan, tensor), get_theme(theme))
