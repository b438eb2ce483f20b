"""Workers call kernels that only a GPU has on their chunks, and compute what the whole graph computes.

Kernels that are made of products and exponentials take their place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from gpu_kernels import GPU_KERNELS
from torch import Tensor, nn
from worker_comparison import assert_computes_the_same

from planner import SGD
from planner import torch_private as private
from planner.capture import capture
from planner.partition import coarsen, recurse, validate_partition
from planner.partition.plan import PartitionPlan
from planner.step import TrainStep

ATEN = torch.ops.aten
WIDTH, ROWS = 8, 16
FUSED = {f"aten.{name}" for name in GPU_KERNELS} | {
    "aten.native_dropout.default", "aten.native_dropout_backward.default"
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def kernels() -> Iterator[None]:
    with torch.library._scoped_library("aten", "IMPL") as library:
        for name, kernel in GPU_KERNELS.items():
            library.impl(name.removesuffix(".default"), kernel, "CPU")
        yield


def flash(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    result: Tensor = ATEN._scaled_dot_product_flash_attention(q, k[:, :2], v[:, :2], 0.0, True)[0]
    return result


def efficient(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    result: Tensor = ATEN._scaled_dot_product_efficient_attention(q, k, v, k @ v.mT, True)[0]
    return result


def masked(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """With a mask of all heads, in rows that are filled up in memory."""
    q, k, v = q[..., 4:, :], k[..., 4:, :], v[..., 4:, :]
    mask = nn.functional.pad(q.new_ones(12, 12).triu(), (0, 4))[..., :12].expand(4, 4, 12, 12)
    result: Tensor = ATEN._scaled_dot_product_efficient_attention(q, k, v, mask, True)[0]
    return result


def cudnn(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    result: Tensor = ATEN._scaled_dot_product_cudnn_attention(q, k, v, None, True)[0]
    return result


class _Norm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Any:
        with private.below_autograd():
            y, root = ATEN._fused_rms_norm(x, [WIDTH], weight, 0.1)
        ctx.save_for_backward(x, root, weight)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        x, root, weight = ctx.saved_tensors
        return ATEN._fused_rms_norm_backward(grad, x, [WIDTH], root, weight, [True, True])


def norm(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    result: Tensor = _Norm.apply(q * k, v[0, 0, 0])
    return result


def dropout(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    result: Tensor = ATEN.native_dropout(q * k, 0.3, True)[0]
    return result + v


class Network(nn.Module):
    def __init__(self, compute: Callable[..., Tensor]) -> None:
        super().__init__()
        self.all, self.compute = nn.Linear(6, 3 * 4 * WIDTH), compute

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.all(x).view(4, ROWS, 3, 4, WIDTH).permute(2, 0, 3, 1, 4)
        return self.compute(q, k, v).square().mean()


@pytest.mark.parametrize(
    ("compute", "ways"),
    [
        (flash, ["n head sharer", "n head sharer"]),
        (efficient, ["n head", "n head"]),
        (masked, ["n head", "n head"]),
        (cudnn, ["n head", "n head"]),
        (norm, ["i0 i1 i2 j0", "i0 i1 i2 j0"]),
        (dropout, ["", "i0 i1 i2 i3"]),
    ],
)
def test_all_ways_of_dividing_them(compute: Callable[..., Tensor], ways: list[str]) -> None:
    step = TrainStep(
        lambda: Network(compute), lambda: torch.randn(4, ROWS, 6), loss=lambda m, x: m(x), optimizer=SGD(lr=0.1)
    )
    coarse = coarsen(capture(step, progress=False))
    fused = [merged for merged in coarse.merged if any(coarse.graph.ops[op].target in FUSED for op in merged.ops)]
    found = []
    for merged in fused:
        *variants, _ = merged.variants
        found.append(" ".join(variant.name for variant in variants))
        for variant in variants:
            allowed = lambda other, way, fixed=(merged, variant): other is not fixed[0] or way is fixed[1]  # noqa: E731
            plan = PartitionPlan.of(recurse(coarse, [2], allowed_variant=allowed))
            assert validate_partition(plan, coarse.graph) == []
            assert_computes_the_same(coarse.graph, plan)
    assert found == ways
