"""Divide a model into parts for the list of holders of memory: by module, by line of code or by kind.

A module is divided into its children, identical modules into the parts at the same place in each of them, and a
module's own tensors by what computes them; a line into its tensors. This goes on, down to single tensors, until no part
holds more than a quarter.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby, takewhile, zip_longest
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from planner.errors import StowageError
from planner.graph import Graph, Module, module_tree
from widgets.info.argument_types import require_graph
from widgets.info.colour_groups import GROUP_OF, STACK, Group
from widgets.info.source_lines import get_source_lines

#: Largest share of all bytes for a part that can be divided.
LARGEST_SHARE = 0.25
#: The name of what no line of code is known of.
NO_LINE = "no known line"
#: With more children than this, neighbours are merged.
_MOST_CHILDREN = 8
#: Number of groups that tensors of one name are divided into.
_MOST_TENSORS = 4
#: A module with more than this share of the bytes of all its identical neighbours is a part of its own.
_HALF = 0.5

#: What the holders of memory may be grouped by.
GroupBy = Literal["module", "line", "kind"]


@dataclass(frozen=True, eq=False)
class HolderPart:
    """Storages of one group in one part of the model.

    Args:
        name: the module's path, a range of paths, the line of code, or the name of tensors.
        group: their group.
        storages: all its storages, including those that are not present.
        line: the line of code that they share, if the model is divided by line and it is known.
    """

    name: str
    group: Group
    storages: tuple[int, ...]
    line: str = ""

    def name_of(self, storage: str) -> str:
        """Its name when it holds a single storage, which has a name of its own."""
        return f"{self.line} {storage}".lstrip()


def get_holder_parts(graph: Graph, present: Sequence[int], by: GroupBy = "module") -> tuple[HolderPart, ...]:
    """Divide a model into the parts that best explain one moment; every storage is in exactly one part.

    Args:
        graph: the step.
        present: storages that are on the device at that moment.
        by: what it is divided by first.

    Raises:
        StowageError: `graph` is no graph, or `by` is another word.
    """
    require_graph(graph)
    if by not in get_args(GroupBy):
        raise StowageError(f'by must be "module", "line" or "kind", got {by!r}')
    bytes_present = np.zeros(len(graph.storages), np.int64)
    bytes_present[list(present)] = [graph.storages[storage].bytes for storage in present]
    return tuple(
        HolderPart(part.name, part.group, tuple(part.storages), part.line)
        for part in _Division(graph, bytes_present).parts(by)
    )


@dataclass(frozen=True, eq=False)
class _Part:
    """A part, and the function that divides it further, None if it cannot be divided.

    Args:
        modules: one, or several identical ones.
        parts: the parts it was merged from, if any.
        line: the line of code that its tensors share, if known and divided by.
    """

    name: str
    group: Group
    modules: tuple[Module, ...]
    storages: list[int]
    divide: Callable[[_Part], list[_Part]] | None
    parts: tuple[_Part, ...] = field(default=())
    line: str = ""


class _Division:
    def __init__(self, graph: Graph, present: NDArray[np.int64]) -> None:
        self._graph, self._present = graph, present
        self._root = module_tree(graph)
        self._groups = [GROUP_OF[storage.kind] for storage in graph.storages]

    @cached_property
    def _lines(self) -> tuple[str, ...]:
        return get_source_lines(self._graph).of_storage

    def parts(self, by: GroupBy) -> list[_Part]:
        parts = [whole for group in STACK if (whole := self._whole(group)).storages]
        if by != "kind":
            divide = self._children if by == "module" else self._by_line
            parts = [part for whole in parts for part in divide(whole)]
        most = LARGEST_SHARE * sum(self._bytes(part) for part in parts)
        while True:
            large = [part for part in parts if part.divide is not None and self._bytes(part) > most]
            if not large:
                break
            largest = max(large, key=self._bytes)
            at = parts.index(largest)
            parts[at : at + 1] = self._smaller(largest)
        return parts

    def _whole(self, group: Group) -> _Part:
        return _Part("all", group, (self._root,), self._of(group, self._root.all_storages), self._children)

    def _of(self, group: Group, storages: Sequence[int]) -> list[int]:
        return [storage for storage in storages if self._groups[storage] is group]

    def _bytes(self, part: _Part) -> int:
        return int(self._present[part.storages].sum())

    def _smaller(self, part: _Part) -> list[_Part]:
        """The parts of a part; skips wrappers around a single part."""
        found = [part]
        while len(found) == 1 and found[0].divide is not None:
            found = found[0].divide(found[0])
        return found if len(found) > 1 else [replace(part, divide=None)]

    def _children(self, part: _Part) -> list[_Part]:
        """A part for each child of its modules, and one for the modules' own storages."""
        group, modules = part.group, part.modules
        name = "" if modules[0] is self._root else part.name
        own = self._of(group, [storage for module in modules for storage in module.storages])
        top = "batch" if group is Group.INPUT else "top level"
        found = [_Part(name or top, group, modules, own, self._by_name)] if own else []
        for place in zip_longest(*(module.children for module in modules)):
            children = tuple(child for child in place if child is not None)
            storages = sorted(self._of(group, [storage for child in children for storage in child.all_storages]))
            path = children[0].path if len(modules) == 1 else f"{name}.{children[0].name}"
            if storages:
                found.append(_Part(path, group, children, storages, self._children))
        return self._few(self._folded(found))

    def _folded(self, parts: list[_Part]) -> list[_Part]:
        """Merge identical neighbours into one part, unless one of them holds most of their bytes."""
        found = []
        for alike, run in groupby(parts, key=self._alike):
            each = list(run)
            most = _HALF * sum(self._bytes(part) for part in each)
            if alike < 0 or len(each) < 2 or any(self._bytes(part) > most for part in each):
                found += each
            else:
                found.append(replace(self._joined(each), divide=self._children))
        return found

    def _alike(self, part: _Part) -> int:
        return part.modules[0].isomorphic_group if len(part.modules) == 1 and part.divide == self._children else -1

    def _few(self, parts: list[_Part]) -> list[_Part]:
        """Merge the two neighbours that hold least until there are at most `_MOST_CHILDREN` parts."""
        groups = [[part] for part in parts]
        sizes = np.array([self._bytes(part) for part in parts], np.float64)
        sizes[[part.divide == self._by_name for part in parts]] = np.inf  # never merged
        while len(groups) > _MOST_CHILDREN:
            pairs = sizes[:-1] + sizes[1:]
            at = int(pairs.argmin())
            if np.isinf(pairs[at]):
                break
            groups[at : at + 2] = [groups[at] + groups[at + 1]]
            sizes = np.concatenate([sizes[:at], pairs[at : at + 1], sizes[at + 2 :]])
        return [each[0] if len(each) == 1 else self._neighbours(each) for each in groups]

    def _neighbours(self, parts: list[_Part]) -> _Part:
        parts = [each for part in parts for each in part.parts or (part,)]
        return replace(self._joined(parts), parts=tuple(parts))

    def _joined(self, parts: list[_Part]) -> _Part:
        """Merge neighbours into one part, which divides into them again."""
        modules = tuple(module for part in parts for module in part.modules)
        name = f"{modules[0].path or self._graph.name} \N{HORIZONTAL ELLIPSIS} {modules[-1].name}"
        storages = [storage for part in parts for storage in part.storages]
        return _Part(name, parts[0].group, modules, storages, lambda part: list(part.parts))

    def _by_name(self, part: _Part) -> list[_Part]:
        """Divide a module's own tensors by their names within it, which say what computes them."""
        top = part.modules[0] is self._root
        owner = {storage: module.path for module in part.modules for storage in module.storages}
        named = defaultdict(list)
        for storage in part.storages:
            name, path = self._graph.storages[storage].name, "" if top else owner[storage]
            named[name.removeprefix(path) if name.startswith(path) else f"/{name}"].append(storage)
        return [
            replace(part, name=tail if top else part.name + tail, storages=storages, divide=self._by_tensor)
            for tail, storages in named.items()
        ]

    def _by_line(self, part: _Part) -> list[_Part]:
        """Divide by the line of code that tensors belong to."""
        named = defaultdict(list)
        for storage in part.storages:
            named[self._lines[storage]].append(storage)
        return [
            replace(part, name=line or NO_LINE, storages=storages, divide=self._by_tensor, line=line)
            for line, storages in named.items()
        ]

    def _by_tensor(self, part: _Part) -> list[_Part]:
        """Divide tensors of one name or line, in order, into a few groups of about the same size."""
        total, there = max(self._bytes(part), 1), int((self._present[part.storages] > 0).sum())
        before = np.cumsum(self._present[part.storages]) - self._present[part.storages]
        number, groups = -1, list[list[int]]()
        for storage, start in zip(part.storages, before, strict=True):
            group = int(start) * min(_MOST_TENSORS, there) // total
            if not groups or (self._present[storage] and group > number):
                number = group
                groups.append([])
            groups[-1].append(storage)  # a storage that is not present joins the one before it
        if len(groups) == 1 and there > 1:  # one tensor holds nearly all, and has a group of its own
            at = int(self._present[part.storages].argmax())
            groups = [
                each for each in (part.storages[:at], part.storages[at : at + 1], part.storages[at + 1 :]) if each
            ]
        return [self._tensors(part, storages) for storages in groups]

    def _tensors(self, part: _Part, storages: list[int]) -> _Part:
        name = f"{part.line} {self._range(storages)}".lstrip()
        several = int((self._present[storages] > 0).sum()) > 1
        return replace(part, name=name, storages=storages, divide=self._by_tensor if several else None)

    def _range(self, storages: list[int]) -> str:
        present = [storage for storage in storages if self._present[storage]] or storages[:1]
        return _from_to(*(self._graph.storages[storage].name for storage in (present[0], present[-1])))


def _from_to(first: str, last: str) -> str:
    """`blocks.0 … 3/gelu`: a range of names, with common parts written once."""
    ones, others = (re.split(r"([./])", name) for name in (first, last))
    before = _shared(ones, others)
    after = _shared(ones[before:][::-1], others[before:][::-1])
    if first == last:
        return first
    if min(len(ones), len(others)) == before + after:  # one name contains the other
        before = after = 0
    return f"{''.join(ones[: len(ones) - after])} \N{HORIZONTAL ELLIPSIS} {''.join(others[before:])}"


def _shared(ones: Sequence[str], others: Sequence[str]) -> int:
    """How many parts two names have in common at their start."""
    pairs = zip(ones, others, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
