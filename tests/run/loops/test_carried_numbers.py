"""Numbers, flags and caches that forward changes, and values that it leaves for a log."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from beside_eager import Loop
from torch import Tensor, nn

from tests.run.loops.harness import Case, Net, Specification, loop, squares
from tests.run.loops.models import Blend

spec = Specification()


@spec.equal_or_refused
def a_list_grows_in_every_step() -> Loop:
    class Growing(Blend):
        def __init__(self) -> None:
            super().__init__()
            self.seen: list[Tensor] = []

        def keep(self, out: Tensor) -> Tensor:
            self.seen.append(out.detach())
            return out + torch.stack(self.seen).mean(0)

    return loop(Growing())


@spec.equal_or_refused
def a_number_counts_the_steps_and_nobody_reads_it() -> Loop:
    class Counting(Blend):
        n = 0

        def keep(self, out: Tensor) -> Tensor:
            self.n += 1
            return out

    return loop(Counting())


@spec.equal_or_refused
def a_number_counts_the_steps_and_scales_the_output() -> Loop:
    class Counting(Blend):
        def __init__(self) -> None:
            super().__init__()
            self.n = 0

        def keep(self, out: Tensor) -> Tensor:
            self.n += 1
            return out / self.n

    return loop(Counting())


@spec.equal_or_refused
def a_number_in_a_dict_of_a_dict_counts_the_steps() -> Loop:
    class Counting(Blend):
        def __init__(self) -> None:
            super().__init__()
            self.stats = {"counts": {"steps": 1}}

        def keep(self, out: Tensor) -> Tensor:
            self.stats["counts"]["steps"] += 1
            return out / self.stats["counts"]["steps"]

    return loop(Counting())


@spec.equal_or_refused
def every_other_step_takes_another_branch() -> Loop:
    class Alternating(Blend):
        def __init__(self) -> None:
            super().__init__()
            self.odd = False

        def keep(self, out: Tensor) -> Tensor:
            self.odd = not self.odd
            return out.sin() if self.odd else out.cos()

    return loop(Alternating())


@spec.equal
def a_tensor_counts_the_steps() -> Loop:
    class Counting(Blend):
        def __init__(self) -> None:
            super().__init__()
            self.n = torch.zeros(())

        def keep(self, out: Tensor) -> Tensor:
            self.n = self.n + 1
            return out / self.n

    return loop(Counting())


@spec.equal
def a_buffer_of_integers_counts_the_steps_in_place() -> Loop:
    class Counting(Blend):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("n", torch.zeros((), dtype=torch.long))

        def keep(self, out: Tensor) -> Tensor:
            self.n += 1
            return out / self.n

    return loop(Counting())


@spec.equal_or_refused
def the_greatest_value_so_far_is_kept_as_a_number() -> Loop:
    class Greatest(Blend):
        def __init__(self) -> None:
            super().__init__()
            self.greatest = 1.0

        def keep(self, out: Tensor) -> Tensor:
            self.greatest = max(self.greatest, out.detach().abs().max().item())
            return out / self.greatest

    return loop(Greatest())


@spec.equal
def the_greatest_value_so_far_is_kept_as_a_tensor() -> Loop:
    class Greatest(Blend):
        def __init__(self) -> None:
            super().__init__()
            self.greatest = torch.ones(())

        def keep(self, out: Tensor) -> Tensor:
            self.greatest = torch.maximum(self.greatest, out.detach().abs().max())
            return out / self.greatest

    return loop(Greatest())


@spec.equal
def the_loss_leaves_a_value_on_the_model() -> Loop:
    def loss(model: Any, batch: Any) -> Tensor:
        value = squares(model, batch)
        model.last_loss = value.detach()
        return value

    return loop(loss=loss)


@spec.equal
def the_loss_is_divided_by_the_last_one_that_the_model_keeps() -> Loop:
    def loss(model: Any, batch: Any) -> Tensor:
        value = squares(model, batch)
        scaled = value / model.last_loss
        model.last_loss = value.detach()
        return scaled

    model = Net()
    model.last_loss = torch.ones(())
    return loop(model, loss)


@spec.equal
def forward_leaves_what_it_computed_in_a_dict_for_a_log() -> Loop:
    class Logging(Blend):
        def __init__(self) -> None:
            super().__init__()
            self.log: dict[str, Tensor] = {}

        def keep(self, out: Tensor) -> Tensor:
            self.log["mean"], self.log["out"] = out.detach().mean(), out.detach()
            return out

    return loop(Logging())


@spec.equal
def the_user_reads_between_steps_what_forward_left() -> Loop:
    class Logging(Blend):
        def keep(self, out: Tensor) -> Tensor:
            self.mean = out.detach().mean()
            return out

    model, read = Logging(), []
    return loop(model, after=lambda number, loss: read.append(float(model.mean)), also=read)


@spec.equal_or_refused
def the_first_batch_initialises_a_layer_behind_a_flag() -> Loop:
    class ActNorm(Blend):
        def __init__(self) -> None:
            super().__init__()
            self.shift, self.initialised = nn.Parameter(torch.zeros(4)), False

        def keep(self, out: Tensor) -> Tensor:
            if not self.initialised:
                self.shift.data.copy_(-out.detach().mean(0))
                self.initialised = True
            return out + self.shift

    return loop(ActNorm())


@spec.equal_or_refused
def the_first_batch_initialises_a_layer_behind_a_buffer() -> Loop:
    class ActNorm(Blend):
        def __init__(self) -> None:
            super().__init__()
            self.shift = nn.Parameter(torch.zeros(4))
            self.register_buffer("initialised", torch.tensor(False))

        def keep(self, out: Tensor) -> Tensor:
            if not self.initialised:
                self.shift.data.copy_(-out.detach().mean(0))
                self.initialised.fill_(True)
            return out + self.shift

    return loop(ActNorm())


@spec.equal
def a_table_is_made_in_the_first_forward_and_kept() -> Loop:
    class Table(Blend):
        table = None

        def keep(self, out: Tensor) -> Tensor:
            if self.table is None:
                self.table = torch.arange(4.0).sin()
            return out + self.table

    return loop(Table())


@spec.equal
def tables_are_kept_by_shape_in_a_dict() -> Loop:
    class Tables(Blend):
        def __init__(self) -> None:
            super().__init__()
            self.tables: dict[tuple[int, ...], Tensor] = {}

        def keep(self, out: Tensor) -> Tensor:
            shape = tuple(out.shape)
            if shape not in self.tables:
                self.tables[shape] = torch.linspace(0, 1, out.numel()).view(shape)
            return out * self.tables[shape]

    return loop(Tables())


@pytest.mark.parametrize("case", spec.cases)
def test_what_a_step_leaves_for_the_next_is_carried(case: Case) -> None:
    case.check()
