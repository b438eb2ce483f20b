"""Capture of the dataflow graph of a PyTorch model's whole step."""

from planner.callable_package import make_callable
from planner.capture.capturing import capture, capture_as_absent
from planner.capture.failures.failures import unplannable
from planner.capture.fakes.fakes import refuse_meta_default
from planner.capture.hooks.active_modes import refuse_observers
from planner.capture.kernel_counts import compare_with_eager
from planner.capture.lower.lower import lower
from planner.capture.record.optimizer_kernels import PersistentTensor
from planner.capture.saved.saved_tensor_log import SaveAction
from planner.capture.saved.saved_tensors import SavedTensor, SavedTensors
from planner.capture.trace.batch_invariance import unused_leaves
from planner.capture.trace.trace import Trace, trace
from planner.capture.trace.trace_difference import trace_difference
from planner.capture.trace_saved_tensors import capture_saved

make_callable(__name__)

__all__ = [
    "PersistentTensor", "SaveAction", "SavedTensor", "SavedTensors", "Trace", "capture", "capture_as_absent",
    "capture_saved",
    "compare_with_eager", "lower", "refuse_meta_default", "refuse_observers",
    "trace", "trace_difference", "unplannable", "unused_leaves",
]  # fmt: skip
