"""Inception-v4 (Szegedy et al., Inception-v4, Inception-ResNet, arXiv 1602.07261)."""

from __future__ import annotations

from torch import nn

from planner.zoo.inception_blocks import Branches, Channels, InceptionNet

_TALL, _TALL_PAD = (7, 1), (3, 0)
_FLAT, _FLAT_PAD = (1, 7), (0, 3)


def inception_v4(widen: int, classes: int) -> InceptionNet:
    """The network with all channels multiplied by `widen`."""
    make = Channels(widen)
    blocks = [
        *_stem(make),
        *(_block_a(make) for _ in range(4)),
        _reduction_a(make),
        *(_block_b(make) for _ in range(7)),
        _reduction_b(make),
        *(_block_c(make) for _ in range(3)),
    ]
    return InceptionNet(nn.Sequential(*blocks), make.count(1536), classes)


def _pool() -> nn.Module:
    return nn.AvgPool2d(3, 1, 1, count_include_pad=False)


def _stem(make: Channels) -> list[nn.Module]:
    conv = make.conv
    return [
        conv(3, 32, 3, 2), conv(32, 32, 3), conv(32, 64, 3, 1, 1),
        Branches(nn.MaxPool2d(3, 2), conv(64, 96, 3, 2)),
        Branches(
            nn.Sequential(conv(160, 64, 1), conv(64, 96, 3)),
            nn.Sequential(
                conv(160, 64, 1), conv(64, 64, _FLAT, 1, _FLAT_PAD), conv(64, 64, _TALL, 1, _TALL_PAD),
                conv(64, 96, 3),
            ),
        ),
        Branches(conv(192, 192, 3, 2), nn.MaxPool2d(3, 2)),
    ]  # fmt: skip


def _block_a(make: Channels) -> nn.Module:
    conv = make.conv
    return Branches(
        conv(384, 96, 1),
        nn.Sequential(conv(384, 64, 1), conv(64, 96, 3, 1, 1)),
        nn.Sequential(conv(384, 64, 1), conv(64, 96, 3, 1, 1), conv(96, 96, 3, 1, 1)),
        nn.Sequential(_pool(), conv(384, 96, 1)),
    )


def _reduction_a(make: Channels) -> nn.Module:
    conv = make.conv
    return Branches(
        conv(384, 384, 3, 2),
        nn.Sequential(conv(384, 192, 1), conv(192, 224, 3, 1, 1), conv(224, 256, 3, 2)),
        nn.MaxPool2d(3, 2),
    )


def _block_b(make: Channels) -> nn.Module:
    conv = make.conv
    return Branches(
        conv(1024, 384, 1),
        nn.Sequential(conv(1024, 192, 1), conv(192, 224, _FLAT, 1, _FLAT_PAD), conv(224, 256, _TALL, 1, _TALL_PAD)),
        nn.Sequential(
            conv(1024, 192, 1), conv(192, 192, _TALL, 1, _TALL_PAD), conv(192, 224, _FLAT, 1, _FLAT_PAD),
            conv(224, 224, _TALL, 1, _TALL_PAD), conv(224, 256, _FLAT, 1, _FLAT_PAD),
        ),
        nn.Sequential(_pool(), conv(1024, 128, 1)),
    )  # fmt: skip


def _reduction_b(make: Channels) -> nn.Module:
    conv = make.conv
    return Branches(
        nn.Sequential(conv(1024, 192, 1), conv(192, 192, 3, 2)),
        nn.Sequential(
            conv(1024, 256, 1), conv(256, 256, _FLAT, 1, _FLAT_PAD), conv(256, 320, _TALL, 1, _TALL_PAD),
            conv(320, 320, 3, 2),
        ),
        nn.MaxPool2d(3, 2),
    )  # fmt: skip


def _block_c(make: Channels) -> nn.Module:
    conv = make.conv

    def fork(inputs: int) -> nn.Module:
        return Branches(conv(inputs, 256, (1, 3), 1, (0, 1)), conv(inputs, 256, (3, 1), 1, (1, 0)))

    return Branches(
        conv(1536, 256, 1),
        nn.Sequential(conv(1536, 384, 1), fork(384)),
        nn.Sequential(
            conv(1536, 384, 1), conv(384, 448, (1, 3), 1, (0, 1)), conv(448, 512, (3, 1), 1, (1, 0)), fork(512)
        ),
        nn.Sequential(_pool(), conv(1536, 256, 1)),
    )
