"""Use of a plan in ordinary PyTorch training: what it swaps for the backward pass is offloaded by hooks of autograd."""

from planner.apply.applying import apply
from planner.apply.hooks.applied import Applied
from planner.apply.schedule.parts import AppliedPart
from planner.callable_package import make_callable

make_callable(__name__)

__all__ = ["Applied", "AppliedPart", "apply"]
