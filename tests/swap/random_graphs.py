"""Random steps that look like training: forward, backward, optimizer, with everything a capture can produce."""

from __future__ import annotations

import re
from random import Random

from hypothesis import strategies as st

from planner.errors import StowageError
from planner.graph import Graph, GraphBuilder, Kind, Phase
from planner.machine import Device, Link, Machine
from planner.swap import plan_swaps

ALIGNMENT = 64


def machine(bandwidth: float = 1e9, duplex: float = 1.6e9, latency: float = 1e-6) -> Machine:
    device = Device("test", "cpu", 1 << 30, 1e11, {"float32": 1e12}, alignment=ALIGNMENT)
    return Machine("test", (device,), Link(bandwidth, duplex, latency), 1 << 40)


@st.composite
def steps(draw: st.DrawFn, most_layers: int = 8) -> tuple[Graph, list[float]]:
    """A graph and the seconds of its ops."""
    random = draw(st.randoms(use_true_random=False))
    graph = build(random, draw(st.integers(1, most_layers)))
    scale = draw(st.sampled_from([1e-7, 1e-6, 1e-5]))
    return graph, [random.choice([0.0, 1.0, 1.0, 2.0, 5.0]) * scale for _ in graph.ops]


def build(random: Random, layers: int) -> Graph:
    """A step of so many layers; the same generator state gives the same step."""
    return _Step(random).build(layers)


class _Step:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.builder = GraphBuilder("random")
        self.sizes = [random.choice([0, 4, 100, 256, 300, 1000, 4096]) for _ in range(4)]
        self.values: list[int] = []
        self.shared: list[int] = []
        self.tape: list[tuple[str, list[int], int | None, int]] = []

    def build(self, layers: int) -> Graph:
        self.values = [self.new(Kind.INPUT) for _ in range(self.random.randint(1, 2))]
        self.shared = [self.new(Kind.PARAMETER) for _ in range(2)]
        if self.maybe(0.3):
            self.new(Kind.PARAMETER)  # frozen and never used
        for layer in range(layers):
            self.forward(f"layer{layer}")
        loss = self.new(Kind.OUTPUT, 4)
        self.op([self.values[-1]], [loss])
        outputs = [loss] + [value for value in self.values if self.maybe(0.1)]
        for weight, gradient in self.backward(loss).items():
            self.update(weight, gradient)
        graph = self.builder.build(outputs)
        return graph.with_workspaces(
            {op.id: self.random.choice([64, 500, 2048]) for op in graph.ops if self.maybe(0.15)}
        )

    def forward(self, module: str) -> None:
        inputs = [self.random.choice(self.values[-3:]) for _ in range(self.random.randint(1, 2))]
        if self.maybe(0.2):
            inputs[0] = self.again(inputs[0], view=True)
        weight = None
        if self.maybe(0.7):
            weight = self.random.choice(self.shared) if self.maybe(0.3) else self.new(Kind.PARAMETER)
        reused_buffers = [tensor for tensor in inputs if self.maybe(0.7)]
        result = self.new(Kind.ACTIVATION, self.size(reused_buffers[0]) if reused_buffers else None)
        outputs = [result] + [self.new(Kind.ACTIVATION) for _ in range(self.maybe(0.2))]
        self.op(
            [*inputs, *([] if weight is None else [weight])],
            outputs,
            Phase.FORWARD,
            module,
            reused_buffers,
            self.maybe(0.1),
        )
        if self.maybe(0.2):
            statistic = self.new(Kind.BUFFER)
            self.op([statistic, result], [self.again(statistic)], Phase.FORWARD, module)
        if self.maybe(0.15):
            self.op([result, inputs[0]], [result := self.again(result)], Phase.FORWARD, module)
        self.tape.append((module, inputs, weight, result))
        self.values.append(result)

    def backward(self, loss: int) -> dict[int, int]:
        gradients: dict[int, int] = {}
        running = self.new(Kind.GRADIENT)
        self.op([self.values[-1], loss], [running], Phase.BACKWARD)
        for module, inputs, weight, result in reversed(self.tape):
            before = running
            running = self.new(Kind.GRADIENT, self.size(before) if self.maybe(0.5) else None)
            saved = [*([] if weight is None else [weight]), *(inputs if self.maybe(0.5) else [result])]
            self.op([before, *saved], [running], Phase.BACKWARD, module, [before])
            if weight is None:
                continue
            part = self.new(Kind.GRADIENT, self.size(weight))
            self.op([before if self.maybe(0.5) else running, inputs[0]], [part], Phase.BACKWARD, module)
            if weight in gradients:
                old, into = gradients[weight], self.maybe(0.5)
                total = self.again(old) if into else self.new(Kind.GRADIENT, self.size(weight))
                self.op([old, part], [total], Phase.BACKWARD, module, [] if into else [old])
                part = total
            gradients[weight] = part
        return gradients

    def update(self, weight: int, gradient: int) -> None:
        if self.maybe(0.5):
            moment = self.new(Kind.OPTIMIZER_STATE, self.size(weight))
            after = self.again(moment)
            self.op([moment, gradient], [after], Phase.OPTIMIZER)
            gradient = after
        if self.maybe(0.3):
            fresh = self.new(Kind.ACTIVATION, self.size(weight))
            self.op([weight, gradient], [fresh], Phase.OPTIMIZER, reused_buffers=[gradient])
            self.op([fresh], [self.again(weight)], Phase.OPTIMIZER)
        else:
            self.op([weight, gradient], [self.again(weight)], Phase.OPTIMIZER)

    def new(self, kind: Kind, size: int | None = None) -> int:
        if size is None:
            size = self.random.choice(self.sizes)
        name = f"{kind}{len(self.builder.storages)}"
        return self.builder.add_tensor(name, self.builder.add_storage(name, size, kind), (size // 4,))

    def again(self, tensor: int, view: bool = False) -> int:
        """The storage's next value, or a view of this one."""
        old = self.builder.tensors[tensor]
        name = f"{old.name}'{len(self.builder.tensors)}"
        return self.builder.add_tensor(
            name, old.storage, old.shape, base=tensor if view else -1, view="aten.t.default" if view else ""
        )

    def size(self, tensor: int) -> int:
        return self.builder.storages[self.builder.tensors[tensor].storage].bytes

    def op(
        self,
        inputs: list[int],
        outputs: list[int],
        phase: Phase = Phase.FORWARD,
        module: str = "",
        reused_buffers: list[int] | None = None,
        random: bool = False,
    ) -> None:
        self.builder.add_op(
            f"op{len(self.builder.ops)}", "aten.op.default", inputs, outputs, phase=phase, module=module,
            random=random, overwrites=reused_buffers or [],
        )  # fmt: skip

    def maybe(self, rng_state: float) -> bool:
        return self.random.random() < rng_state


def least_budget(graph: Graph) -> int:
    """The budget that the refusal of a much too small one names; 1 where nothing is too small."""
    try:
        plan_swaps(graph, machine(), 1, seconds=[0.0] * len(graph.ops))
    except StowageError as error:
        return int(re.search(r"allow at least (\d+) bytes", str(error))[1])
    return 1
