"""The module tree of a graph: which module runs which ops and owns which storages, and which modules are alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby

from planner.graph.types import Graph, Kind, Phase


@dataclass(frozen=True, eq=False)
class Module:
    """A module and everything below it.

    Args:
        path: as `named_modules` says it (`"layer1.0.conv1"`); the root's is `""`.
        kind: name of its class, or `""` where none is known.
        ops: ops that it runs itself, not through a child, in captured order.
        storages: storages that it owns itself; see `storage_modules`.
        children: in the order in which they first run.
        alike: a number; modules with the same one have the same class, parameters, forward ops and children.
    """

    path: str
    kind: str
    ops: tuple[int, ...]
    storages: tuple[int, ...]
    children: tuple[Module, ...]
    alike: int

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition(".")[2]

    @cached_property
    def all_ops(self) -> tuple[int, ...]:
        """Its ops and those of all modules below it, in captured order."""
        return tuple(sorted(op for module in self.walk() for op in module.ops))

    @cached_property
    def all_storages(self) -> tuple[int, ...]:
        """Its storages and those of all modules below it."""
        return tuple(sorted(storage for module in self.walk() for storage in module.storages))

    def walk(self) -> Iterator[Module]:
        """It and all modules below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()


def module_tree(graph: Graph) -> Module:
    """The modules that run an op or own a storage, as a tree; the returned root owns the batch."""
    drafts = {"": _Draft("")}
    for op in graph.ops:
        _draft(drafts, op.module).ops.append(op.id)
    for storage, path in enumerate(storage_modules(graph)):
        _draft(drafts, path).storages.append(storage)
    numbers: dict[object, int] = {}
    return _finish(drafts[""], graph, numbers)


def storage_modules(graph: Graph) -> tuple[str, ...]:
    """Per storage, the path of the module that owns it.

    A storage belongs to the module whose op makes it; one that is there before the step to the module whose op is the
    first to touch it; an optimizer state, and what the optimizer computes, to the module of the parameter it updates.
    """
    owner: dict[int, str] = {}
    touched: dict[int, str] = {}
    for op in graph.ops:
        if op.workspace >= 0:
            owner[op.workspace] = op.module
        for storage in graph.writes[op.id]:
            if not graph.storages[storage].held:
                owner.setdefault(storage, op.module)
        for storage in (*graph.reads[op.id], *graph.writes[op.id]):
            touched.setdefault(storage, op.module)
    for storage in graph.storages:
        if storage.kind is Kind.INPUT:
            owner[storage.id] = ""
        elif storage.held:
            owner[storage.id] = touched.get(storage.id, "")
    for storage, parameter in _updated_parameter(graph).items():
        if not owner.get(storage):
            owner[storage] = owner[parameter]
    return tuple(owner.get(storage.id, "") for storage in graph.storages)


def _updated_parameter(graph: Graph) -> dict[int, int]:
    """The one parameter that each storage of the optimizer's ends up in, by walking its ops backwards."""
    target: dict[int, int] = {}
    several: set[int] = set()
    for op in reversed(graph.ops):
        if op.phase is not Phase.OPTIMIZER:
            continue
        written = graph.writes[op.id]
        ends = {storage for storage in written if graph.storages[storage].kind is Kind.PARAMETER}
        ends |= {target[storage] for storage in written if storage in target}
        if any(storage in several for storage in written):
            several.update(graph.reads[op.id])
        if len(ends) > 1:
            several.update((*graph.reads[op.id], *written))
        for end in ends:
            for storage in (*graph.reads[op.id], *written):
                if target.setdefault(storage, end) != end:
                    several.add(storage)
        workspace = op.workspace
        if workspace >= 0 and len(ends) == 1:
            target[workspace] = next(iter(ends))
    return {storage: end for storage, end in target.items() if storage not in several and storage != end}


@dataclass(eq=False)
class _Draft:
    path: str
    ops: list[int] = field(default_factory=list)
    storages: list[int] = field(default_factory=list)
    children: dict[str, _Draft] = field(default_factory=dict)


def _draft(drafts: dict[str, _Draft], path: str) -> _Draft:
    if path not in drafts:
        drafts[path] = _Draft(path)
        parent = _draft(drafts, path.rpartition(".")[0])
        parent.children[path] = drafts[path]
    return drafts[path]


def _finish(draft: _Draft, graph: Graph, numbers: dict[object, int]) -> Module:
    children = tuple(_finish(child, graph, numbers) for child in draft.children.values())
    kind = graph.modules.get(draft.path, "")
    forward = [(op, -1) for op in draft.ops if graph.ops[op].phase is Phase.FORWARD]
    for place, child in enumerate(children):
        forward += [(op, place) for op in child.all_ops if graph.ops[op].phase is Phase.FORWARD]
    runs = groupby(graph.ops[op].target if place < 0 else place for op, place in sorted(forward))
    parameters = [graph.storages[storage] for storage in draft.storages]
    signature = (
        kind,
        tuple(target for target, _ in runs),
        tuple(sorted(storage.bytes for storage in parameters if storage.persistent)),
        tuple(child.alike for child in children),
    )
    alike = numbers.setdefault(signature, len(numbers))
    return Module(draft.path, kind, tuple(draft.ops), tuple(draft.storages), children, alike)
