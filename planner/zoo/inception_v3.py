"""Inception-v3 (Szegedy et al., Rethinking the Inception Architecture, arXiv 1512.00567), without auxiliary head."""

from __future__ import annotations

from torch import nn

from planner.zoo.inception_blocks import Branches, Channels, InceptionNet

_TALL, _TALL_PAD = (7, 1), (3, 0)
_FLAT, _FLAT_PAD = (1, 7), (0, 3)


def inception_v3(widen: int, classes: int) -> InceptionNet:
    """The network with all channels multiplied by `widen`."""
    make = Channels(widen)
    conv = make.conv
    stem = [
        conv(3, 32, 3, 2), conv(32, 32, 3), conv(32, 64, 3, 1, 1), nn.MaxPool2d(3, 2),
        conv(64, 80, 1), conv(80, 192, 3), nn.MaxPool2d(3, 2),
    ]  # fmt: skip
    blocks = [
        _block_a(make, 192, 32), _block_a(make, 256, 64), _block_a(make, 288, 64),
        _block_b(make),
        _block_c(make, 128), _block_c(make, 160), _block_c(make, 160), _block_c(make, 192),
        _block_d(make),
        _block_e(make, 1280), _block_e(make, 2048),
    ]  # fmt: skip
    return InceptionNet(nn.Sequential(*stem, *blocks), make.count(2048), classes)


def _pool() -> nn.Module:
    return nn.AvgPool2d(3, 1, 1)


def _block_a(make: Channels, inputs: int, pooled: int) -> nn.Module:
    conv = make.conv
    return Branches(
        conv(inputs, 64, 1),
        nn.Sequential(conv(inputs, 48, 1), conv(48, 64, 5, 1, 2)),
        nn.Sequential(conv(inputs, 64, 1), conv(64, 96, 3, 1, 1), conv(96, 96, 3, 1, 1)),
        nn.Sequential(_pool(), conv(inputs, pooled, 1)),
    )


def _block_b(make: Channels) -> nn.Module:
    conv = make.conv
    return Branches(
        conv(288, 384, 3, 2),
        nn.Sequential(conv(288, 64, 1), conv(64, 96, 3, 1, 1), conv(96, 96, 3, 2)),
        nn.MaxPool2d(3, 2),
    )


def _block_c(make: Channels, inner: int) -> nn.Module:
    conv = make.conv
    return Branches(
        conv(768, 192, 1),
        nn.Sequential(
            conv(768, inner, 1), conv(inner, inner, _FLAT, 1, _FLAT_PAD), conv(inner, 192, _TALL, 1, _TALL_PAD)
        ),
        nn.Sequential(
            conv(768, inner, 1), conv(inner, inner, _TALL, 1, _TALL_PAD), conv(inner, inner, _FLAT, 1, _FLAT_PAD),
            conv(inner, inner, _TALL, 1, _TALL_PAD), conv(inner, 192, _FLAT, 1, _FLAT_PAD),
        ),
        nn.Sequential(_pool(), conv(768, 192, 1)),
    )  # fmt: skip


def _block_d(make: Channels) -> nn.Module:
    conv = make.conv
    return Branches(
        nn.Sequential(conv(768, 192, 1), conv(192, 320, 3, 2)),
        nn.Sequential(
            conv(768, 192, 1), conv(192, 192, _FLAT, 1, _FLAT_PAD), conv(192, 192, _TALL, 1, _TALL_PAD),
            conv(192, 192, 3, 2),
        ),
        nn.MaxPool2d(3, 2),
    )  # fmt: skip


def _block_e(make: Channels, inputs: int) -> nn.Module:
    conv = make.conv

    def fork() -> nn.Module:
        return Branches(conv(384, 384, (1, 3), 1, (0, 1)), conv(384, 384, (3, 1), 1, (1, 0)))

    return Branches(
        conv(inputs, 320, 1),
        nn.Sequential(conv(inputs, 384, 1), fork()),
        nn.Sequential(conv(inputs, 448, 1), conv(448, 384, 3, 1, 1), fork()),
        nn.Sequential(_pool(), conv(inputs, 192, 1)),
    )
