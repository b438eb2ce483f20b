"""What autograd saves in a step: the step is traced again, under hooks that look at every tensor that it saves."""

from __future__ import annotations

from planner.capture.capturing import capture
from planner.capture.lower.lower import lower_with_saved
from planner.capture.saved.saved_tensor_log import SavedTensorLog
from planner.capture.saved.saved_tensors import SavedTensors
from planner.capture.trace.trace import trace
from planner.errors import StowageError
from planner.global_state_lock import global_state_lock
from planner.graph import Graph, fingerprint
from planner.guards import undisturbed
from planner.program import capturing_backend
from planner.progress import Progress, ShowProgress, reporting
from planner.step import Step


@undisturbed()
def capture_saved(
    step: Step, *, device: str = "cpu", progress: ShowProgress = True
) -> tuple[Graph, SavedTensors]:  # fmt: skip
    """Capture the graph of a step, and what autograd saves in it; allocates no memory for the model.

    Args:
        step: a `TrainStep`; an `InferenceStep` saves nothing.
        device: the type of device, as in `capture`.
        progress: as in `capture`.

    Raises:
        StowageError: the step cannot be captured, or not while hooks look at what it saves.
    """
    backend = capturing_backend(device)
    with reporting(progress) as report, global_state_lock(lambda: report(0.0, "waiting for another capture or run")):
        whole, log = Progress(report), SavedTensorLog()
        graph = capture(step, device=device, progress=whole.part(0.0, 0.5))
        traced = trace(step, backend, whole.part(0.5, 1.0), log)
        found, saved = lower_with_saved(traced, graph.program.scalars, backend)
    if fingerprint(found) != fingerprint(graph):
        raise StowageError(
            "the step runs other ops while saved_tensors_hooks look at what it saves; leave out code that asks for them"
        )
    return graph, saved
