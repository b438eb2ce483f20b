"""State of layers that are known for it, and state that is kept outside of the model."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from beside_eager import Loop
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from tests.run.loops.harness import Case, Net, Specification, inputs, loop, squares
from tests.run.loops.models import Blend

spec = Specification()
COUNTS: dict[str, Tensor] = {}


@spec.equal
def a_memory_bank_is_written_at_the_samples_of_a_batch() -> Loop:
    class Bank(Net):
        def __init__(self) -> None:
            super().__init__()
            self.bank = torch.zeros(20, 4)

        def forward(self, x: Tensor, rows: Tensor) -> Tensor:
            out = super().forward(x)
            mixed = out + self.bank[rows]
            self.bank[rows] = out.detach()
            return mixed

    batches = [{**batch, "rows": torch.randperm(20)[:4]} for batch in inputs()]
    return loop(Bank(), lambda model, b: mse_loss(model(b["x"], b["rows"]), b["y"]), batches=batches)


@spec.equal_or_refused
def batch_norm_averages_over_all_batches() -> Loop:
    return loop(nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4, momentum=None)))


@spec.equal
def spectral_norm_goes_on_with_its_power_iteration() -> Loop:
    return loop(nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Linear(8, 8)), nn.Tanh(), nn.Linear(8, 4)))


@spec.equal
def a_codebook_is_averaged_in_its_buffers() -> Loop:
    class Codebook(Blend):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("codes", torch.randn(6, 4))
            self.register_buffer("counts", torch.ones(6))

        def keep(self, out: Tensor) -> Tensor:
            chosen = nn.functional.one_hot(torch.cdist(out, self.codes).argmin(1), 6).float()
            quantised = out + (chosen @ self.codes - out).detach()
            self.counts.mul_(0.9).add_(chosen.sum(0), alpha=0.1)
            self.codes.lerp_(chosen.T @ out.detach() / self.counts.unsqueeze(1), 0.1)
            return quantised

    return loop(Codebook())


@spec.equal
def two_modules_share_a_state_that_both_write() -> Loop:
    class Part(nn.Module):
        def __init__(self, shared: Tensor) -> None:
            super().__init__()
            self.layer, self.shared = nn.Linear(8, 8), shared

        def forward(self, x: Tensor) -> Tensor:
            out = self.layer(x) + self.shared
            self.shared.lerp_(out.detach().mean(0), 0.5)
            return out

    shared = torch.zeros(8)
    return loop(nn.Sequential(Part(shared), nn.Tanh(), Part(shared), nn.Linear(8, 4)))


@spec.equal
def a_target_network_is_averaged_within_forward() -> Loop:
    class Target(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.online = Net()
            self.target = copy.deepcopy(self.online).requires_grad_(False)

        def forward(self, x: Tensor) -> Tensor:
            with torch.no_grad():
                for ours, theirs in zip(self.online.parameters(), self.target.parameters(), strict=True):
                    theirs.mul_(0.9).add_(ours, alpha=0.1)
                goal = self.target(x)
            return self.online(x) - goal

    return loop(Target())


@spec.equal_or_refused
def the_state_belongs_to_the_class() -> Loop:
    class Shared(Blend):
        state = torch.zeros(4)

        def keep(self, out: Tensor) -> Tensor:
            mixed = out + type(self).state
            type(self).state = out.detach().mean(0)
            return mixed

    return loop(Shared())


@spec.equal_or_refused
def forward_keeps_its_state_in_a_global() -> Loop:
    class Global(Blend):
        def keep(self, out: Tensor) -> Tensor:
            mixed = out + COUNTS["mean"]
            COUNTS["mean"] = out.detach().mean(0)
            return mixed

    COUNTS["mean"] = torch.zeros(4)
    return loop(Global(), also=COUNTS)


@spec.equal_or_refused
def the_loss_keeps_its_state_in_a_closure() -> Loop:
    scale = [torch.ones(())]

    def loss(model: Any, batch: Any) -> Tensor:
        value = squares(model, batch)
        scale[0] = 0.5 * scale[0] + 0.5 * value.detach()
        return value / scale[0]

    return loop(loss=loss, also=scale)


@spec.equal_or_refused
def forward_keeps_its_state_in_a_default_argument() -> Loop:
    class Default(Net):
        def forward(self, x: Tensor, kept: list[Tensor] = [torch.zeros(4)]) -> Tensor:  # noqa: B006, B008
            out = super().forward(x)
            mixed = out + kept[0]
            kept[0] = out.detach().mean(0)
            return mixed

    return loop(Default())


@spec.equal_or_refused
def a_loss_module_of_its_own_keeps_a_running_scale() -> Loop:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("scale", torch.ones(()))

        def forward(self, out: Tensor, goal: Tensor) -> Tensor:
            value = mse_loss(out, goal)
            self.scale.lerp_(value.detach(), 0.5)
            return value / self.scale

    criterion = Scaled()
    return loop(loss=lambda model, batch: criterion(model(batch["x"]), batch["y"]), also=criterion)


@spec.equal
def state_that_is_not_finite_is_carried() -> Loop:
    class Infinite(Blend):
        def __init__(self) -> None:
            super().__init__()
            self.seen = torch.tensor([float("nan"), float("inf"), -0.0, 1.0])

        def keep(self, out: Tensor) -> Tensor:
            mixed = out + torch.nan_to_num(self.seen, 0.5, 1.0)
            self.seen = self.seen * out.detach().mean(0)
            return mixed

    return loop(Infinite())


@pytest.mark.parametrize("case", spec.cases)
def test_what_a_step_leaves_for_the_next_is_carried(case: Case) -> None:
    case.check()
