"""Small random networks for checks of partitions: layers of every family, of sizes that divide and do not divide."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

import planner

SIZES = (4, 5, 6, 7, 8, 12)


class Gates(nn.Module):
    """One matrix product whose result is chunked, as in a recurrent cell."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layer = nn.Linear(width, 3 * width)

    def forward(self, x: Tensor) -> Tensor:
        """Gated values of the same shape."""
        left, middle, right = self.layer(x).chunk(3, dim=-1)
        return torch.sigmoid(left) * torch.tanh(middle) + right


class Heads(nn.Module):
    """Attention with its own queries, keys and values, or by the fused kernel."""

    def __init__(self, width: int, heads: int, fused: bool) -> None:
        super().__init__()
        self.heads, self.fused = heads, fused
        self.parts, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Attention, added to its input."""
        batch, length, width = x.shape
        parts = self.parts(x).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4).unbind(0)
        if self.fused:
            found = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        else:
            found = F.softmax(query @ key.transpose(-1, -2), -1) @ value
        return x + self.out(found.transpose(1, 2).reshape(batch, length, width))


class Twice(nn.Module):
    """One weight used twice, and a residual."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width) / width)

    def forward(self, x: Tensor) -> Tensor:
        """Both products, added to the input."""
        return x + F.relu(x @ self.weight, inplace=True) @ self.weight.t()


class Pieces(nn.Module):
    """Slices that are changed on their own and joined."""

    def forward(self, x: Tensor) -> Tensor:
        """The halves, exchanged."""
        half = x.shape[-1] // 2
        return torch.cat([x[..., half:] * 2, -x[..., :half]], -1)


class Statistics(nn.Module):
    """Sums and largest values along a dimension, given back to every element."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: Tensor) -> Tensor:
        """The input without its mean, with its largest value added."""
        return x - x.mean(self.dim, keepdim=True) + x.amax(self.dim, keepdim=True)


class RandomNetwork(nn.Module):
    """Layers of one kind of input, then a linear classifier."""

    def __init__(self, first: nn.Module, layers: list[nn.Module], width: int) -> None:
        super().__init__()
        self.first, self.layers, self.last = first, nn.ModuleList(layers), nn.Linear(width, 3)

    def forward(self, x: Tensor) -> Tensor:
        """Scores of every entry of the batch."""
        x = self.first(x)
        for layer in self.layers:
            x = layer(x)
        if x.dim() == 4:
            x = x.mean((2, 3))
        if x.dim() == 3:
            x = x.mean(1)
        return self.last(x)


def loss(model: nn.Module, batch: Any) -> Tensor:
    """The cross entropy of the network's scores."""
    inputs, targets = batch
    return F.cross_entropy(model(inputs), targets)


def random_step(seed: int) -> planner.TrainStep:
    """A training step of a random network.

    Args:
        seed: of everything in it.
    """
    rng = random.Random(seed)
    torch.manual_seed(seed)
    batch, width = rng.choice(SIZES), rng.choice(SIZES)
    make = rng.choice([_vectors, _vectors, _images, _texts])
    network, inputs = make(rng, batch, width)
    optimizer = rng.choice([planner.SGD(1e-2), planner.SGD(1e-2, momentum=0.9), planner.Adam(), planner.AdamW()])
    pair = inputs, torch.randint(3, (batch,))
    clip = 1.0 if rng.random() < 0.2 else None
    parts = 2 if batch % 2 == 0 and rng.random() < 0.2 else 1
    return planner.TrainStep(network, pair, loss=loss, optimizer=optimizer, clip_norm=clip, micro_batches=parts)


def _some(rng: random.Random, layers: list[Callable[[], nn.Module]]) -> list[nn.Module]:
    return [rng.choice(layers)() for _ in range(rng.randint(1, 4))]


def _vectors(rng: random.Random, batch: int, width: int) -> tuple[nn.Module, Tensor]:
    layers = _some(rng, [
        lambda: nn.Linear(width, width), lambda: Gates(width), lambda: Twice(width), lambda: nn.LayerNorm(width),
        lambda: nn.BatchNorm1d(width), lambda: Statistics(rng.choice([0, 1])), nn.GELU, lambda: nn.Dropout(0.3),
        lambda: nn.Softmax(-1), nn.SiLU,
    ] + ([Pieces] if width % 2 == 0 else []))  # fmt: skip
    return RandomNetwork(nn.Linear(5, width), layers, width), torch.randn(batch, 5)


def _images(rng: random.Random, batch: int, width: int) -> tuple[nn.Module, Tensor]:
    layers = _some(rng, [
        lambda: nn.Conv2d(width, width, 3, padding=1), lambda: nn.Conv2d(width, width, 3, stride=2, padding=1),
        lambda: nn.Conv2d(width, width, 1, bias=False), lambda: nn.BatchNorm2d(width), nn.ReLU,
        lambda: nn.MaxPool2d(3, stride=1, padding=1), lambda: nn.AvgPool2d(2, stride=1), nn.Tanh,
        lambda: nn.Conv2d(width, width, 3, padding=2, dilation=2, groups=width), lambda: nn.GroupNorm(1, width),
    ])  # fmt: skip
    return RandomNetwork(nn.Conv2d(3, width, 3, padding=1), layers, width), torch.randn(batch, 3, 13, 13)


def _texts(rng: random.Random, batch: int, width: int) -> tuple[nn.Module, Tensor]:
    heads = 2 if width % 2 == 0 else 1
    layers = _some(rng, [
        lambda: Heads(width, heads, False), lambda: Heads(width, heads, True), lambda: nn.LayerNorm(width),
        lambda: Gates(width), lambda: nn.Linear(width, width), lambda: Twice(width), nn.GELU,
    ])  # fmt: skip
    return RandomNetwork(nn.Embedding(11, width), layers, width), torch.randint(11, (batch, rng.choice(SIZES)))
