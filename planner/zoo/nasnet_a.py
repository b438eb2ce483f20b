"""NASNet-A (Zoph et al., Learning Transferable Architectures, arXiv 1707.07012), no auxiliary head, no path drop."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from planner.errors import StowageError
from planner.zoo.steps import Mode, Optimizer, ZooStep, classification_step, images, require_positive, title

_STEM = 96


class SeparableUnit(nn.Module):
    """Twice: ReLU, depthwise and pointwise convolution, batch normalization; the first may halve the image."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int) -> None:
        super().__init__()
        half = kernel // 2
        self.depthwise1 = nn.Conv2d(inputs, inputs, kernel, stride, half, groups=inputs, bias=False)
        self.pointwise1 = nn.Conv2d(inputs, outputs, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs, eps=0.001)
        self.depthwise2 = nn.Conv2d(outputs, outputs, kernel, 1, half, groups=outputs, bias=False)
        self.pointwise2 = nn.Conv2d(outputs, outputs, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs, eps=0.001)

    def forward(self, x: Tensor) -> Tensor:
        """Features (batch, outputs, ...) of features (batch, inputs, ...)."""
        x = self.bn1(self.pointwise1(self.depthwise1(F.relu(x))))
        out: Tensor = self.bn2(self.pointwise2(self.depthwise2(F.relu(x))))
        return out


