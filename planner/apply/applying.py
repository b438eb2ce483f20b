"""A plan for ordinary PyTorch training."""

from __future__ import annotations

import warnings

from planner.apply.hooks.applied import Applied
from planner.apply.hooks.offloading import OffloadingHooks
from planner.apply.schedule.absences import absences
from planner.apply.schedule.hook_calls import HookCalls
from planner.apply.schedule.live_bytes import largest_working_set, peak_bytes, step_peak
from planner.apply.schedule.parts import advice, beyond_the_plan, expressed, left_out
from planner.capture import capture, capture_saved
from planner.errors import StowageError, given_type
from planner.graph import Graph, fingerprint
from planner.plan import PlanIndex, SwapPlan, validate
from planner.progress import Progress, ShowProgress, reporting
from planner.step import Step, TrainStep


def apply(plan: SwapPlan, step: Step, *, progress: ShowProgress = True) -> Applied:
    """Use a plan in ordinary PyTorch training, inside a `with` block.

    Autograd keeps what the plan swaps of its saved tensors on the host, by hooks, and copies it back ahead of its use,
    in the plan's order. The numbers are those of training without the plan, bit for bit, as copies change none. What
    hooks cannot do is in `Applied.left_out`; recomputation is left out too, because only the model's own code, run
    again, would notice that something it depends on has changed since the capture. So the whole step may take more than
    the plan's budget, also by what PyTorch itself holds longer than a plan does: `Applied.step_bytes` is what it is
    expected to take, and `Applied.beyond_the_plan` what of that a plan would have freed. Where hooks can do nothing of
    what the plan does, a warning says what to do instead. Nothing is run; the step is captured twice, without memory
    for the model.

    Args:
        plan: made for the step's graph.
        step: the step that the block trains, by its own code or by `step.eager()`, on any device. Inside the block,
            nothing else may save tensors for a backward pass.
        progress: True shows progress, False shows nothing; a function is called with the share done, 0 to 1, and a
            status text.

    Raises:
        StowageError: the plan is for another graph or not valid, it is not a training step, or the step cannot be
            captured. In the block, if the step saves other tensors than the captured one.
    """
    if not isinstance(plan, SwapPlan):
        raise StowageError(f"{given_type(plan)} is not a plan: give a SwapPlan; load_plan reads one from a file")
    if not isinstance(step, TrainStep):
        raise StowageError(
            f"a plan is applied to a TrainStep, got {given_type(step)}: without a backward pass nothing is saved"
        )
    with reporting(progress) as report:
        whole = Progress(report)
        graph = _graph_of(plan, step, whole.part(0.0, 0.5))
        _, saved = capture_saved(step, device=graph.device, progress=whole.part(0.5, 1.0))
    graph = graph.with_workspaces(dict(plan.workspaces))
    problems = validate(plan, graph)
    if problems:
        raise StowageError(f"this plan is not valid: {problems[0].rstrip('.')}; plan again")
    index, calls = PlanIndex(graph, plan), HookCalls(graph, saved)
    found = absences(graph, index, calls)
    instead = advice(index, found)
    if instead:  # at the line that calls `planner.apply`, beyond the callable package
        warnings.warn(f"nothing of this plan is followed in ordinary PyTorch: {instead}", stacklevel=3)
    peak = step_peak(graph, calls, found.swapped)
    return Applied(
        OffloadingHooks(calls, found.swapped, graph.name),
        expressed(graph, found),
        left_out(graph, index, calls, found),
        peak_bytes(calls, found.swapped),
        peak_bytes(calls, ()),
        step_bytes=peak.bytes,
        beyond_the_plan=beyond_the_plan(graph, plan, peak),
        budget_bytes=plan.budget_bytes,
        least_bytes=largest_working_set(graph),
        advice=instead,
    )


def _graph_of(plan: SwapPlan, step: TrainStep, progress: Progress) -> Graph:
    """The graph of a step, for the device that the plan is for."""
    known = {fingerprint(one.graph): one.graph.device for one in step.captures}
    graph = capture(step, device=known.get(plan.graph, "cpu"), progress=progress)
    if fingerprint(graph) != plan.graph:
        raise StowageError(f"this plan is not for {graph.name}: its graph is another one; plan again for this step")
    return graph
