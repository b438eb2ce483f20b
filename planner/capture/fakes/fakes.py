"""Models and batches without memory: fake tensors in place of real ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from planner import torch_private as private
from planner.capture.failures.failures import unplannable
from planner.capture.fakes.fake_devices import FakeDevice
from planner.errors import StowageError, first_line
from planner.graph import Kind
from planner.program import drawing_from
from planner.step import ModuleTensor, module_tensors, overlaps, rebuilt, repeats, tensor_leaves, tensors_of


def refuse_meta_default() -> None:
    """Raise a StowageError if the default device is meta."""
    if torch.get_default_device().type == "meta":
        raise StowageError(
            'the default device is meta, where tensors hold no numbers: end the block of torch.device("meta"), or call '
            'torch.set_default_device("cpu"), before the step is captured or run'
        )


def fake_model(make: Callable[[], nn.Module], fake: private.FakeTensorMode, generator: torch.Generator) -> nn.Module:
    """Build a module without memory for its weights.

    A constructor may read the values of small tensors that it explicitly puts on the host, and convert its tensors;
    then all other tensors are put on the meta device, so that those keep their values.

    Args:
        make: the function that builds the module.
        fake: the fake mode of its tensors.
        generator: the generator that real small tensors draw from.

    Raises:
        StowageError: the constructor reads the values of other tensors too.
    """
    try:
        with fake:
            return make()
    except private.DATA_DEPENDENT:
        pass
    except RuntimeError as error:
        if not str(error).startswith("_apply()"):  # a fake tensor in the place of another, as in `.to(torch.bfloat16)`
            raise
    try:
        with drawing_from(generator), torch.device("meta"):
            return make()
    except (RuntimeError, NotImplementedError) as error:
        raise StowageError(
            f"building the model needs the values of its tensors ({first_line(error)}): pass a module instead of a "
            "function that makes one"
        ) from error


def fake_batch(make: Callable[[], Any], fake: private.FakeTensorMode, generator: torch.Generator) -> Any:
    """Build a batch, without memory if possible, otherwise with random numbers from a generator."""
    try:
        with fake:
            return make()
    except RuntimeError:
        with drawing_from(generator):
            return make()


def fake_tensor(tensor: torch.Tensor, device: FakeDevice, what: str) -> torch.Tensor:
    """Return a fake tensor with the layout of a real one; tensors that share memory still share it afterwards.

    Args:
        tensor: a tensor that is real, fake or on the meta device.
        device: the one that the step is captured for.
        what: what the tensor is, for the error: `"the batch"`.

    Raises:
        StowageError: the tensor is sparse, quantised or lazily conjugated.
    """
    if isinstance(tensor, private.FakeTensor) and device.holds(tensor):
        return tensor
    kind = unplannable(tensor)
    if kind is not None:
        raise StowageError(f"{what} is a {kind} tensor, which cannot be planned: make it dense")
    if private.lazy(tensor):
        raise StowageError(f"{what} is lazily conjugated, which a plan cannot hold: call resolve_conj() on it")
    gradient, tensor.grad = (tensor.grad, None) if tensor.is_leaf else (None, None)
    try:
        return device.fake.from_tensor(tensor) if device.holds(tensor) else device.moved(tensor)
    finally:
        if tensor.is_leaf:
            tensor.grad = gradient


def fake_members(found: list[ModuleTensor], device: FakeDevice) -> dict[int, torch.Tensor]:
    """Return a fake tensor for each module tensor, by the `id` of the real one.

    Raises:
        StowageError: a tensor has no shape yet, is not a block of memory, overlaps itself in memory, or is a parameter
            that shares memory with another parameter.
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
    return {id(member.tensor): fake_tensor(member.tensor, device, f"{member.kind} {member.name}") for member in found}


def fake_reached(found: list[ModuleTensor], device: FakeDevice) -> dict[int, torch.Tensor]:
    """Return fake tensors for those a step's code reaches; it may not use them, so unsupported ones are left out."""
    return {
        id(member.tensor): fake_tensor(member.tensor, device, member.name)
        for member in found
        if unplannable(member.tensor) is None
        and member.tensor.device.type != "meta"
        and not is_lazy(member.tensor)
        and not repeats(member.tensor)
    }


