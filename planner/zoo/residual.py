"""Wide residual networks of bottleneck blocks on images."""

from __future__ import annotations

from typing import Literal

import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from planner.errors import StowageError
from planner.zoo.steps import Mode, Optimizer, ZooStep, classification_step, images, require_positive, title

Width = Literal["inner", "full"]

#: Bottleneck blocks per stage, by depth (He et al., Deep Residual Learning, table 1).
BLOCKS = {50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}


class Bottleneck(nn.Module):
    """1x1, 3x3 and 1x1 convolution around a shortcut; `inner` channels inside, `outer` outside."""

    def __init__(self, channels: int, inner: int, outer: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, inner, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(inner)
        self.conv2 = nn.Conv2d(inner, inner, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(inner)
        self.conv3 = nn.Conv2d(inner, outer, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outer)
        self.relu = nn.ReLU(inplace=True)
        self.downsample: nn.Module | None = None
        if stride != 1 or channels != outer:
            self.downsample = nn.Sequential(nn.Conv2d(channels, outer, 1, stride, bias=False), nn.BatchNorm2d(outer))

    def forward(self, x: Tensor) -> Tensor:
        """Features (batch, outer, height / stride, width / stride) of features (batch, channels, height, width)."""
        shortcut = x if self.downsample is None else self.downsample(x)
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.relu(self.bn2(self.conv2(x)))
        x = self.bn3(self.conv3(x))
        x += shortcut
        out: Tensor = self.relu(x)
        return out


class WideResNet(nn.Module):
    """ResNet whose bottlenecks are `widen` times as wide, inside only (`inner`) or everywhere (`full`)."""

    def __init__(self, depth: int, widen: int, width: Width, classes: int) -> None:
        super().__init__()
        everywhere = widen if width == "full" else 1
        base = 64 * everywhere
        self.stem = nn.Sequential(
            nn.Conv2d(3, base, 7, 2, 3, bias=False), nn.BatchNorm2d(base), nn.ReLU(inplace=True),
            nn.MaxPool2d(3, 2, 1),
        )  # fmt: skip
        stages: list[nn.Module] = []
        channels = base
        for stage, blocks in enumerate(BLOCKS[depth]):
            inner, outer = 64 * widen * 2**stage, 256 * everywhere * 2**stage
            layers: list[nn.Module] = []
            for block in range(blocks):
                layers.append(Bottleneck(channels, inner, outer, 2 if block == 0 and stage > 0 else 1))
                channels = outer
            stages.append(nn.Sequential(*layers))
        self.stages = nn.Sequential(*stages)
        self.classifier = nn.Linear(channels, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Scores (batch, classes) of images (batch, 3, size, size)."""
        features = self.stages(self.stem(x))
        scores: Tensor = self.classifier(F.adaptive_avg_pool2d(features, 1).flatten(1))
        return scores


def wresnet(
    *, depth: int = 50, widen: int = 1, image: int = 64, width: Width = "inner", classes: int = 1000, batch: int = 8,
    optimizer: Optimizer = "sgd", mode: Mode = "train", seed: int = 0,
) -> ZooStep:  # fmt: skip
    """Wide residual network on random images; WResNet-152-10 is `depth=152,widen=10,image=224`.

    Args:
        depth: 50, 101 or 152 layers.
        widen: factor on the channels; 1 is the plain ResNet.
        image: height and width of the images, in pixels.
        width: what is widened: the bottlenecks' inner channels (as torchvision's wide ResNets and SwapAdvisor's), or
            all channels (`full`, as Tofu's).
        classes: of the classifier.
        batch: images per step.
        optimizer: `sgd`, `momentum`, `adam` or `adamw`; for training.
        mode: `train`, or `inference`: the forward pass in evaluation mode.
        seed: of weights and batch.

    Raises:
        StowageError: an argument is out of range.
    """
    if depth not in BLOCKS:
        raise StowageError(f"wresnet: depth={depth} is unknown; choose one of {', '.join(map(str, BLOCKS))}")
    if width not in ("inner", "full"):
        raise StowageError(f"wresnet: width={width} is unknown; choose inner or full")
    require_positive("wresnet", widen=widen, classes=classes, batch=batch)
    if image < 32:
        raise StowageError(f"wresnet: image={image} is too small; use at least 32 pixels")
    name = title(
        wresnet, depth=depth, widen=widen, image=image, width=width, classes=classes, batch=batch,
        optimizer=optimizer, mode=mode, seed=seed,
    )  # fmt: skip
    return classification_step(
        name, lambda: WideResNet(depth, widen, width, classes), lambda: images(batch, image, classes),
        optimizer, seed, mode,
    )  # fmt: skip
