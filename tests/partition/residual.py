"""A residual network of a few bottlenecks: what is split in it is split in deeper ones too."""

import torch
from torch import nn

from planner.step import TrainStep


class _Bottleneck(nn.Module):
    """Three convolutions around a shortcut, which a fourth one brings to another size where that is needed."""

    def __init__(self, channels: int, inner: int, outer: int, stride: int) -> None:
        super().__init__()

        def convolution(before: int, after: int, size: int, step: int) -> nn.Module:
            return nn.Sequential(
                nn.Conv2d(before, after, size, step, size // 2, bias=False), nn.BatchNorm2d(after)
            )  # fmt: skip

        self.first, self.second = convolution(channels, inner, 1, 1), convolution(inner, inner, 3, stride)
        self.third = convolution(inner, outer, 1, 1)
        self.shortcut = nn.Identity() if channels == outer else convolution(channels, outer, 1, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made = self.third(self.second(self.first(x).relu_()).relu_())
        made += self.shortcut(x)
        return made.relu_()


def residual(batch: int = 8) -> TrainStep:
    """A step of the network on random images of 32 by 32 pixels."""

    def model() -> nn.Module:
        stem = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)
        blocks = [(64, 64, 256, 1), (256, 64, 256, 1), (256, 128, 512, 2), (512, 128, 512, 1)]
        head = nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000)
        return nn.Sequential(*stem, *(_Bottleneck(*sizes) for sizes in blocks), *head)

    batches = {"x": torch.randn(batch, 3, 32, 32), "y": torch.randint(1000, (batch,))}
    return TrainStep(model, batches, loss=lambda m, b: nn.functional.cross_entropy(m(b["x"]), b["y"]))