def fake_leaves(batch: Any, found: list[ModuleTensor], device: FakeDevice) -> Any:
    """Return the batch with fake tensors in place of its own.

    Raises:
        StowageError: a tensor is not the block of memory that its layout describes, or shares memory with the model.
    """
    persistent = {
        private.storage_identity(one.tensor.untyped_storage()): one
        for one in found
        if unplannable(one.tensor) is None and not is_lazy(one.tensor)
    }
    leaves = tensors_of(batch)
    for name, leaf in leaves.items():
        if leaf.is_nested:
            raise StowageError(
                f"{name} is a nested tensor, which cannot be planned: make it dense by torch.nested.to_padded_tensor, "
                "and mask the loss"
            )
        if unplannable(leaf) is not None:
            continue
        if leaf.is_conj() or leaf.is_neg():
            raise StowageError(f"{name} is lazily conjugated: give it with .resolve_conj().resolve_neg()")
        member = persistent.get(private.storage_identity(leaf.untyped_storage()))
        if member is not None and not member.reached:
            raise StowageError(
                f"{name} shares memory with {member.kind} {member.name}, which steps change: let the loss read it from "
                "the model instead of the batch"
            )
    return rebuilt(batch, {name: _fake_leaf(leaf, device, name, persistent) for name, leaf in leaves.items()})


def _fake_leaf(
    leaf: torch.Tensor, device: FakeDevice, name: str, persistent: Mapping[int, ModuleTensor]
) -> torch.Tensor:
    """Return a fake leaf; one that the code also reaches elsewhere gets its own memory, as the next batch differs."""
    known = unplannable(leaf) is None and private.storage_identity(leaf.untyped_storage()) in persistent
    if not known or isinstance(leaf, private.FakeTensor):
        return fake_tensor(leaf, device, name)
    with device.fake:
        made = torch.empty_strided(leaf.shape, leaf.stride(), dtype=leaf.dtype, device=device.name)
    return made.requires_grad_(leaf.requires_grad)


def check_devices(model: nn.Module, batch: Any, device: str, *, given: bool) -> None:
    """Raise a StowageError unless model and batch are together on a device from which a plan can take them.

    Args:
        model, batch: real or fake.
        device: the type of device that the step is captured for; what is on the host may be run on any.
        given: whether the model is the user's own; otherwise its weights may be on the meta device.
    """
    of_model = {member.tensor.device for member in module_tensors(model)}
    of_batch = {leaf.device for leaf in tensor_leaves(batch)}
    if not given:
        of_model = {one for one in of_model if one.type != "meta"} or {torch.device("cpu")}
    if any(device.type == "meta" for device in of_model | of_batch):
        raise StowageError("the model or the batch is on the meta device: pass a function that makes it instead")
    if len(of_model) > 1:
        raise StowageError(f"the model is spread over {_listed(of_model)}: move it to one device")
    if of_model and of_batch - of_model:
        raise StowageError(
            f"the batch is on {_listed(of_batch)} and the model on {_listed(of_model)}: move the batch to the model's "
            "device"
        )
    elsewhere = next((one for one in of_model | of_batch if one.type not in ("cpu", device)), None)
    if elsewhere is not None:
        raise StowageError(
            f'the model is on {elsewhere} and is to run on {device}: pass device="{elsewhere.type}", or leave the '
            "model on the host"
        )
    if device == "cuda" and any(one.type == device for one in of_model | of_batch):
        current = torch.cuda.current_device()
        if any(one.index not in (None, current) for one in of_model | of_batch):
            raise StowageError(
                f"the model is on {_listed(of_model | of_batch)} and the current GPU is cuda:{current}, where a plan "
                "has its memory: call torch.cuda.set_device first"
            )


def _listed(devices: set[torch.device]) -> str:
    return " and ".join(sorted(str(device) for device in devices))
