"""Steps that call one op each, made from the samples that PyTorch tests its own ops by."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from types import ModuleType
from typing import Any
from unittest import TestCase

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

#: What memory holds that nobody has written has no bits to compare.
UNWRITTEN = frozenset({
    "empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided", "resize_", "resize_as_",
})  # fmt: skip
_MOST_SAMPLES = 400  # some ops have thousands


def op_db() -> list[Any]:
    """PyTorch's own list of ops. Its module asks for `expecttest`, of which samples use nothing."""
    if "expecttest" not in sys.modules:
        stub = ModuleType("expecttest")
        stub.TestCase, stub.ACCEPT = TestCase, False  # type: ignore[attr-defined]
        sys.modules["expecttest"] = stub
    from torch.testing._internal import common_methods_invocations as invocations

    # ops that draw are wrapped there in a function that sets the seed, which no step may do
    invocations.wrapper_set_seed = lambda op, *args, **kwargs: op(*args, **kwargs)
    return list(invocations.op_db)


@dataclass(frozen=True)
class Kind:
    """One way to try an op: how many of its samples, spread over all there are, in which layout."""

    mode: str  # "inference", "training" or "in place"
    dtype: torch.dtype
    layout: str
    samples: int


KINDS = (
    Kind("inference", torch.float32, "plain", 6),
    Kind("inference", torch.float32, "transposed", 2),
    Kind("inference", torch.float32, "first transposed", 1),
    Kind("inference", torch.float32, "channels last", 2),
    Kind("inference", torch.float32, "strided", 1),
    Kind("inference", torch.float32, "expanded", 1),
    Kind("inference", torch.int64, "plain", 2),
    Kind("inference", torch.bfloat16, "plain", 2),
    Kind("inference", torch.complex64, "plain", 2),
    Kind("in place", torch.float32, "plain", 1),
    Kind("training", torch.float32, "plain", 5),
    Kind("training", torch.float32, "transposed", 2),
    Kind("training", torch.float32, "first transposed", 1),
    Kind("training", torch.float32, "channels last", 2),
    Kind("training", torch.float32, "strided", 1),
    Kind("training", torch.float32, "expanded", 1),
    Kind("training", torch.bfloat16, "plain", 1),
    Kind("training", torch.complex64, "plain", 1),
)


@dataclass(frozen=True)
class Case:
    """A call of an op: `make` gives a module that makes it and the module's batch, the same each time."""

    name: str
    mode: str
    make: Callable[[], tuple[nn.Module, tuple[Tensor, ...]]]
    written: bool


class Calling(nn.Module):
    """Calls an op on its parameters and batch, each seen through a view.

    Args:
        call: takes the tensors.
        tensors: what the module holds as parameters; None for what comes with the batch.
        views: per tensor, how the op sees it.
    """

    def __init__(
        self, call: Callable[[list[Tensor]], Any], tensors: list[Tensor | None], views: list[Callable[[Tensor], Tensor]]
    ) -> None:
        super().__init__()
        self.call, self.views = call, views
        for place, tensor in enumerate(tensors):
            self.register_parameter(f"p{place}", None if tensor is None else nn.Parameter(tensor))

    def forward(self, *batch: Tensor) -> Any:
        """What the op returns."""
        rest = iter(batch)
        held = (getattr(self, f"p{place}") for place in range(len(self.views)))
        given = [next(rest) if tensor is None else tensor for tensor in held]
        return self.call([view(tensor) for view, tensor in zip(self.views, given, strict=True)])


