"""Tensors that forward replaces or writes for the next step: averages, queues, rings."""

from __future__ import annotations

from collections import deque

import pytest
import torch
from beside_eager import Loop
from torch import Tensor
from torch.nn.functional import normalize

from tests.run.loops.harness import Case, Specification, loop
from tests.run.loops.models import Blend

spec = Specification()


@spec.equal
def the_output_of_the_step_before_is_mixed_in() -> Loop:
    class Previous(Blend):
        prev = None

        def keep(self, out: Tensor) -> Tensor:
            mixed = out if self.prev is None else out + 0.5 * self.prev
            self.prev = out.detach()
            return mixed

    return loop(Previous())


@spec.equal
def a_plain_tensor_is_written_in_forward() -> Loop:
    class Written(Blend):
        def __init__(self) -> None:
            super().__init__()
            self.prev = torch.zeros(4, 4)

        def keep(self, out: Tensor) -> Tensor:
            mixed = out + self.prev
            self.prev.copy_(out.detach())
            return mixed

    return loop(Written())


@spec.equal
def two_tensors_change_places() -> Loop:
    class Swap(Blend):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = torch.zeros(4), torch.ones(4)

        def keep(self, out: Tensor) -> Tensor:
            self.a, self.b = self.b, self.a
            return out * self.a

    return loop(Swap())


@spec.equal
def three_tensors_rotate_in_a_list_of_dicts() -> Loop:
    class Rotate(Blend):
        def __init__(self) -> None:
            super().__init__()
            self.ring = [{"t": torch.full((4,), float(number))} for number in range(3)]

        def keep(self, out: Tensor) -> Tensor:
            self.ring = [*self.ring[1:], self.ring[0]]
            return out + self.ring[0]["t"]

    return loop(Rotate())


@spec.equal
def a_running_average_is_kept_in_a_plain_dict() -> Loop:
    class Average(Blend):
        def __init__(self) -> None:
            super().__init__()
            self.average = {"out": torch.zeros(4)}

        def keep(self, out: Tensor) -> Tensor:
            self.average["out"] = 0.9 * self.average["out"] + 0.1 * out.detach().mean(0)
            return out - self.average["out"]

    return loop(Average())


@spec.equal
def a_momentum_queue_with_its_pointer_as_a_tensor() -> Loop:
    class Queue(Blend):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("queue", torch.randn(12, 4))
            self.register_buffer("pointer", torch.zeros(1, dtype=torch.long))

        def keep(self, out: Tensor) -> Tensor:
            scores = out @ self.queue.clone().T
            rows = (self.pointer + torch.arange(4)) % 12
            self.queue.index_copy_(0, rows, normalize(out.detach()))
            self.pointer.copy_((self.pointer + 4) % 12)
            return scores[:, :4]

    return loop(Queue())


@spec.equal_or_refused
def a_momentum_queue_with_its_pointer_as_a_number() -> Loop:
    class Queue(Blend):
        def __init__(self) -> None:
            super().__init__()
            self.queue, self.pointer = torch.randn(12, 4), 0

        def keep(self, out: Tensor) -> Tensor:
            scores = out @ self.queue.clone().T
            self.queue[self.pointer : self.pointer + 4] = out.detach()
            self.pointer = (self.pointer + 4) % 12
            return scores[:, :4]

    return loop(Queue())


@spec.equal
def a_queue_is_a_list_that_is_appended_to_and_popped() -> Loop:
    class Queue(Blend):
        def __init__(self) -> None:
            super().__init__()
            self.queue = [torch.randn(4, 4) for _ in range(3)]

        def keep(self, out: Tensor) -> Tensor:
            mixed = out + torch.stack(self.queue).mean(0)
            self.queue.append(out.detach())
            self.queue.pop(0)
            return mixed

    return loop(Queue())


@spec.equal
def a_queue_is_a_deque_of_a_greatest_length() -> Loop:
    class Queue(Blend):
        def __init__(self) -> None:
            super().__init__()
            self.queue = deque([torch.randn(4, 4) for _ in range(2)], maxlen=2)

        def keep(self, out: Tensor) -> Tensor:
            mixed = out + self.queue[0]
            self.queue.append(out.detach())
            return mixed

    return loop(Queue())


@spec.equal
def a_deque_fills_up_over_the_first_steps() -> Loop:
    class Queue(Blend):
        def __init__(self) -> None:
            super().__init__()
            self.queue = deque(maxlen=2)

        def keep(self, out: Tensor) -> Tensor:
            mixed = out + sum(self.queue)
            self.queue.append(out.detach())
            return mixed

    return loop(Queue())


@pytest.mark.parametrize("case", spec.cases)
def test_what_a_step_leaves_for_the_next_is_carried(case: Case) -> None:
    case.check()
