"""Random numbers of PyTorch, Python and NumPy, drawn by the model, the loss and the loop."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import pytest
import torch
from beside_eager import Loop
from torch import Tensor, nn
from torch.nn.functional import dropout, gumbel_softmax

from tests.run.loops.harness import Case, Net, Specification, at, inputs, loop, squares

spec = Specification()


class Layers(nn.Module):
    """Three layers and a last one."""

    def __init__(self) -> None:
        super().__init__()
        self.layers, self.last = nn.ModuleList(nn.Linear(8, 8) for _ in range(3)), nn.Linear(8, 4)


class Skipping(Layers, ABC):
    """The three layers, each of which may be left out."""

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            if not self.leave_out():
                x = torch.tanh(layer(x))
        return self.last(x)

    @abstractmethod
    def leave_out(self) -> bool:
        """Whether the next layer is left out."""


@spec.equal_or_refused
def layers_are_left_out_by_pythons_generator() -> Loop:
    class Own(Skipping):
        def leave_out(self) -> bool:
            return random.random() < 0.5

    return loop(Own())


@spec.equal_or_refused
def layers_are_left_out_by_numpys_generator() -> Loop:
    class Own(Skipping):
        def leave_out(self) -> bool:
            return np.random.rand() < 0.5

    return loop(Own())


@spec.equal_or_refused
def layers_are_left_out_by_a_generator_of_numpy_on_the_module() -> Loop:
    class Own(Skipping):
        def __init__(self) -> None:
            super().__init__()
            self.rng = np.random.default_rng(0)

        def leave_out(self) -> bool:
            return bool(self.rng.random() < 0.5)

    return loop(Own())


@spec.equal_or_refused
def layers_are_left_out_by_a_generator_of_python_on_the_module() -> Loop:
    class Own(Skipping):
        def __init__(self) -> None:
            super().__init__()
            self.rng = random.Random(0)

        def leave_out(self) -> bool:
            return self.rng.random() < 0.5

    return loop(Own())


@spec.equal_or_refused
def layers_are_left_out_by_a_number_of_torch_that_is_read() -> Loop:
    class Own(Skipping):
        def leave_out(self) -> bool:
            return bool(torch.rand(()) < 0.5)

    return loop(Own())


@spec.equal_or_refused
def the_loss_draws_its_weight_from_python() -> Loop:
    return loop(loss=lambda model, batch: squares(model, batch) * random.uniform(0.5, 1.5))


@spec.equal_or_refused
def the_loss_draws_noise_from_numpy() -> Loop:
    def loss(model: Any, batch: Any) -> Tensor:
        return squares(model, batch) * torch.tensor(np.random.rand(4), dtype=torch.float32).mean()

    return loop(loss=loss)


@spec.equal_or_refused
def a_generator_of_numpy_in_the_closure_of_the_loss() -> Loop:
    rng = np.random.default_rng(0)
    return loop(loss=lambda model, batch: squares(model, batch) * rng.random(), also=rng)


@spec.equal
def layers_are_scaled_by_torch() -> Loop:
    class Own(Layers):
        def forward(self, x: Tensor) -> Tensor:
            for layer in self.layers:
                x = x + torch.tanh(layer(x)) * (torch.rand(()) < 0.5)
            return self.last(x)

    return loop(Own())


@spec.equal
def dropout_and_noise_and_permutations_are_drawn() -> Loop:
    class Own(Net):
        def forward(self, x: Tensor) -> Tensor:
            x = dropout(x, 0.3) + 0.1 * torch.randn_like(x)
            return super().forward(x[torch.randperm(4)]) * torch.empty(4).uniform_(0.5, 1.5)

    return loop(Own())


@spec.equal
def a_gumbel_softmax_is_drawn() -> Loop:
    return loop(loss=lambda model, batch: (gumbel_softmax(model(batch["x"])) * batch["y"]).mean())


@spec.equal
def the_user_seeds_torch_in_mid_training() -> Loop:
    model = nn.Sequential(nn.Linear(8, 4), nn.Dropout(0.5))
    return loop(model, before=at({2: lambda: torch.manual_seed(7), 4: lambda: torch.manual_seed(7)}))


@spec.equal
def the_user_draws_numbers_between_steps() -> Loop:
    drawn: list[Tensor] = []
    model = nn.Sequential(nn.Linear(8, 4), nn.Dropout(0.5))
    return loop(model, before=lambda number: drawn.append(torch.rand(number)), also=drawn)


@spec.equal
def the_user_puts_the_generator_back() -> Loop:
    model = nn.Sequential(nn.Linear(8, 4), nn.Dropout(0.5))
    saved: list[Tensor] = []
    edits = {1: lambda: saved.append(torch.get_rng_state()), 3: lambda: torch.set_rng_state(saved[0])}
    return loop(model, before=at(edits))


@spec.equal
def the_user_draws_within_a_fork_of_the_generator() -> Loop:
    def fork(number: int) -> None:
        with torch.random.fork_rng():
            torch.rand(3)

    return loop(nn.Sequential(nn.Linear(8, 4), nn.Dropout(0.5)), before=fork)


@spec.equal
def the_loop_draws_from_python_and_numpy_itself() -> Loop:
    batches = inputs()

    def mix(number: int) -> None:
        share = np.random.beta(0.4, 0.4) + random.random()
        batches[number]["x"].mul_(share)

    return loop(batches=batches, before=mix)


@spec.equal
def batches_are_drawn_by_a_shuffled_loader_as_the_loop_goes() -> Loop:
    batches: list[Any] = inputs()

    def draw(number: int) -> None:
        batches[number] = {"x": torch.randn(4, 8), "y": torch.randn(4, 4)}

    return loop(nn.Sequential(nn.Linear(8, 4), nn.Dropout(0.5)), batches=batches, before=draw)


@spec.equal_or_refused
def forward_draws_from_a_generator_of_its_own() -> Loop:
    class Own(Net):
        def __init__(self) -> None:
            super().__init__()
            self.generator = torch.Generator().manual_seed(3)

        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x + torch.randn(x.shape, generator=self.generator))

    return loop(Own())


@spec.equal_or_refused
def the_loss_draws_from_a_generator_in_its_closure() -> Loop:
    generator = torch.Generator().manual_seed(3)

    def loss(model: Any, batch: Any) -> Tensor:
        return squares(model, batch) * torch.rand((), generator=generator)

    return loop(loss=loss, also=generator)


@spec.equal_or_refused
def forward_seeds_torch_itself() -> Loop:
    class Own(Net):
        def forward(self, x: Tensor) -> Tensor:
            torch.manual_seed(5)
            return super().forward(dropout(x, 0.5))

    return loop(Own())


@spec.equal_or_refused
def forward_draws_within_a_fork_of_the_generator() -> Loop:
    class Own(Net):
        def forward(self, x: Tensor) -> Tensor:
            with torch.random.fork_rng():
                torch.manual_seed(5)
                noise = torch.randn(4, 8)
            return super().forward(x + noise)

    return loop(Own())


@spec.equal_or_refused
def forward_seeds_python() -> Loop:
    class Own(Net):
        def forward(self, x: Tensor) -> Tensor:
            random.seed(5)
            return super().forward(x) * random.random()

    return loop(Own())


@spec.equal_or_refused
def a_draw_of_python_decides_nothing() -> Loop:
    class Own(Net):
        def forward(self, x: Tensor) -> Tensor:
            random.random()
            return super().forward(x)

    return loop(Own())


@spec.equal
def an_unused_draw_of_torch_moves_the_generator() -> Loop:
    class Own(Net):
        def forward(self, x: Tensor) -> Tensor:
            torch.rand(3)
            return super().forward(dropout(x, 0.5))

    return loop(Own())


@pytest.mark.parametrize("case", spec.cases)
def test_random_numbers_are_eagers(case: Case) -> None:
    case.check()
