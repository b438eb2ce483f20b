"""The kernels by which an optimizer changes one parameter, in the order of `torch.optim` with `foreach=False`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from planner.capture.program import ScalarRef
from planner.capture.recorder import Layout, Recorder

_ATEN = torch.ops.aten


def emit_update(
    recorder: Recorder,
    group: Mapping[str, Any],
    parameter: Layout,
    gradient: Layout,
    state: Mapping[str, Layout],
    scalar: Callable[[str], ScalarRef],
    module: str,
) -> None:
    """Record the update of one parameter.

    Args:
        recorder: takes the calls.
        group: hyperparameters, as in `Optimizer.param_groups`.
        parameter, gradient: what is updated, and by what.
        state: what the optimizer keeps for this parameter, by name.
        scalar: the reference for a number of `optimizers.scalars`.
        module: path of the module that owns the parameter.
    """

    def new(target: Any, *args: Any, like: Layout, **kwargs: Any) -> Layout:
        return recorder.emit(target, args, like, module=module, **kwargs)

    def update(target: Any, *args: Any, **kwargs: Any) -> Layout:
        return recorder.emit(target, args, module=module, **kwargs)

    adam = "betas" in group
    decoupled = adam and group.get("decoupled_weight_decay", False)
    if group.get("maximize", False):
        gradient = new(_ATEN.neg.default, gradient, like=gradient)
    if adam:
        update(_ATEN.add_.Tensor, state["step"], 1)
    if group["weight_decay"] != 0:
        if decoupled:
            update(_ATEN.mul_.Tensor, parameter, scalar("1-lr*weight_decay"))
        else:
            gradient = new(_ATEN.add.Tensor, gradient, parameter, like=gradient, alpha=group["weight_decay"])
    if not adam:
        if group["momentum"] != 0:
            momentum = state["momentum_buffer"]
            update(_ATEN.mul_.Tensor, momentum, group["momentum"])
            update(_ATEN.add_.Tensor, momentum, gradient, alpha=scalar("1-dampening") if group["dampening"] else 1)
            if group["nesterov"]:
                gradient = new(_ATEN.add.Tensor, gradient, momentum, like=gradient, alpha=group["momentum"])
            else:
                gradient = momentum
        update(_ATEN.add_.Tensor, parameter, gradient, alpha=scalar("-lr"))
        return
    beta1, beta2 = group["betas"]
    mean, square = state["exp_avg"], state["exp_avg_sq"]
    update(_ATEN.lerp_.Scalar, mean, gradient, 1 - beta1)
    update(_ATEN.mul_.Tensor, square, beta2)
    update(_ATEN.addcmul_.default, square, gradient, gradient, value=1 - beta2)
    if group["amsgrad"]:
        largest = state["max_exp_avg_sq"]
        update(_ATEN.maximum.out, largest, square, out=largest)
        square = largest
    root = new(_ATEN.sqrt.default, square, like=square)
    root = new(_ATEN.div.Tensor, root, scalar("bias_correction2_sqrt"), like=root)
    root = new(_ATEN.add.Tensor, root, group["eps"], like=root)
    update(_ATEN.addcdiv_.default, parameter, mean, root, value=scalar("-step_size"))
