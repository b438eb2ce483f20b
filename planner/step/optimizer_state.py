"""Creation of an optimizer's missing state, which is distinguished from state that a step has written."""

from __future__ import annotations

import torch

from planner import torch_private as private
from planner.errors import StowageError
from planner.step.optimizers import initial_state, state_names

#: Attribute of an optimizer for its untouched buffers, which PyTorch neither copies nor pickles with it.
_CREATED = "_stowage_untouched"


def complete(optimizer: torch.optim.Optimizer) -> None:
    """Create missing state.

    Raises:
        StowageError: amsgrad was switched on after the first step.
    """
    momenta = []
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            state = optimizer.state[parameter]
            for name in state_names(group):
                if state.get(name) is not None:
                    continue
                if name == "max_exp_avg_sq" and float(state.get("step", 0.0)) > 0:
                    raise StowageError(
                        "amsgrad was switched on after the first step, which torch.optim cannot do either: make the "
                        "optimizer and the TrainStep anew"
                    )
                state[name] = initial_state(name, parameter)
                if name == "momentum_buffer":
                    momenta.append(state[name])
    _record_untouched(optimizer, momenta)


def untouched(optimizer: torch.optim.Optimizer | None, parameter: torch.Tensor) -> bool:
    """Whether a parameter has no momentum, or a buffer for it that was created here and not written to since.

    Its bits alone do not show that: momentum of gradients that were all -0.0 looks the same, but is dampened.
    """
    momentum = None if optimizer is None else optimizer.state.get(parameter, {}).get("momentum_buffer")
    if momentum is None:
        return True
    created, version = vars(optimizer).get(_CREATED, {}).get(id(momentum), (None, 0))
    if created is not momentum or version != private.version(momentum):
        return False
    numbers = torch.view_as_real(momentum) if momentum.is_complex() else momentum
    return bool((numbers == 0).all() and numbers.signbit().all())  # .data writes do not change the version


def copy_untouched(source: torch.optim.Optimizer, target: torch.optim.Optimizer) -> None:
    """Copy the record of untouched momentum buffers to a copy of an optimizer."""
    momenta = []
    for group, other in zip(source.param_groups, target.param_groups, strict=True):
        for parameter, copied in zip(group["params"], other["params"], strict=True):
            momentum = target.state.get(copied, {}).get("momentum_buffer")
            if momentum is not None and untouched(source, parameter):
                momenta.append(momentum)
    _record_untouched(target, momenta)


def _record_untouched(optimizer: torch.optim.Optimizer, momenta: list[torch.Tensor]) -> None:
    """Record untouched buffers; the tensors are kept alive, so that no later tensor has the id of one of them."""
    if not momenta:
        return
    current = {id(state.get("momentum_buffer")) for state in optimizer.state.values()}
    created = {key: value for key, value in vars(optimizer).get(_CREATED, {}).items() if key in current}
    created.update({id(momentum): (momentum, private.version(momentum)) for momentum in momenta})
    setattr(optimizer, _CREATED, created)
