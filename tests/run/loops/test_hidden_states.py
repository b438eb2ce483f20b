"""The hidden state of a recurrent model goes on from batch to batch, wherever it is kept."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from beside_eager import Loop
from torch import Tensor, nn

from tests.run.loops.harness import Case, Specification, at, loop

spec = Specification()
Hidden = namedtuple("Hidden", "h c")


@dataclass
class Memory:
    h: Tensor | None = None
    seen: list[Tensor] = field(default_factory=list)


class Recurrent(nn.Module):
    """An LSTM cell whose hidden state goes on from batch to batch."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.last = nn.LSTMCell(8, 8), nn.Linear(8, 4)
        self.state: Any = None

    def read(self) -> Any:
        return self.state

    def keep(self, h: Tensor, c: Tensor) -> None:
        self.state = (h, c)

    def forward(self, x: Tensor) -> Tensor:
        h, c = self.cell(x, self.read())
        self.keep(h.detach(), c.detach())
        return self.last(h)


@spec.equal
def an_lstm_state_is_none_at_first_and_then_a_tuple() -> Loop:
    return loop(Recurrent())


@spec.equal
def a_layer_of_lstm_carries_its_hidden_state_over_batches() -> Loop:
    class Stateful(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm, self.last, self.hidden = nn.LSTM(8, 8, batch_first=True), nn.Linear(8, 4), None

        def forward(self, x: Tensor) -> Tensor:
            out, hidden = self.lstm(x.unsqueeze(1), self.hidden)
            self.hidden = tuple(part.detach() for part in hidden)
            return self.last(out[:, -1])

    return loop(Stateful())


@spec.equal
def an_lstm_state_is_kept_in_a_dict() -> Loop:
    class InDict(Recurrent):
        def read(self) -> Any:
            return self.state and (self.state["h"], self.state["c"])

        def keep(self, h: Tensor, c: Tensor) -> None:
            self.state = {"h": h, "c": c}

    return loop(InDict())


@spec.equal
def an_lstm_state_is_kept_in_a_dict_that_stays() -> Loop:
    class InDict(Recurrent):
        def __init__(self) -> None:
            super().__init__()
            self.state = {}

        def read(self) -> Any:
            return (self.state["h"], self.state["c"]) if self.state else None

        def keep(self, h: Tensor, c: Tensor) -> None:
            self.state["h"], self.state["c"] = h, c

    return loop(InDict())


@spec.equal
def an_lstm_state_is_kept_in_a_list() -> Loop:
    class InList(Recurrent):
        def __init__(self) -> None:
            super().__init__()
            self.state = [torch.zeros(4, 8), torch.zeros(4, 8)]

        def read(self) -> Any:
            return tuple(self.state)

        def keep(self, h: Tensor, c: Tensor) -> None:
            self.state[:] = h, c

    return loop(InList())


@spec.equal
def an_lstm_state_is_a_named_tuple() -> Loop:
    class Named(Recurrent):
        def keep(self, h: Tensor, c: Tensor) -> None:
            self.state = Hidden(h, c)

    return loop(Named())


@spec.equal
def a_gru_state_is_a_field_of_a_dataclass() -> Loop:
    class Gru(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell, self.last, self.memory = nn.GRUCell(8, 8), nn.Linear(8, 4), Memory()

        def forward(self, x: Tensor) -> Tensor:
            h = self.cell(x, self.memory.h)
            self.memory.h = h.detach()
            return self.last(h)

    return loop(Gru())


@spec.equal
def the_carried_state_belongs_to_a_module_deep_inside() -> Loop:
    return loop(nn.Sequential(nn.Linear(8, 8), nn.Sequential(nn.Tanh(), nn.Sequential(Recurrent()))))


@spec.equal
def a_buffer_is_replaced_in_every_forward() -> Loop:
    class Gru(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell, self.last = nn.GRUCell(8, 8), nn.Linear(8, 4)
            self.register_buffer("h", torch.zeros(4, 8))

        def forward(self, x: Tensor) -> Tensor:
            h = self.cell(x, self.h)
            self.h = h.detach()
            return self.last(h)

    return loop(Gru())


@spec.equal
def the_user_resets_the_hidden_state_in_mid_training() -> Loop:
    model = Recurrent()
    return loop(model, before=at({3: lambda: setattr(model, "state", None)}))


@spec.equal
def the_user_puts_zeros_in_the_place_of_the_hidden_state() -> Loop:
    model = Recurrent()
    return loop(model, before=at({2: lambda: setattr(model, "state", (torch.zeros(4, 8), torch.zeros(4, 8)))}))


@spec.equal
def the_user_writes_into_the_hidden_state_past_its_version() -> Loop:
    model = Recurrent()
    return loop(model, before=at({2: lambda: model.state[0].data.mul_(0.5), 4: lambda: model.state[1].numpy().fill(0)}))


@pytest.mark.parametrize("case", spec.cases)
def test_what_a_step_leaves_for_the_next_is_carried(case: Case) -> None:
    case.check()
