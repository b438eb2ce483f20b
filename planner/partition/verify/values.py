"""Comparing values, and replacing those that nobody may read."""

from __future__ import annotations

from itertools import product

import torch
from torch import Tensor

from planner.partition.strategy import extent_mask
from planner.partition.tdl import Region

_RELATIVE = {torch.float64: 1e-9, torch.float32: 1e-4, torch.bfloat16: 3e-2, torch.float16: 5e-3}

_EXTREMES = 6  # before this attempt, whole numbers become the largest or smallest


def close(found: Tensor, expected: Tensor) -> bool:
    """Whether values agree but for rounding in the type of `expected`; NaN agrees with NaN."""
    if found.shape != expected.shape:
        return False
    tolerance = _RELATIVE.get(expected.dtype, 0.0)
    left, right = found.double(), expected.double()
    finite = right[right.isfinite()]
    scale = float(finite.abs().max()) if finite.numel() else 0.0
    return torch.allclose(left, right, rtol=tolerance, atol=tolerance * max(scale, 1e-30), equal_nan=True)


def first_difference(found: Tensor, expected: Tensor) -> str:
    """The first element that differs, in words."""
    if found.shape != expected.shape:
        return f"its shape is {list(found.shape)} and not {list(expected.shape)}"
    for place in product(*(range(size) for size in expected.shape)):
        ours, theirs = found[place], expected[place]
        if not close(ours.reshape(1), theirs.reshape(1)):
            return f"at {list(place)} it is {float(ours):.6g} and not {float(theirs):.6g}"
    return "its values differ"


def mask_of(region: Region | None, shape: torch.Size | tuple[int, ...]) -> Tensor:
    """Which elements of a tensor a region contains; None contains none."""
    mask = torch.full(tuple(shape), region is not None)
    if region is not None:
        for dimension, extent in enumerate(region.extents):
            here = [1] * len(shape)
            here[dimension] = -1
            mask = mask & torch.from_numpy(extent_mask(extent)).view(here)
    return mask


def garbage(tensor: Tensor, kept: Tensor, generator: torch.Generator, nan: bool) -> Tensor:
    """The tensor with other values where `kept` is false: NaN, or large ones; whole numbers only change places."""
    if tensor.is_floating_point():
        other = torch.randn(tensor.shape, generator=generator, dtype=torch.float64).to(tensor.dtype) * 50
        if nan:
            other = torch.full_like(tensor, torch.nan)
    elif tensor.dtype is torch.bool:
        other = torch.randint(0, 2, tensor.shape, generator=generator).bool()
    else:
        values = tensor.reshape(-1)
        chosen = torch.randint(0, max(values.numel(), 1), (values.numel(),), generator=generator)
        other = values[chosen].reshape(tensor.shape)
    return torch.where(kept, tensor, other)


def disturbed(tensor: Tensor, where: Tensor, generator: torch.Generator, attempt: int) -> Tensor:
    """The tensor with other values where `where` is true; every attempt tries larger or opposite ones."""
    if tensor.is_floating_point():
        size = (3.0, -3.0, 1e3, -1e3, 0.5, -1e6, 1e6, 0.0)[attempt]
        noise = torch.rand(tensor.shape, generator=generator, dtype=torch.float64).to(tensor.dtype) + 0.5
        return torch.where(where, noise * size, tensor)
    if tensor.dtype is torch.bool:
        return torch.where(where, ~tensor, tensor)
    if 0 < attempt < _EXTREMES and tensor.numel():
        return torch.where(where, tensor.max() if attempt % 2 else tensor.min(), tensor)
    return garbage(tensor, ~where, generator, False)


def chosen_anew(tensor: Tensor, generator: torch.Generator, attempt: int) -> Tensor:
    """Whole numbers or truth values, drawn again from those that there are; in two attempts they are all the same."""
    if attempt in (1, 2) and tensor.numel():
        return torch.full_like(tensor, bool(attempt - 1) if tensor.dtype is torch.bool else int(tensor.reshape(-1)[0]))
    return garbage(tensor, torch.zeros(tensor.shape, dtype=torch.bool), generator, False)