class PointwiseUnit(nn.Module):
    """ReLU, 1x1 convolution and batch normalization: brings features to a cell's channels."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 1, bias=False)
        self.bn = nn.BatchNorm2d(outputs, eps=0.001)

    def forward(self, x: Tensor) -> Tensor:
        """Features (batch, outputs, ...) of features (batch, inputs, ...)."""
        out: Tensor = self.bn(self.conv(F.relu(x)))
        return out


class FactorizedReduction(nn.Module):
    """Halves the image by two 1x1 convolutions, one on the even and one on the odd pixels."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.pool = nn.AvgPool2d(1, stride=2, count_include_pad=False)
        self.shift = nn.ZeroPad2d((-1, 1, -1, 1))
        self.even = nn.Conv2d(inputs, outputs // 2, 1, bias=False)
        self.odd = nn.Conv2d(inputs, outputs - outputs // 2, 1, bias=False)
        self.bn = nn.BatchNorm2d(outputs, eps=0.001)

    def forward(self, x: Tensor) -> Tensor:
        """Features (batch, outputs, height / 2, width / 2) of features (batch, inputs, height, width)."""
        x = F.relu(x)
        out: Tensor = self.bn(torch.cat([self.even(self.pool(x)), self.odd(self.pool(self.shift(x)))], 1))
        return out


class NormalCell(nn.Module):
    """Five sums of two branches on the last two cells' outputs, concatenated with the earlier one (figure 4, left)."""

    def __init__(self, filters: int) -> None:
        super().__init__()
        self.left0 = SeparableUnit(filters, filters, 5, 1)
        self.right0 = SeparableUnit(filters, filters, 3, 1)
        self.left1 = SeparableUnit(filters, filters, 5, 1)
        self.right1 = SeparableUnit(filters, filters, 3, 1)
        self.pool = nn.AvgPool2d(3, 1, 1, count_include_pad=False)
        self.left4 = SeparableUnit(filters, filters, 3, 1)

    def forward(self, earlier: Tensor, x: Tensor) -> Tensor:
        """Features (batch, 6 * filters, ...) of two feature maps (batch, filters, ...)."""
        sums = [
            self.left0(x) + self.right0(earlier),
            self.left1(earlier) + self.right1(earlier),
            self.pool(x) + earlier,
            self.pool(earlier) + self.pool(earlier),
            self.left4(x) + x,
        ]
        return torch.cat([earlier, *sums], 1)


class ReductionCell(nn.Module):
    """Five sums of two branches that halve the image, four of them concatenated (figure 4, right)."""

    def __init__(self, earlier: int, filters: int) -> None:
        super().__init__()
        self.left0 = SeparableUnit(filters, filters, 5, 2)
        self.right0 = SeparableUnit(earlier, filters, 7, 2)
        self.max_pool = nn.MaxPool2d(3, 2, 1)
        self.right1 = SeparableUnit(earlier, filters, 7, 2)
        self.average_pool = nn.AvgPool2d(3, 2, 1, count_include_pad=False)
        self.right2 = SeparableUnit(earlier, filters, 5, 2)
        self.smooth = nn.AvgPool2d(3, 1, 1, count_include_pad=False)
        self.left4 = SeparableUnit(filters, filters, 3, 1)

    def forward(self, earlier: Tensor, x: Tensor) -> Tensor:
        """Features (batch, 4 * filters, height / 2, width / 2) of maps (batch, earlier, ...), (batch, filters, ...)."""
        first = self.left0(x) + self.right0(earlier)
        second = self.max_pool(x) + self.right1(earlier)
        third = self.average_pool(x) + self.right2(earlier)
        fourth = second + self.smooth(first)
        fifth = self.left4(first) + self.max_pool(x)
        return torch.cat([second, third, fourth, fifth], 1)


class NasnetCell(nn.Module):
    """Brings the last two cells' outputs to one shape and runs a normal or a reduction cell on them."""

    def __init__(self, adapt_earlier: nn.Module, adapt: nn.Module, body: nn.Module) -> None:
        super().__init__()
        self.adapt_earlier = adapt_earlier
        self.adapt = adapt
        self.body = body

    def forward(self, earlier: Tensor, x: Tensor) -> Tensor:
        """The cell's features from those of the two cells before it."""
        out: Tensor = self.body(self.adapt_earlier(earlier), self.adapt(x))
        return out


class NASNet(nn.Module):
    """A stem, three stages of normal cells with reduction cells between them, and a classifier."""

    def __init__(self, cells: int, filters: int, classes: int) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, _STEM, 3, 2, bias=False), nn.BatchNorm2d(_STEM, eps=0.001))
        self.cells = nn.ModuleList(_cells(cells, filters))
        self.classifier = nn.Linear(6 * 4 * filters, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Scores (batch, classes) of images (batch, 3, size, size)."""
        earlier = x = self.stem(x)
        for cell in self.cells:
            earlier, x = x, cell(earlier, x)
        scores: Tensor = self.classifier(F.adaptive_avg_pool2d(F.relu(x), 1).flatten(1))
        return scores


def _cells(cells: int, filters: int) -> Iterator[NasnetCell]:
    # the first stem cell reads the stem twice, the second time as it is
    yield NasnetCell(nn.Identity(), PointwiseUnit(_STEM, filters // 4), ReductionCell(_STEM, filters // 4))
    earlier, channels, reduced = _STEM, filters, True
    plan = [(filters // 2, True), *[(filters, False)] * cells]
    for stage in (2, 4):
        plan += [(stage * filters, True), *[(stage * filters, False)] * cells]
    for width, reduce in plan:
        adapt_earlier = FactorizedReduction(earlier, width) if reduced else PointwiseUnit(earlier, width)
        body = ReductionCell(width, width) if reduce else NormalCell(width)
        yield NasnetCell(adapt_earlier, PointwiseUnit(channels, width), body)
        earlier, channels, reduced = channels, (4 if reduce else 6) * width, reduce


def nasnet(
    *, cells: int = 8, filters: int = 168, image: int = 331, classes: int = 1000, batch: int = 1,
    optimizer: Optimizer = "sgd", mode: Mode = "train", seed: int = 0,
) -> ZooStep:  # fmt: skip
    """NASNet-A on random images; SwapAdvisor's NasNet-25 is best met by the defaults.

    Args:
        cells: normal cells per stage; NASNet-A large has 6.
        filters: of a cell in the first stage, a multiple of 4; NASNet-A large has 168.
        image: height and width of the images, in pixels.
        classes: of the classifier.
        batch: images per step.
        optimizer: `sgd`, `momentum`, `adam` or `adamw`; for training.
        mode: `train`, or `inference`: the forward pass in evaluation mode.
        seed: of weights and batch.

    Raises:
        StowageError: an argument is out of range.
    """
    require_positive("nasnet", cells=cells, filters=filters, classes=classes, batch=batch)
    if filters % 4:
        raise StowageError(f"nasnet: filters={filters} must be a multiple of 4")
    if image < 33:
        raise StowageError(f"nasnet: image={image} is too small; use at least 33 pixels")
    name = title(
        nasnet, cells=cells, filters=filters, image=image, classes=classes, batch=batch,
        optimizer=optimizer, mode=mode, seed=seed,
    )  # fmt: skip
    return classification_step(
        name, lambda: NASNet(cells, filters, classes), lambda: images(batch, image, classes), optimizer, seed, mode
    )
