"""Runs a program op by op, each storage a block of bytes of its own. Shares nothing with the executor."""

import heapq
import random
from dataclasses import dataclass

import torch

from planner.capture import capture
from planner.program import ScalarRef, TensorRef, backend_of, bind


@dataclass
class Outcome:
    outputs: list
    state: dict


class Interpreter:
    """Holds a step's state in its own memory; `run` makes steps, in captured order unless told another.

    With `overwriting`, a result is computed in the very memory of an input that the graph says it may overwrite.
    """

    def __init__(self, step, *, overwriting=False):
        self.graph = capture(step)
        self.program = self.graph.program
        self.batch = step.batch_leaves()
        self.overwriting = overwriting
        self.overwritten = 0
        self.memory = {}
        for storage in self.graph.storages:
            if storage.live_in:
                self.memory[storage.id] = fresh(storage)
        state = step.state()
        for tensor, key in self.program.state:
            self.tensor(tensor).copy_(state[key])
        for tensor, value in self.program.constants:
            self.tensor(tensor).copy_(value)

    def tensor(self, identity):
        tensor = self.graph.tensors[identity]
        dtype = getattr(torch, tensor.dtype)
        memory = (
            self.memory[tensor.storage].view(dtype)
            if self.memory[tensor.storage].numel()
            else torch.empty(0, dtype=dtype)
        )
        return memory.as_strided(tensor.shape, tensor.strides, tensor.offset)

    @torch.no_grad()
    def run(self, steps, order=None):
        outcome = Outcome([], {})
        for number in range(steps):
            for identity, leaf in zip(self.program.batch, self.batch, strict=True):
                self.tensor(identity).copy_(leaf)
            scalars = self.program.scalars(number)
            self.states = {}  # of the generator, before each op that draws numbers of its own
            self.memory = {s: block for s, block in self.memory.items() if self.graph.storages[s].live_in}
            for place, op in enumerate(order or range(len(self.graph.ops))):
                self._call(
                    op, scalars, set((order or range(len(self.graph.ops)))[place + 1 :]) if self.overwriting else ()
                )
            outcome.outputs.append([self.tensor(identity).clone() for identity in self.graph.outputs])
        outcome.state = {key: self.tensor(identity).clone() for identity, key in self.program.state}
        return outcome

    def _call(self, number, scalars, later):
        op, call = self.graph.ops[number], self.program.calls[number]
        taken = self._take_over(op, later)
        for identity in op.outputs:
            storage = self.graph.tensors[identity].storage
            if storage not in self.memory:
                self.memory[storage] = fresh(self.graph.storages[storage]) if taken is None else self.memory[taken]
        if taken is not None:
            self.overwritten += 1
            self._compute_in_place(call, scalars)
            return
        ahead = torch.get_rng_state()
        if op.random:
            torch.set_rng_state(self.states.setdefault(op.drawn_first_by, ahead))
        # PyTorch's LSTM kernel looks at the mode of autograd to decide whether it keeps anything for a backward pass.
        with torch.set_grad_enabled("mkldnn_rnn" in op.target and call.results[-1] >= 0):
            result = call.target(*self._filled(call.args, scalars), **self._filled(call.kwargs, scalars))
        if op.draws_as >= 0:
            torch.set_rng_state(ahead)
        if call.in_place:
            return
        results = [result] if isinstance(result, torch.Tensor) else list(result)
        for identity, value in zip(call.results, results, strict=True):
            if identity >= 0:
                tensor = self.graph.tensors[identity]
                assert (tuple(value.shape), str(value.dtype)) == (tensor.shape, f"torch.{tensor.dtype}"), op
                self.tensor(identity).copy_(value)

    def _take_over(self, op, later):
        """The storage of an input that nobody needs any more and that the result may overwrite."""
        if not self.overwriting:
            return None
        needed = {s for other in later for s in self.graph.reads[other]} | self.graph.output_storages
        for identity in op.overwrites:
            if self.graph.tensors[identity].storage not in needed:
                return self.graph.tensors[identity].storage
        return None

    def _compute_in_place(self, call, scalars):

        args, kwargs = self._filled(call.args, scalars), self._filled(call.kwargs, scalars)
        bound = bind(
            backend_of(self.graph.device), call, args, kwargs, [self.tensor(identity) for identity in call.results]
        )
        bound.function(*bound.args, **bound.kwargs)

    def _filled(self, value, scalars):
        if isinstance(value, TensorRef):
            return self.tensor(value.tensor)
        if isinstance(value, ScalarRef):
            return scalars[value.name]
        if isinstance(value, dict):
            return {key: self._filled(item, scalars) for key, item in value.items()}
        if type(value) is tuple:
            return [self._filled(item, scalars) for item in value]
        return value


def fresh(storage):
    """Memory full of what nobody wrote there."""
    return torch.full((storage.bytes,), 0xAB, dtype=torch.uint8)


def random_order(graph, seed):
    """A random topological order."""
    generator = random.Random(seed)
    waiting = [len(before) for before in graph.dependencies]
    after = [[] for _ in graph.ops]
    for op, before in enumerate(graph.dependencies):
        for earlier in before:
            after[earlier].append(op)
    ready = [(generator.random(), op) for op, count in enumerate(waiting) if not count]
    heapq.heapify(ready)
    order = []
    while ready:
        _, op = heapq.heappop(ready)
        order.append(op)
        for later in after[op]:
            waiting[later] -= 1
            if not waiting[later]:
                heapq.heappush(ready, (generator.random(), later))
    return order


def differences(step, steps=3, **options):
    """What differs, to the bit, between a program's run and as many steps of eager PyTorch on a copy."""
    order = options.pop("order", None)
    interpreter = Interpreter(step, **options)
    eager = step.clone()
    generator = torch.get_rng_state()
    outcome = interpreter.run(steps, order)
    torch.set_rng_state(generator)
    losses = [eager.eager() for _ in range(steps)]
    found = [f"loss {n}" for n, (a, b) in enumerate(zip(losses, outcome.outputs, strict=True)) if bits(a) != bits(b[0])]
    state = eager.state()
    return found + [key for key, value in outcome.state.items() if bits(value) != bits(state[key])]


def bits(tensor):
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
