"""Every instance of an op reads and leaves the values that the op does in captured order.

The values of a storage are those that its writers leave, one after another, in captured order; each is known by its
number, and 0 is what is there before any. An instance that sees the captured values leaves the captured values again,
so an op may run any number of times, provided that it is one whose second run does the same as its first: it updates
nothing that outlives the step but what a second run leaves alone (`Op.first_run_only`). Random numbers are those of the
first run, or of the op in `Op.draws_as`, wherever it runs, as whoever runs a plan gives them to the op once more.
"""

from __future__ import annotations

from collections import defaultdict

from planner.graph import Graph, Op
from planner.plan.schema.swap_plan import SwapPlan
from planner.plan.validator.op_accesses import SlotAccesses

#: Namespaces of operators that keep nothing between their runs: PyTorch's, and those of this project.
_STATELESS = frozenset({"aten", "stowage"})
#: By slot, the number of the value that each storage written there has afterwards.
Values = list[dict[int, int]]


def check_order(plan: SwapPlan, graph: Graph, accesses: SlotAccesses) -> tuple[Values, list[str]]:
    """Replay the values of all storages in the plan's order; returns what each slot leaves, and the problems."""
    replay = _Replay(graph)
    values = [replay.run(slot, op, accesses) for slot, op in enumerate(plan.order)]
    return values, [*replay.problems, *replay.end()]


def check_ops(plan: SwapPlan, graph: Graph) -> list[str]:
    """Check that the order has every op of the graph, and no others."""
    count = len(graph.ops)
    problems = [
        f"slot {slot} of the order names op {op}, which does not exist"
        for slot, op in enumerate(plan.order)
        if not 0 <= op < count
    ]
    ordered = frozenset(plan.order)
    missing = [op.name for op in graph.ops if op.id not in ordered] if not problems else []
    return [*problems, *(f"the order leaves out op {name}" for name in missing)]


class _Replay:
    """The values of all storages as the ops of an order run."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.writers: dict[int, list[int]] = defaultdict(list)  # by storage, the op that leaves each value from 1 on
        self.seen: list[dict[int, int]] = []  # by op, the value that it sees of each storage in captured order
        for op, written in enumerate(graph.writes):
            self.seen.append({s: len(self.writers[s]) for s in (*graph.reads[op], *written)})
            for storage in written:
                self.writers[storage].append(op)
        self.value: dict[int, int] = defaultdict(int)
        self.left_in: dict[int, int] = {}  # by storage, the slot whose op left its value
        self.first_run: dict[int, int] = {}
        self.problems: list[str] = []

    def run(self, slot: int, op: int, accesses: SlotAccesses) -> dict[int, int]:
        """Run an instance; returns the values that it leaves."""
        node = self.graph.ops[op]
        if op in self.first_run:
            self.problems += self._again(node, slot, accesses.writes[slot])
        self.first_run.setdefault(op, slot)
        for storage in accesses.touched(slot):
            expected = self.seen[op][storage]
            if self.value[storage] != expected and not self._creates(op, storage):
                self.problems.append(self._wrong(f"op {node.name} in slot {slot}", storage, expected))
        left = {storage: self.seen[op][storage] + 1 for storage in accesses.writes[slot]}
        self.value.update(left)
        self.left_in.update(dict.fromkeys(left, slot))
        return left

    def _creates(self, op: int, storage: int) -> bool:
        """Whether what is in a storage before an op does not matter to it, because it makes the first value there."""
        return self.writers[storage][:1] == [op] and not self.graph.storages[storage].live_in

    def _again(self, op: Op, slot: int, written: tuple[int, ...]) -> list[str]:
        """Why an op may not run a second time."""
        what = f"op {op.name} runs again in slot {slot}"
        namespace, captured, _ = op.target.partition(".")
        if captured and namespace not in _STATELESS:
            return [f"{what}, and {op.target} is not an operator of PyTorch: it may keep something between its runs"]
        if not written:
            return [f"{what} and makes nothing, so it can only have an effect that is not in the graph"]
        updated = [s for s in written if self.graph.storages[s].live_in]
        return [f"{what}, and would update {self.graph.storages[s].name} twice in one step" for s in updated]

    def _wrong(self, who: str, storage: int, expected: int) -> str:
        """What is wrong with the value that somebody finds in a storage."""
        what, writers = self.graph.storages[storage].name, self.writers[storage]
        names = [self.graph.ops[op].name for op in writers]
        if self.value[storage] > expected:
            return f"{who} needs {what} as it is before op {names[expected]}, which ran earlier"
        says = f"{who} needs {what} as op {names[expected - 1]} leaves it, which"
        if writers[expected - 1] not in self.first_run:
            return f"{says} runs later"
        return f"{says} op {names[self.value[storage] - 1]} made anew in slot {self.left_in[storage]}"

    def end(self) -> list[str]:
        """What is wrong with the values with which the step ends."""
        kept = [s.id for s in self.graph.storages if s.persistent or s.id in self.graph.output_storages]
        return [
            self._wrong("the end of the step", storage, len(self.writers[storage]))
            for storage in kept
            if self.value[storage] != len(self.writers[storage])
        ]
