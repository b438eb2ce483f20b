"""The small steps that are tested: convolutions, an LSTM, and attention with dropout."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, scaled_dot_product_attention

from planner.capture import capture
from planner.errors import StowageError
from planner.graph import Graph
from planner.plan import SwapPlan, validate
from planner.profile import prepare
from planner.progress import Progress
from planner.step import SGD, Adam, AdamW, Step, TrainStep
from planner.swap import peak_of, plan_swaps

#: Shares of what the arena takes when nothing is swapped; the first that is large enough.
_SHARES = (0.6, 0.75, 0.9, 0.97, 0.99, 0.997)
_PLANNING_SECONDS = 1.0
_CAPTURED = 0.3  # share of the progress
_BATCH, _LENGTH, _WORDS, _WIDTH = 4, 16, 50, 32


class _Convolutions(nn.Module):
    """Convolutions with batch normalisation, one of them around a shortcut."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU())
        self.block = nn.Sequential(nn.Conv2d(16, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU())
        self.head = nn.Linear(16, 10)

    def forward(self, images: Tensor) -> Tensor:
        found = self.stem(images)
        found = nn.functional.max_pool2d(found + self.block(found), 2)
        logits: Tensor = self.head(found.mean((2, 3)))
        return logits


class _Recurrence(nn.Module):
    """An LSTM over words, by PyTorch's own kernels: a plan cannot hold cuDNN's."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(_WORDS, _WIDTH)
        self.layers = nn.LSTM(_WIDTH, _WIDTH, num_layers=2, batch_first=True)
        self.head = nn.Linear(_WIDTH, _WORDS)

    def forward(self, words: Tensor) -> Tensor:
        with torch.backends.cudnn.flags(enabled=False):
            found = self.layers(self.words(words))[0]
        logits: Tensor = self.head(found)
        return logits


class _CausalAttention(nn.Module):
    """Two layers of causal attention, with dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(_WORDS, _WIDTH), nn.Embedding(_LENGTH, _WIDTH)
        self.layers = nn.ModuleList(_Layer() for _ in range(2))
        self.norm, self.head = nn.LayerNorm(_WIDTH), nn.Linear(_WIDTH, _WORDS)

    def forward(self, words: Tensor) -> Tensor:
        found = self.words(words) + self.places.weight
        for layer in self.layers:
            found = layer(found)
        logits: Tensor = self.head(self.norm(found))
        return logits


class _Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.before, self.project = nn.LayerNorm(_WIDTH), nn.Linear(_WIDTH, 3 * _WIDTH)
        self.after = nn.Sequential(
            nn.LayerNorm(_WIDTH), nn.Linear(_WIDTH, 4 * _WIDTH), nn.GELU(), nn.Linear(4 * _WIDTH, _WIDTH),
            nn.Dropout(0.1),
        )  # fmt: skip

    def forward(self, found: Tensor) -> Tensor:
        query, key, value = (
            each.unflatten(-1, (2, -1)).transpose(1, 2) for each in self.project(self.before(found)).chunk(3, -1)
        )
        mixed = scaled_dot_product_attention(query, key, value, is_causal=True)
        found = found + mixed.transpose(1, 2).flatten(2)
        after: Tensor = self.after(found)
        return found + after


def _words() -> tuple[Tensor, Tensor]:
    return torch.randint(0, _WORDS, (_BATCH, _LENGTH)), torch.randint(0, _WORDS, (_BATCH, _LENGTH))


def _word_loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    return cross_entropy(model(batch[0]).flatten(0, 1), batch[1].flatten())


def _images() -> tuple[Tensor, Tensor]:
    return torch.randn(_BATCH, 3, 16, 16), torch.randint(0, 10, (_BATCH,))


def _image_loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    return cross_entropy(model(batch[0]), batch[1])


#: By name, what makes a step.
STEPS: Mapping[str, Callable[[], Step]] = {
    "convolutions": lambda: TrainStep(_Convolutions, _images, loss=_image_loss, optimizer=SGD(lr=0.1, momentum=0.9)),
    "LSTM": lambda: TrainStep(_Recurrence, _words, loss=_word_loss, optimizer=Adam(lr=1e-3)),
    "attention": lambda: TrainStep(_CausalAttention, _words, loss=_word_loss, optimizer=AdamW(lr=1e-3), clip_norm=1.0),
}


@dataclass(frozen=True, eq=False)
class PlannedStep:
    """A step with a plan of it for the device.

    Args:
        name: of the step.
        step: is not changed: what is tested has a copy of its state.
        graph: with its program.
        plan: with copies in both directions.
    """

    name: str
    step: Step
    graph: Graph
    plan: SwapPlan


def planned_step(name: str, device: str, progress: Progress) -> PlannedStep:
    """Capture and plan a step for a device.

    Args:
        name: in `STEPS`.
        device: PyTorch's name of its type.
        progress: of this.

    Raises:
        StowageError: it cannot be captured for the device, or no plan of it swaps and is valid.
    """
    step = STEPS[name]()
    graph = capture(step, device=device, progress=progress.part(0.0, _CAPTURED))
    machine = "cpu" if device == "cpu" else "auto"
    ready = prepare(graph, machine, progress=progress.part(_CAPTURED, 1.0))
    outside = ready.graph.outside_bytes  # on a GPU, kernels may need more of it than all tensors together
    arena = peak_of(ready.graph, ready.machine.device.alignment) - outside
    for share in _SHARES:
        try:
            plan = plan_swaps(
                ready.graph, ready.machine, outside + round(share * arena), seconds=ready.seconds, method="swap",
                time_limit=_PLANNING_SECONDS, progress=False,
            )  # fmt: skip
        except StowageError:
            continue
        problems = validate(plan, ready.graph)
        if problems:
            raise StowageError(f"the plan of {name} is not valid: {problems[0]}")
        if plan.swap_ins and plan.swap_outs:
            return PlannedStep(name, step, ready.graph, plan)
    raise StowageError(f"no plan of {name} within {_SHARES[-1]:.1%} of its peak swaps, so that copies cannot be tested")