def loss(module: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
    """The squares of all that the op returns and that has a gradient."""
    parts = [leaf for leaf in pytree.tree_leaves(module(*batch)) if isinstance(leaf, Tensor) and leaf.requires_grad]
    squares = [(torch.view_as_real(leaf) if leaf.is_complex() else leaf).float().square().sum() for leaf in parts]
    return sum(squares[1:], squares[0])


def cases(op: Any, share: float) -> Iterator[Case]:
    """What is tried of an op.

    Args:
        op: an `OpInfo`.
        share: of the usual number of samples.
    """
    for kind in KINDS:
        training = kind.mode == "training"
        known = op.supported_backward_dtypes("cpu") if training else op.supported_dtypes("cpu")
        function = op.inplace_variant if kind.mode == "in place" else op.op
        if kind.dtype not in known or (training and not op.supports_autograd) or function is None:
            continue
        torch.manual_seed(0)
        samples = list(islice(op.sample_inputs("cpu", kind.dtype, requires_grad=False), _MOST_SAMPLES))
        count = max(1, round(kind.samples * share))
        chosen = sorted({round(place * (len(samples) - 1) / max(1, count - 1)) for place in range(count)})
        for place in chosen:
            case = _case(op, function, kind, samples[place], place) if samples else None
            if case is not None:
                yield case


def _case(op: Any, function: Callable[..., Any], kind: Kind, sample: Any, place: int) -> Case | None:
    leaves, structure = pytree.tree_flatten((sample.input, sample.args, dict(sample.kwargs)))
    where = [number for number, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
    tensors = [leaves[number].detach() for number in where]
    stored = [_stored(tensor, kind.layout, first=not number) for number, tensor in enumerate(tensors)]
    if kind.layout != "plain" and all(entry is None for entry in stored):
        return None
    plain = [entry or (tensor, _same) for entry, tensor in zip(stored, tensors, strict=True)]
    views = [view for _, view in plain]
    trained = [
        kind.mode == "training" and (tensor.is_floating_point() or tensor.is_complex()) and number in _trained(tensors)
        for number, tensor in enumerate(tensors)
    ]

    def call(given: list[Tensor]) -> Any:
        filled = list(leaves)
        for number, tensor in zip(where, given, strict=True):
            filled[number] = tensor
        value, args, kwargs = pytree.tree_unflatten(filled, structure)
        if kind.mode == "in place":
            value = value.clone()
        # an op that only makes a view is no step by itself
        return pytree.tree_map_only(Tensor, Tensor.clone, function(value, *args, **kwargs))

    def make() -> tuple[nn.Module, tuple[Tensor, ...]]:
        copies = [entry.clone() for entry, _ in plain]
        held = [copy if train else None for copy, train in zip(copies, trained, strict=True)]
        return Calling(call, held, views), tuple(c for c, train in zip(copies, trained, strict=True) if not train)

    variant = f".{op.variant_test_name}" if op.variant_test_name else ""
    dtype = str(kind.dtype).removeprefix("torch.")
    name = f"{op.name}{variant} {kind.mode} {dtype} {kind.layout} #{place}"
    return Case(name, kind.mode, make, op.name not in UNWRITTEN)


def _trained(tensors: list[Tensor]) -> set[int]:
    """Those with a layout that a parameter may have."""
    return {number for number, tensor in enumerate(tensors) if tensor.layout is torch.strided}


def _same(tensor: Tensor) -> Tensor:
    return tensor


def _mt(tensor: Tensor) -> Tensor:
    return tensor.mT


def _first_of_two(tensor: Tensor) -> Tensor:
    return tensor[..., 0]


def _stored(tensor: Tensor, layout: str, *, first: bool) -> tuple[Tensor, Callable[[Tensor], Tensor]] | None:
    """The memory behind a tensor in a layout, and how it is seen; None where the layout says nothing of it."""
    if tensor.layout is not torch.strided or not tensor.dim():
        return None
    if layout == "transposed" or (layout == "first transposed" and first):
        return (tensor.mT.contiguous(), _mt) if tensor.dim() > 1 else None
    if layout == "channels last":
        if tensor.dim() not in (4, 5):
            return None
        last = torch.channels_last if tensor.dim() == 4 else torch.channels_last_3d
        return tensor.contiguous(memory_format=last), _same
    if layout == "strided":
        return torch.stack([tensor, tensor], -1), _first_of_two
    if layout == "expanded" and first and tensor.shape[0] > 1:
        shape = tensor.shape
        return tensor[:1].clone(), lambda one: one.expand(shape)
    return None
