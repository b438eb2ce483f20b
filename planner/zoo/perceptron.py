"""Multi-layer perceptron, the smallest model of the zoo."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from planner.zoo.steps import Batch, Mode, Optimizer, ZooStep, classification_step, require_positive, title


class MLP(nn.Module):
    """Linear layers of one width with ReLU between them, and a linear classifier."""

    def __init__(self, layers: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(layers))
        self.classifier = nn.Linear(hidden, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Scores (batch, classes) of vectors (batch, hidden)."""
        for layer in self.layers:
            x = F.relu(layer(x))
        scores: Tensor = self.classifier(x)
        return scores


def mlp(
    *, layers: int = 4, hidden: int = 512, classes: int = 10, batch: int = 64, optimizer: Optimizer = "sgd",
    mode: Mode = "train", seed: int = 0,
) -> ZooStep:  # fmt: skip
    """Multi-layer perceptron on random vectors.

    Args:
        layers, hidden: how many hidden layers, and their width.
        classes: of the classifier.
        batch: vectors per step.
        optimizer: `sgd`, `momentum`, `adam` or `adamw`; for training.
        mode: `train`, or `inference`: the forward pass in evaluation mode.
        seed: of weights and batch.

    Raises:
        StowageError: an argument is out of range.
    """
    require_positive("mlp", layers=layers, hidden=hidden, classes=classes, batch=batch)

    def data() -> Batch:
        return torch.randn(batch, hidden), torch.randint(0, classes, (batch,))

    name = title(
        mlp, layers=layers, hidden=hidden, classes=classes, batch=batch, optimizer=optimizer, mode=mode, seed=seed
    )
    return classification_step(name, lambda: MLP(layers, hidden, classes), data, optimizer, seed, mode)
