"""The ops of a step, or of one of its modules, and the tensors passed between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from planner.errors import StowageError, did_you_mean
from planner.graph import Graph, Module, Op, Phase, module_tree
from planner.units import bytes_label, several
from widgets.info.argument_types import require_graph
from widgets.info.colour_groups import GROUP_OF, STACK, Group
from widgets.info.module_graph import op_label


@dataclass(frozen=True, slots=True)
class OpBox:
    """An op.

    Args:
        op: its number in the graph.
        label: its name inside its module, such as `"addmm"`.
        details: what its name does not say: the short target, and the module path relative to the module drawn.
        phase: of the step.
        description: all known facts about it, one per line.
    """

    op: int
    label: str
    details: tuple[str, ...]
    phase: Phase
    description: str


@dataclass(frozen=True, slots=True)
class End:
    """An input from outside the module drawn, once for each phase that reads it, or an output.

    Args:
        storages: one; or several of a group, if a single op reads or writes all of them.
        label: their names, without the module path that the adjacent op already shows.
        bytes: their total size.
        group: the group of all of them.
        leaves: whether it is an output: written by an op and needed outside, by the next step or by the caller.
        description: the storages with their bytes, one a line.
    """

    storages: tuple[int, ...]
    label: str
    bytes: int
    group: Group
    leaves: bool
    description: str


@dataclass(frozen=True, slots=True)
class Flow:
    """An edge: storages passed from op to op, from an end to an op, or from an op to an end.

    Args:
        source, target: positions in `Dataflow.nodes`.
        storages: the storages passed, in the order in which they are read.
        label: name of a single storage that is not named after the op that made it, else `""`.
        bytes: total size of the storages.
        group: group of the largest storage.
        description: the storages with their bytes, one a line.
    """

    source: int
    target: int
    storages: tuple[int, ...]
    label: str
    bytes: int
    group: Group
    description: str


@dataclass(frozen=True, eq=False)
class Dataflow:
    """The dataflow graph of a step or of one of its modules.

    Args:
        name: what was captured.
        module: path of the module, or `""` for the whole step.
        kind: its class, or `""` if unknown.
        ops: in captured order.
        ends: inputs, then outputs.
        flows: between ops, and between ops and ends.
    """

    name: str
    module: str
    kind: str
    ops: tuple[OpBox, ...]
    ends: tuple[End, ...]
    flows: tuple[Flow, ...]

    @property
    def nodes(self) -> tuple[OpBox | End, ...]:
        """The ops, then the ends."""
        return (*self.ops, *self.ends)

    @property
    def phases(self) -> tuple[Phase, ...]:
        """The phases that any op belongs to, in the order of a step."""
        return tuple(phase for phase in Phase if any(op.phase is phase for op in self.ops))

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups of all storages passed, in stacking order."""
        return tuple(group for group in STACK if any(flow.group is group for flow in self.flows))

    @property
    def summary(self) -> str:
        """The picture in one sentence."""
        count = Counter(op.phase for op in self.ops)
        split = ", ".join(f"{count[phase]:,} {phase}" for phase in self.phases)
        text = several(len(self.ops), "op") + (f" ({split})" if len(self.phases) > 1 else "")
        between = [flow for flow in self.flows if max(flow.source, flow.target) < len(self.ops)]
        if not between:
            return f"{text}, none of which reads what another one makes."
        most = max(between, key=lambda flow: flow.bytes)
        ends = f"from {self.ops[most.source].label} to {self.ops[most.target].label}"
        return f"{text}; the most that one hands to another is {bytes_label(most.bytes)}, {ends}."


def get_dataflow(graph: Graph, module: str = "", most_ops: int = 40) -> Dataflow:
    """Follow every storage from the op that writes it to the ops that read it.

    Args:
        graph: the step.
        module: path of the module whose ops are shown, including its submodules; `""` for the whole step.
        most_ops: limit on the number of ops.

    Raises:
        StowageError: `graph` is no graph, there is no such module, it runs no ops, or more than `most_ops`.
    """
    require_graph(graph)
    chosen = _find(graph, module)
    if most_ops < 1:
        raise StowageError(f"most_ops must be 1 or more, got {most_ops}")
    if not chosen.all_ops:
        raise StowageError(f"{_called(graph, module)} runs no ops, so it has no dataflow to draw")
    if len(chosen.all_ops) > most_ops:
        raise StowageError(_too_many(graph, chosen, most_ops))
    tracer = _Tracer(graph, chosen)
    for op in graph.ops:
        tracer.follow(op)
    return tracer.finish()


def _called(graph: Graph, path: str) -> str:
    return f"module {path!r}" if path else graph.name


def _find(graph: Graph, path: str) -> Module:
    modules = {module.path: module for module in module_tree(graph).walk()}
    if path in modules:
        return modules[path]
    if path in graph.modules:  # no op belongs to it
        return Module(path, graph.modules[path], (), (), (), -1)
    known = sorted({*modules, *graph.modules} - {""})
    raise StowageError(f"{graph.name} has no module {path!r}{did_you_mean(path, known)}")


def _too_many(graph: Graph, chosen: Module, most: int) -> str:
    fitting = [module for module in chosen.walk() if 0 < len(module.all_ops) <= most]
    text = f"{_called(graph, chosen.path)} has {several(len(chosen.all_ops), 'op')}, more than {most:,}"
    if not fitting:
        return f"{text}; raise most_ops"
    example = max(fitting, key=lambda module: len(module.all_ops))
    amount = several(len(example.all_ops), "op")
    return f"{text}; choose a module with fewer, such as module={example.path!r} ({amount}), or raise most_ops"


