"""Models and batches that hold no memory: fake tensors in the place of real ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from planner.capture import torch_private as private
from planner.capture.failures import first_line, unplannable
from planner.capture.members import Member, members, overlaps, repeats
from planner.errors import StowageError
from planner.graph import Kind


def fake_model(make: Callable[[], nn.Module], fake: private.FakeTensorMode) -> nn.Module:
    """Build a module without memory for its weights.

    A constructor may look at the values of small tensors that it puts on the CPU expressly; then all others are put on
    the meta device, which leaves those their values.

    Raises:
        StowageError: it looks at the values of others too.
    """
    try:
        with fake:
            return make()
    except private.DATA_DEPENDENT:
        pass
    try:
        with torch.device("meta"):
            return make()
    except (RuntimeError, NotImplementedError) as error:
        raise StowageError(
            f"building the model needs the values of its tensors ({first_line(error)}): pass a module instead of a "
            "function that makes one"
        ) from error


def fake_batch(make: Callable[[], Any], fake: private.FakeTensorMode) -> Any:
    """Build a batch, without memory where that can be."""
    try:
        with fake:
            return make()
    except RuntimeError:
        return make()


def fake_tensor(tensor: torch.Tensor, fake: private.FakeTensorMode, what: str) -> torch.Tensor:
    """A fake tensor with the layout of a real one; tensors that share memory share it afterwards too.

    Args:
        tensor: real, fake or on the meta device, which stands for the CPU.
        fake: the mode it will live in.
        what: what it is, for the error: `"the batch"`.

    Raises:
        StowageError: a sparse or quantised tensor.
    """
    if isinstance(tensor, private.FakeTensor):
        return tensor
    kind = unplannable(tensor)
    if kind is not None:
        raise StowageError(f"{what} is a {kind} tensor, which cannot be planned: make it dense")
    gradient, tensor.grad = (tensor.grad, None) if tensor.is_leaf else (None, None)
    try:
        if tensor.device.type != "meta":
            return fake.from_tensor(tensor)
        with fake:
            made = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="cpu")
        if isinstance(tensor, nn.Parameter):
            return nn.Parameter(made, requires_grad=tensor.requires_grad)
        return made
    finally:
        if tensor.is_leaf:
            tensor.grad = gradient


def fake_members(found: list[Member], fake: private.FakeTensorMode) -> dict[int, torch.Tensor]:
    """A fake tensor for each that a model holds, by the `id` of the real one.

    Raises:
        StowageError: one has no shape yet, is no block of memory, or has its own in common with itself, or another
            parameter with it.
    """
    for member in found:
        if is_lazy(member.tensor):
            raise StowageError(
                f"{member.kind} {member.name} has no shape before the first forward pass: run the model once on a batch"
            )
    for member in found:
        if repeats(member.tensor):
            raise StowageError(
                f"{member.kind} {member.name} has several numbers in one place of memory, as expand() makes them, "
                "which a plan cannot hold: give it memory of its own, by contiguous()"
            )
    for one, other in overlaps(found):
        if one.kind is other.kind is Kind.PARAMETER:
            raise StowageError(
                f"{one.name} and {other.name} share memory and are two tensors: let both be the one nn.Parameter (tied "
                "weights), or give each memory of its own, by clone()"
            )
    return {id(member.tensor): fake_tensor(member.tensor, fake, f"{member.kind} {member.name}") for member in found}


def check_devices(model: nn.Module, batch: Any, *, meta: bool) -> None:
    """Raise a StowageError unless model and batch are on one device.

    Args:
        model, batch: real or fake.
        meta: whether weights on the meta device stand for weights on the CPU.
    """
    of_model = {member.tensor.device for member in members(model)}
    of_batch = {leaf.device for leaf in private.pytree.tree_leaves(batch) if isinstance(leaf, torch.Tensor)}
    if meta:
        of_model = {torch.device("cpu") if device.type == "meta" else device for device in of_model}
    if any(device.type == "meta" for device in of_model | of_batch):
        raise StowageError("the model or the batch is on the meta device: pass a function that makes it instead")
    if len(of_model) > 1:
        raise StowageError(f"the model is spread over {_listed(of_model)}: move it to one device")
    if of_model and of_batch - of_model:
        raise StowageError(
            f"the batch is on {_listed(of_batch)} and the model on {_listed(of_model)}: move the batch to the model's "
            "device"
        )


def _listed(devices: set[torch.device]) -> str:
    return " and ".join(sorted(str(device) for device in devices))
