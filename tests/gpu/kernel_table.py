"""Writes which operators of this PyTorch have no CUDA kernel: run it by a PyTorch built for CUDA, which needs no GPU.

python -m tests.gpu.kernel_table
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import torch
from torch._ops import OpOverload

from planner.torch_private import has_kernel

FOLDER = Path(__file__).parent


def table(version: str) -> Path:
    """The file of a version of PyTorch, `"2.13"`."""
    return FOLDER / f"without_cuda_kernel_{version}.txt"


def without_kernel() -> list[str]:
    """The names of the overloads of `aten` that have no CUDA kernel, nor are made of others."""
    return sorted({str(target) for target in _overloads() if not has_kernel(target, "cuda")})


def _overloads() -> Iterator[OpOverload]:
    for full_name in torch._C._dispatch_get_all_op_names():
        namespace, _, name = full_name.partition("::")
        if namespace == "aten":
            operator, _, overload = name.partition(".")
            target = getattr(getattr(torch.ops.aten, operator, None), overload or "default", None)
            if isinstance(target, OpOverload):
                yield target


if __name__ == "__main__":
    if torch.version.cuda is None:
        raise SystemExit("this PyTorch is built for the CPU alone, which has no CUDA kernels to list")
    version = ".".join(torch.__version__.split(".")[:2])
    table(version).write_text("\n".join(without_kernel()) + "\n", encoding="utf-8")
    print(table(version))
