"""From a PyTorch model to the dataflow graph of its whole step."""

from planner.capture.capturing import capture
from planner.capture.guard import compare_with_eager
from planner.capture.optimizers import SGD, Adam, AdamW
from planner.capture.program import Call, Program, ScalarRef, TensorRef
from planner.capture.step import InferenceStep, Step
from planner.capture.training import TrainStep
from planner.rooms import make_callable

make_callable(__name__)

__all__ = [
    "SGD", "Adam", "AdamW", "Call", "InferenceStep", "Program", "ScalarRef", "Step", "TensorRef", "TrainStep",
    "capture", "compare_with_eager",
]  # fmt: skip