def _inside(path: str, module: str) -> str:
    """A path or name relative to a module: without the module's own path."""
    return path[len(module) + 1 :] if module and path.startswith((f"{module}.", f"{module}/")) else path


class _Key(NamedTuple):
    """Key of an end: a storage, the op that wrote it last, or -1, and the phase that reads it, None for an output."""

    storage: int
    writer: int
    phase: Phase | None


@dataclass(eq=False)
class _Tracer:
    """Traces the storages through all ops, drawn or not, in captured order."""

    graph: Graph
    module: Module
    writer: dict[int, int] = field(default_factory=dict)
    between: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    ends: dict[_Key, list[int]] = field(default_factory=dict)  # the drawn ops adjacent to each

    def __post_init__(self) -> None:
        self.drawn = frozenset(self.module.all_ops)

    def follow(self, op: Op) -> None:
        for storage in self.graph.reads[op.id]:
            writer = self.writer.get(storage, -1)
            if op.id in self.drawn and writer in self.drawn:
                self.between.setdefault((writer, op.id), []).append(storage)
            elif op.id in self.drawn:
                self.ends.setdefault(_Key(storage, writer, op.phase), []).append(op.id)
            elif writer in self.drawn:
                self.ends[_Key(storage, writer, None)] = [writer]
        self.writer |= dict.fromkeys(self.graph.writes[op.id], op.id)

    def finish(self) -> Dataflow:
        for storage, writer in self.writer.items():
            kept = self.graph.storages[storage].persistent or storage in self.graph.output_storages
            if kept and writer in self.drawn:
                self.ends[_Key(storage, writer, None)] = [writer]
        ops = tuple(self._box(self.graph.ops[op]) for op in sorted(self.drawn))
        place = {box.op: number for number, box in enumerate(ops)}
        flows = [self._flow(place[a], place[b], numbers, (a, b)) for (a, b), numbers in self.between.items()]
        ends = []
        for number, keys in enumerate(self._bundles(), len(ops)):
            beside, numbers, leaves = self.ends[keys[0]], [key.storage for key in keys], keys[0].phase is None
            ends.append(self._end(numbers, beside, leaves))
            pairs = ((place[op], number) if leaves else (number, place[op]) for op in beside)
            flows += (self._flow(*pair, numbers, ()) for pair in pairs)
        return Dataflow(self.graph.name, self.module.path, self.module.kind, ops, tuple(ends), tuple(flows))

    def _bundles(self) -> list[list[_Key]]:
        """Ends that are drawn as one: those of a group at the same single op; outputs come last."""
        bundles: dict[object, list[_Key]] = {}
        for key in sorted(self.ends, key=lambda key: key.phase is None):
            beside, group = self.ends[key], GROUP_OF[self.graph.storages[key.storage].kind]
            bundles.setdefault((beside[0], group, key.phase) if len(beside) == 1 else key, []).append(key)
        return list(bundles.values())

    def _box(self, op: Op) -> OpBox:
        label = op.name.rpartition("/")[2] or op.name
        short, path = op_label(op.target), _inside(op.module, self.module.path)
        details = ("" if label.startswith(short) else short, "" if op.module == self.module.path else path)
        size = self.graph.workspace_bytes(op.id)
        facts = (
            op.name, "" if op.target == op.name else op.target, f"{op.phase}, op {op.id:,}",
            f"module {op.module} {self.graph.modules.get(op.module, '')}".rstrip() if op.module else "",
            f"{bytes_label(size)} of temporary memory" if size else "", op.source,
        )  # fmt: skip
        return OpBox(op.id, label, tuple(filter(None, details)), op.phase, _lines(facts))

    def _end(self, numbers: Sequence[int], beside: Sequence[int], leaves: bool) -> End:
        storages = [self.graph.storages[number] for number in numbers]
        group = GROUP_OF[storages[0].kind]
        facts = (self._told(numbers), f"{group}, {'needed outside' if leaves else 'from outside'}")
        label = ", ".join(self._label(storage.name, beside) for storage in storages)
        return End(tuple(numbers), label, sum(each.bytes for each in storages), group, leaves, _lines(facts))

    def _flow(self, source: int, target: int, numbers: Sequence[int], ops: Sequence[int]) -> Flow:
        """A flow; `ops` are the two it connects, or empty if one side is an `End`, which is labelled itself."""
        storages = [self.graph.storages[number] for number in numbers]
        named = len(numbers) == 1 and ops and storages[0].name.partition(":")[0] != self.graph.ops[ops[0]].name
        return Flow(
            source, target, tuple(numbers), self._label(storages[0].name, ops) if named else "",
            sum(storage.bytes for storage in storages),
            GROUP_OF[max(storages, key=lambda storage: storage.bytes).kind], self._told(numbers),
        )  # fmt: skip

    def _told(self, numbers: Sequence[int]) -> str:
        storages = (self.graph.storages[number] for number in numbers)
        return _lines(f"{storage.name}: {bytes_label(storage.bytes)}" for storage in storages)

    def _label(self, name: str, ops: Sequence[int]) -> str:
        """The name of a storage adjacent to ops, without the module path that all of the ops share."""
        homes = {self.graph.ops[op].module for op in ops}
        inside = _inside(name, homes.pop()) if len(homes) == 1 else name
        return _inside(name, self.module.path) if inside == name else inside


def _lines(facts: Iterable[str]) -> str:
    return "\n".join(filter(None, facts))
