"""Training steps small enough to be made many times, each with something that is easy to get wrong."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, dropout, mse_loss, relu

from planner import zoo
from planner.plan import SwapPlan
from planner.profile import prepare
from planner.step import SGD, AdamW, Step, TrainStep
from planner.swap import plan_swaps


class Convolutions(nn.Module):
    """Batch normalisation updates its running statistics in place, and so do the activations."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for channels in (3, *[16] * 8):
            layers += [nn.Conv2d(channels, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(True)]
        self.features = nn.Sequential(*layers)
        self.scores = nn.Linear(16, 10)

    def forward(self, images: Tensor) -> Tensor:
        return self.scores(self.features(images).mean((2, 3)))


class Branches(nn.Module):
    """Two branches with dropout of different sizes: either may go first, and each must draw its own numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.wide, self.narrow = nn.Linear(32, 96), nn.Linear(32, 24)
        self.last = nn.Linear(24, 1)

    def forward(self, x: Tensor) -> Tensor:
        wide = dropout(relu(self.wide(x)), 0.5)
        narrow = dropout(relu(self.narrow(x)), 0.25)
        return self.last(narrow + wide.reshape(len(x), 4, 24).sum(1))


class Normalisations(nn.Module):
    """Under autocast the statistics of each are more precise than what they are statistics of; a tied weight."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.scores = nn.Embedding(40, 32), nn.Linear(32, 40, bias=False)
        self.scores.weight = self.words.weight
        self.layers = nn.ModuleList(nn.Conv1d(32, 32, 3, padding=1) for _ in range(3))
        self.norms = nn.ModuleList([nn.BatchNorm1d(32), nn.GroupNorm(4, 32), nn.LayerNorm(12)])

    def forward(self, words: Tensor) -> Tensor:
        x = self.words(words).transpose(1, 2)
        for layer, norm in zip(self.layers, self.norms, strict=True):
            x = x + norm(layer(x))
        return self.scores(x.transpose(1, 2))


def planned(step: Step, budget: str) -> SwapPlan:
    """The first plan there is within a budget: what is tested is how plans are run, and a better one swaps no more."""
    ready = prepare(step, "cpu")
    return plan_swaps(ready.graph, ready.machine, budget, seconds=ready.seconds, time_limit=0)


def mlp() -> TrainStep:
    return zoo.load("mlp:layers=8,hidden=96,batch=32,optimizer=adam")


def convolutions() -> TrainStep:
    return TrainStep(
        Convolutions,
        lambda: {"x": torch.randn(4, 3, 16, 16), "y": torch.randint(0, 10, (4,))},
        loss=lambda model, batch: cross_entropy(model(batch["x"]), batch["y"]),
        optimizer=SGD(lr=0.1, momentum=0.9, weight_decay=1e-4),
    )


def lstm() -> TrainStep:
    return zoo.load("rnn:layers=2,hidden=48,steps=6,classes=24,batch=8")


def gpt() -> TrainStep:
    return zoo.load("gpt:layers=3,hidden=48,heads=4,sequence=16,vocabulary=50,dropout=0.1,batch=4,optimizer=adamw")


def branches(lr: float = 1e-2) -> TrainStep:
    return TrainStep(
        Branches,
        lambda: (torch.randn(16, 32), torch.randn(16, 1)),
        loss=lambda model, batch: mse_loss(model(batch[0]), batch[1]),
        optimizer=AdamW(lr=lambda step: lr / (step + 1)),
    )


def normalisations() -> TrainStep:
    return TrainStep(
        Normalisations,
        lambda: (torch.randint(0, 40, (8, 12)), torch.randint(0, 40, (8, 12))),
        loss=lambda model, batch: cross_entropy(model(batch[0]).flatten(0, 1), batch[1].flatten()),
        optimizer=AdamW(lr=1e-3, amsgrad=True),
        autocast=torch.bfloat16,
        clip_norm=0.5,
        micro_batches=2,
    )


ALL = {"mlp": mlp, "convolutions": convolutions, "lstm": lstm, "gpt": gpt}
