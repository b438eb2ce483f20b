"""The user's input: training and inference steps, their optimizers and batches, and their capture guards."""

from planner.step.batches import Form, TensorFacts, Tree, rebuilt, tensor_leaves, tensors_of
from planner.step.batches.poisoned_values import PoisonError, Used, poisoned
from planner.step.capture_guards import CaptureGuards, guard_change, optimizer_guards
from planner.step.gradient_scaling import LossScaler, scaler_guards
from planner.step.hyperparameter_schedules import Scalars
from planner.step.module_tensors import ModuleTensor, module_tensors, overlaps, repeats, restored, substitute
from planner.step.optimizer_checks import check_optimizer, refuse_other_optimizers, unwritten
from planner.step.optimizer_state import untouched
from planner.step.optimizers import SGD, Adam, AdamW, state_names, step_dtype
from planner.step.step import InferenceStep, Step
from planner.step.train_step import TrainStep
from planner.step.training_progress import progress_mismatch, restore_training_progress, training_progress

__all__ = [
    "SGD",
    "Adam",
    "AdamW",
    "CaptureGuards",
    "Form",
    "InferenceStep",
    "LossScaler",
    "ModuleTensor",
    "PoisonError",
    "Scalars",
    "Step",
    "TensorFacts",
    "TrainStep",
    "Tree",
    "Used",
    "check_optimizer",
    "guard_change",
    "module_tensors",
    "optimizer_guards",
    "overlaps",
    "poisoned",
    "progress_mismatch",
    "rebuilt",
    "refuse_other_optimizers",
    "repeats",
    "restore_training_progress",
    "restored",
    "scaler_guards",
    "state_names",
    "step_dtype",
    "substitute",
    "tensor_leaves",
    "tensors_of",
    "training_progress",
    "untouched",
    "unwritten",
]  # fmt: skip
