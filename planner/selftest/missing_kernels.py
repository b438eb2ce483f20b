"""Which operators PyTorch has no kernel for on a device."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from planner.torch_private import has_kernel


def missing_kernels(targets: Iterable[Callable[..., Any]], device: str) -> list[str]:
    """The names of operators without a kernel, sorted.

    Args:
        targets: operator overloads, such as `torch.ops.aten.mm.default`.
        device: PyTorch's name of its type.
    """
    return sorted({str(target) for target in targets if not has_kernel(target, device)})
