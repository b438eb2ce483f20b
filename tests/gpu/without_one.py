"""Steps captured for a GPU as if there were none, and then again with one that is imitated: run as a program.

Attention is made of products, as it is on the imitated GPU. Prints, as JSON, the calls that only one of the two graphs
of a step has.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import torch
import transformers
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from planner.capture import capture, capture_as_absent
from planner.selftest.absent_capture import calls
from planner.step import Step, TrainStep
from tests.gpu.imitated import imitate_gpu
from tests.gpu.steps import STEPS, language_model
from tests.run.steps import Normalisations

_AUTOCASTS = {"in bfloat16": torch.bfloat16, "in float16": torch.float16}


class _Converted(nn.Module):
    """Operators that the autocast of a GPU converts, and those that only the CPU's does."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.norm, self.group = nn.Linear(16, 16), nn.LayerNorm(16), nn.GroupNorm(3, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.norm(self.linear(x))
        x = x.softmax(-1) + self.linear(x).log_softmax(-1) + self.linear(x).softmax(-1, dtype=torch.float32)
        x = self.linear(x)
        x = x.exp() + x.pow(2) + 2.0**x + (x * x).rsqrt() + (x * x).log1p() + nn.functional.softplus(x)
        y = self.linear(x)
        x = x + y.cumsum(1) + y.sum(1, keepdim=True) + y.sum() + torch.linalg.vector_norm(y, dim=-1, keepdim=True)
        x = torch.cat([x, self.linear(x)], 1)[:, :6] + torch.stack([x, self.linear(x)]).sum(0)
        x = self.group(self.linear(x)) + nn.functional.pad(self.linear(x), (2, 2), "reflect")[..., 2:-2]
        wide = nn.functional.interpolate(self.linear(x), scale_factor=2.0, mode="linear")
        pooled = nn.functional.avg_pool3d(self.linear(x)[None], 2)
        pooled = pooled.sum() + nn.functional.max_pool3d(self.linear(x)[None], 2).sum()
        x = x + torch.einsum("bij,kj->bik", self.linear(x), y.flatten(0, 1)[:16])
        x = x + (self.linear(x) @ x[0, 0])[..., None]
        x = x + nn.functional.interpolate(self.linear(x), scale_factor=2.0, mode="nearest-exact")[..., :16]
        cosine = nn.functional.cosine_similarity(self.linear(x), x, dim=-1)
        return x + wide[..., :16] + pooled + cosine[..., None] + torch.logsumexp(self.linear(x), -1, keepdim=True)


def _converted(dtype: torch.dtype) -> Step:
    def loss(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        scores = model.linear(model(x)).flatten(0, 1)
        classes = torch.zeros(len(scores), dtype=torch.int64, device=x.device)
        return nn.functional.cross_entropy(scores, classes) + nn.functional.mse_loss(scores, torch.zeros_like(scores))

    return TrainStep(_Converted, lambda: torch.randn(4, 6, 16), loss=loss, autocast=dtype)


def _normalised(dtype: torch.dtype) -> Step:
    def loss(model: nn.Module, words: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(model(words).flatten(0, 1), words.flatten())

    return TrainStep(Normalisations, lambda: torch.randint(40, (6, 12)), loss=loss, autocast=dtype)


def _bert() -> Step:
    config = transformers.BertConfig(
        vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=16,
    )  # fmt: skip
    return language_model(lambda: transformers.BertForMaskedLM(config))


class _Cells(nn.Module):
    """Cells of which a step calls one after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.LSTMCell(16, 12), nn.LSTMCell(12, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        states: list[Any] = [None, None]
        for one in x.unbind(1):
            states[0] = self.first(one, states[0])
            states[1] = self.second(states[0][0], states[1])
        found: torch.Tensor = states[1][0]
        return found


class _Products(torch.autograd.Function):
    """A function that asks for autocast, and is called with tensors of its dtype."""

    @staticmethod
    @torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float16)
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    @torch.amp.custom_bwd(device_type="cuda")
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        x, weight = ctx.saved_tensors
        return gradient @ weight.mT, x.flatten(0, -2).mT @ gradient.flatten(0, -2)


def _asking(dtype: torch.dtype | None) -> Step:
    def loss(model: nn.Linear, x: torch.Tensor) -> torch.Tensor:
        y = _Products.apply(model(x), model.weight)
        if torch.is_autocast_enabled("cuda"):
            y = y.to(torch.get_autocast_dtype("cuda")).tanh()
        return y.float().square().mean()

    return TrainStep(lambda: nn.Linear(16, 16), lambda: torch.randn(4, 8, 16), loss=loss, autocast=dtype)


def _cells() -> Step:
    return TrainStep(_Cells, lambda: torch.randn(4, 3, 16), loss=lambda model, x: model(x).square().mean())


_MORE: dict[str, Callable[[], Step]] = {
    **{f"converted {name}": lambda dtype=dtype: _converted(dtype) for name, dtype in _AUTOCASTS.items()},
    **{f"normalised {name}": lambda dtype=dtype: _normalised(dtype) for name, dtype in _AUTOCASTS.items()},
    "BERT that drops attention": _bert,
    "cells": _cells,
    "a function that asks": lambda: _asking(None),
    **{f"a function that asks {name}": lambda dtype=dtype: _asking(dtype) for name, dtype in _AUTOCASTS.items()},
}
#: They take kernels that the imitated GPU lacks, and that are made of others there.
_WITHOUT_KERNEL = ("Llama", "fused attention")
#: The imitated GPU has constants on the host first.
_MOVED = "aten._to_copy.default($0, device=cuda:0)"


def main() -> None:
    makes = {name: make for name, make in {**STEPS, **_MORE}.items() if name not in _WITHOUT_KERNEL}
    imitate_gpu()
    found = {}
    for name, make in makes.items():
        with sdpa_kernel(SDPBackend.MATH):
            ours = calls(capture_as_absent(make(), "cuda"))
            theirs = calls(capture(make(), device="cuda", progress=False))
        more = [call for call in theirs - ours if not call.startswith(_MOVED)]
        found[name] = {"calls": ours.total(), "ours": [*(ours - theirs)], "theirs": more}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
