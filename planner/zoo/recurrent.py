"""LSTM networks unrolled over time: one direction, and both."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from planner.zoo.steps import Batch, Mode, Optimizer, ZooStep, classification_step, require_positive, title


class LSTMCell(nn.Module):
    """One step of one LSTM layer, written out so that every op is visible to the planner."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.hidden = hidden
        self.from_input = nn.Linear(inputs, 4 * hidden)
        self.from_hidden = nn.Linear(hidden, 4 * hidden, bias=False)

    def forward(self, x: Tensor, state: tuple[Tensor, Tensor] | None) -> tuple[Tensor, Tensor]:
        """The next (hidden, cell), each (batch, hidden), from x (batch, inputs); without `state` both were zero."""
        gates = self.from_input(x)
        if state is not None:
            gates = gates + self.from_hidden(state[0])
        write, forget, candidate, read = gates.chunk(4, 1)
        cell = torch.sigmoid(write) * torch.tanh(candidate)
        if state is not None:
            cell = torch.sigmoid(forget) * state[1] + cell
        return torch.sigmoid(read) * torch.tanh(cell), cell


class RNN(nn.Module):
    """LSTM layers on top of each other, run step by step, and a classifier of every step's output."""

    def __init__(self, layers: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.cells = nn.ModuleList(LSTMCell(hidden, hidden) for _ in range(layers))
        self.classifier = nn.Linear(hidden, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Scores (steps, batch, classes) of vectors (steps, batch, hidden)."""
        states: list[tuple[Tensor, Tensor] | None] = [None] * len(self.cells)
        scores = []
        for value in x.unbind(0):
            y = value
            for layer, cell in enumerate(self.cells):
                y, memory = cell(y, states[layer])
                states[layer] = (y, memory)
            scores.append(self.classifier(y))
        return torch.stack(scores)


class BRNN(nn.Module):
    """LSTM layers that each run over the steps in both directions; the next layer reads both."""

    def __init__(self, layers: int, hidden: int, classes: int) -> None:
        super().__init__()
        inputs = [hidden if layer == 0 else 2 * hidden for layer in range(layers)]
        self.forwards = nn.ModuleList(LSTMCell(size, hidden) for size in inputs)
        self.backwards = nn.ModuleList(LSTMCell(size, hidden) for size in inputs)
        self.classifier = nn.Linear(2 * hidden, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Scores (steps, batch, classes) of vectors (steps, batch, hidden)."""
        values: Sequence[Tensor] = x.unbind(0)
        for forwards, backwards in zip(self.forwards, self.backwards, strict=True):
            ahead = _unroll(forwards, values)
            behind = _unroll(backwards, values[::-1])[::-1]
            values = [torch.cat(both, 1) for both in zip(ahead, behind, strict=True)]
        return torch.stack([self.classifier(value) for value in values])


def _unroll(cell: nn.Module, values: Sequence[Tensor]) -> list[Tensor]:
    state: tuple[Tensor, Tensor] | None = None
    outputs = []
    for value in values:
        state = cell(value, state)
        assert state is not None
        outputs.append(state[0])
    return outputs


def rnn(
    *, layers: int = 2, hidden: int = 512, steps: int = 20, classes: int = 1000, batch: int = 16,
    optimizer: Optimizer = "sgd", mode: Mode = "train", seed: int = 0,
) -> ZooStep:  # fmt: skip
    """LSTM network, unrolled over its steps; RNN-8-8K is `layers=8,hidden=8192`.

    Args:
        layers, hidden: LSTM layers and the size of their state; the input vectors have that size too.
        steps: how often every layer is unrolled.
        classes: of the classifier after every step.
        batch: sequences per step.
        optimizer: `sgd`, `momentum`, `adam` or `adamw`; for training.
        mode: `train`, or `inference`: the forward pass in evaluation mode.
        seed: of weights and batch.

    Raises:
        StowageError: an argument is out of range.
    """
    require_positive("rnn", layers=layers, hidden=hidden, steps=steps, classes=classes, batch=batch)
    name = title(
        rnn, layers=layers, hidden=hidden, steps=steps, classes=classes, batch=batch,
        optimizer=optimizer, mode=mode, seed=seed,
    )  # fmt: skip
    return classification_step(
        name, lambda: RNN(layers, hidden, classes), lambda: _batch(steps, batch, hidden, classes),
        optimizer, seed, mode,
    )  # fmt: skip


def brnn(
    *, layers: int = 2, hidden: int = 512, steps: int = 20, classes: int = 1000, batch: int = 16,
    optimizer: Optimizer = "sgd", mode: Mode = "train", seed: int = 0,
) -> ZooStep:  # fmt: skip
    """LSTM network in both directions, unrolled over its steps; BRNN-4-8K is `layers=4,hidden=8192`.

    Args:
        layers, hidden: bidirectional LSTM layers and the size of one direction's state; the input vectors have that
            size too.
        steps: how often every layer is unrolled.
        classes: of the classifier after every step.
        batch: sequences per step.
        optimizer: `sgd`, `momentum`, `adam` or `adamw`; for training.
        mode: `train`, or `inference`: the forward pass in evaluation mode.
        seed: of weights and batch.

    Raises:
        StowageError: an argument is out of range.
    """
    require_positive("brnn", layers=layers, hidden=hidden, steps=steps, classes=classes, batch=batch)
    name = title(
        brnn, layers=layers, hidden=hidden, steps=steps, classes=classes, batch=batch,
        optimizer=optimizer, mode=mode, seed=seed,
    )  # fmt: skip
    return classification_step(
        name, lambda: BRNN(layers, hidden, classes), lambda: _batch(steps, batch, hidden, classes),
        optimizer, seed, mode,
    )  # fmt: skip


def _batch(steps: int, batch: int, hidden: int, classes: int) -> Batch:
    return torch.randn(steps, batch, hidden), torch.randint(0, classes, (steps, batch))
