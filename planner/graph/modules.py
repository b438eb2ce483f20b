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
        isomorphic_group: a number; modules with the same one have the same class, parameters, forward ops and children.
    """

    path: str
    kind: str
    ops: tuple[int, ...]
    storages: tuple[int, ...]
    children: tuple[Module, ...]
    isomorphic_group: int

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
    cached = vars(graph)  # the instance dictionary also caches what is derived from the graph
    if _TREE not in cached:
        cached[_TREE] = _make_tree(graph)
    tree: Module = cached[_TREE]
    return tree


def _make_tree(graph: Graph) -> Module:
    partial_modules = {"": _PartialModule("")}
    for op in graph.ops:
        _partial_module(partial_modules, op.module).ops.append(op.id)
    for storage, path in enumerate(storage_modules(graph)):
        _partial_module(partial_modules, path).storages.append(storage)
    group_numbers: dict[object, int] = {}
    return _finish(partial_modules[""], graph, group_numbers)


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
class _PartialModule:
    path: str
    ops: list[int] = field(default_factory=list)
    storages: list[int] = field(default_factory=list)
    children: dict[str, _PartialModule] = field(default_factory=dict)


def _partial_module(partial_modules: dict[str, _PartialModule], path: str) -> _PartialModule:
    if path not in partial_modules:
        partial_modules[path] = _PartialModule(path)
        parent = _partial_module(partial_modules, path.rpartition(".")[0])
        parent.children[path] = partial_modules[path]
    return partial_modules[path]


def _finish(partial: _PartialModule, graph: Graph, group_numbers: dict[object, int]) -> Module:
    children = tuple(_finish(child, graph, group_numbers) for child in partial.children.values())
    kind = graph.modules.get(partial.path, "")
    forward = [(op, -1) for op in partial.ops if graph.ops[op].phase is Phase.FORWARD]
    for child_index, child in enumerate(children):
        forward += [(op, child_index) for op in child.all_ops if graph.ops[op].phase is Phase.FORWARD]
    runs = groupby(graph.ops[op].target if child_index < 0 else child_index for op, child_index in sorted(forward))
    parameters = [graph.storages[storage] for storage in partial.storages]
    signature = (
        kind,
        tuple(target for target, _ in runs),
        tuple(sorted(storage.bytes for storage in parameters if storage.persistent)),
        tuple(child.isomorphic_group for child in children),
    )
    isomorphic_group = group_numbers.setdefault(signature, len(group_numbers))
    return Module(partial.path, kind, tuple(partial.ops), tuple(partial.storages), children, isomorphic_group)
