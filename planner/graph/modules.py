"""The module tree of a graph: which module runs which ops and owns which storages, and which modules are alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby

from planner.graph.types import Graph, Kind, Phase

_TREE = "module_tree"


@dataclass(frozen=True, eq=False)
class Module:
    """A module and everything below it.

    Args:
        path: as in `named_modules` (`"layer1.0.conv1"`); the root's is `""`.
        kind: name of its class, or `""` if unknown.
        ops: ops that it runs itself, not through a child, in captured order.
        storages: storages that it owns itself; see `storage_modules`.
        children: in the order in which they first run.
        alike: group number; modules with the same number have the same class, parameters, forward ops and children.
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
        """This module and all modules below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()


def module_tree(graph: Graph) -> Module:
    """The modules that run an op or own a storage, as a tree; the returned root owns the batch."""
    known = vars(graph)  # the instance dictionary also caches what is derived from the graph
    if _TREE not in known:
        known[_TREE] = _make_tree(graph)
    tree: Module = known[_TREE]
    return tree


def _make_tree(graph: Graph) -> Module:
    drafts = {"": _Draft("")}
    for op in graph.ops:
        _draft(drafts, op.module).ops.append(op.id)
    for storage, path in enumerate(storage_modules(graph)):
        _draft(drafts, path).storages.append(storage)
    numbers: dict[object, int] = {}
    return _finish(drafts[""], graph, numbers)


def storage_modules(graph: Graph) -> tuple[str, ...]:
    """Per storage, the path of the module that owns it.

    A storage belongs to the module whose op creates it or, if it exists before the step, touches it first; the batch
    belongs to the root.
    """
    owner: dict[int, str] = {}
    for op in graph.ops:
        for storage in (*graph.reads[op.id], *graph.writes[op.id]):
            owner.setdefault(storage, op.module)
        if op.workspace >= 0:
            owner[op.workspace] = op.module
    batch = {storage.id for storage in graph.storages if storage.kind is Kind.INPUT}
    return tuple("" if storage.id in batch else owner.get(storage.id, "") for storage in graph.storages)


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
