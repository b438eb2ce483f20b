"""What both Inception networks are built of."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn


class ConvUnit(nn.Module):
    """Convolution, batch normalization and ReLU."""

    def __init__(
        self, inputs: int, outputs: int, kernel: int | tuple[int, int], stride: int = 1,
        padding: int | tuple[int, int] = 0,
    ) -> None:  # fmt: skip
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, padding, bias=False)
        self.bn = nn.BatchNorm2d(outputs, eps=0.001)

    def forward(self, x: Tensor) -> Tensor:
        """Features (batch, outputs, ...) of features (batch, inputs, ...)."""
        return F.relu(self.bn(self.conv(x)), inplace=True)


class Branches(nn.Module):
    """Modules side by side on one input, their channels concatenated."""

    def __init__(self, *branches: nn.Module) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x: Tensor) -> Tensor:
        """All branches' features end to end along the channels."""
        return torch.cat([branch(x) for branch in self.branches], 1)


class Channels:
    """Makes convolution units whose channel counts are multiplied, those of the image itself excepted."""

    def __init__(self, widen: int) -> None:
        self.widen = widen

    def conv(
        self, inputs: int, outputs: int, kernel: int | tuple[int, int], stride: int = 1,
        padding: int | tuple[int, int] = 0,
    ) -> ConvUnit:  # fmt: skip
        """A unit for the published channel counts, widened."""
        return ConvUnit(self.count(inputs), outputs * self.widen, kernel, stride, padding)

    def count(self, channels: int) -> int:
        """The widened channel count; an image keeps its 3."""
        return channels if channels == 3 else channels * self.widen


class InceptionNet(nn.Module):
    """Inception blocks, global average pooling and a classifier."""

    def __init__(self, blocks: nn.Sequential, channels: int, classes: int) -> None:
        super().__init__()
        self.blocks = blocks
        self.classifier = nn.Linear(channels, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Scores (batch, classes) of images (batch, 3, size, size)."""
        scores: Tensor = self.classifier(F.adaptive_avg_pool2d(self.blocks(x), 1).flatten(1))
        return scores
