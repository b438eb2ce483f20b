"""Groups of tensors that share one split: the atoms of their members, matched with each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from planner.graph import Graph
from planner.partition.atoms import Atoms
from planner.partition.strategy import Split

#: The labels of the atoms of one tensor.
Labels = dict[Split, int]


@dataclass(slots=True)
class TensorGroup:
    """Tensors that are split alike.

    Args:
        members: by tensor that was made, the label of each of its atoms. Atoms of one tensor have different labels.
        sizes: by label, how many indices the atom has.
        whole: no split of it is possible, because its members overlap in memory in a way that no split follows.
    """

    members: dict[int, Labels] = field(default_factory=dict)
    sizes: dict[int, int] = field(default_factory=dict)
    whole: bool = False


class TensorGroups:
    """All groups of a graph; at first every tensor that was made is one of its own."""

    def __init__(self, graph: Graph, atoms: Atoms, sums: frozenset[int] = frozenset()) -> None:
        """Make a group of every tensor that was made; those that may stay partial sums are tied with each other only.

        Args:
            graph: the step.
            atoms: of the graph.
            sums: tensors that may stay partial sums.
        """
        self.graph = graph
        self.sums = sums
        self.atoms = atoms
        self._of: dict[int, TensorGroup] = {}
        self._views: dict[int, tuple[tuple[Split, Split | None], ...]] = {}
        label = 0
        for tensor in graph.tensors:
            if tensor.base >= 0:
                continue
            group = TensorGroup()
            labels = group.members[tensor.id] = {}
            for split in self.splits(tensor.id):
                labels[split] = label
                group.sizes[label] = split.size
                label += 1
            self._of[tensor.id] = group

    def splits(self, tensor: int) -> tuple[Split, ...]:
        """Every atom of a tensor."""
        dimensions = range(len(self.graph.tensors[tensor].shape))
        return tuple(split for d in dimensions for split in self.atoms.splits(tensor, d) if split.size > 1)

    def root(self, tensor: int) -> int:
        """The tensor that was made, of which one is a view."""
        return self.atoms.tensors[tensor].root

    def of(self, tensor: int) -> TensorGroup:
        """The group of a tensor, or of what it views."""
        return self._of[self.root(tensor)]

    def groups(self) -> tuple[TensorGroup, ...]:
        """All groups, in the order of their first tensors."""
        return tuple({id(group): group for group in self._of.values()}.values())

    def labels(self, tensor: int) -> tuple[tuple[int, Split], ...]:
        """The labels of a tensor and where they are in it."""
        labels = self.of(tensor).members[self.root(tensor)]
        found = ((labels.get(below), split) for split, below in self._renamed(tensor) if below is not None)
        return tuple((label, split) for label, split in found if label is not None)

    def tie(self, left: int, right: int) -> bool:
        """Let two tensors of one shape be split alike; returns whether that is possible."""
        if (self.root(left) in self.sums) != (self.root(right) in self.sums):
            return False
        ours, theirs = self._renamed(left), self._renamed(right)
        if [split for split, _ in ours] != [split for split, _ in theirs]:
            return False
        pairs = [(mine, other) for (_, mine), (_, other) in zip(ours, theirs, strict=True)]
        return self._merge(self.root(left), self.root(right), pairs)

    def _renamed(self, tensor: int) -> tuple[tuple[Split, Split | None], ...]:
        if tensor not in self._views:
            pairs = []
            for split in self.splits(tensor):
                below = self.atoms.to_root(tensor, split)
                pairs.append((split, below if isinstance(below, Split) else None))
            self._views[tensor] = tuple(pairs)
        return self._views[tensor]

    def _merge(self, left: int, right: int, pairs: Sequence[tuple[Split | None, Split | None]]) -> bool:
        kept, gone = self._of[left], self._of[right]
        same: dict[int, int] = {}
        for mine, other in pairs:
            here = None if mine is None else kept.members[left].get(mine)
            there = None if other is None else gone.members[right].get(other)
            if here is None or there is None:
                return False
            same[there] = here
        if kept is gone:
            return self._unite(kept, left, right, pairs)
        if len(set(same.values())) < len(same):
            return False
        if len(gone.members) > len(kept.members):
            kept, gone, same = gone, kept, {here: there for there, here in same.items()}
        for tensor, labels in gone.members.items():
            kept.members[tensor] = {split: same.get(label, label) for split, label in labels.items()}
            self._of[tensor] = kept
        for label, size in gone.sizes.items():
            kept.sizes.setdefault(same.get(label, label), size)
        kept.whole = kept.whole or gone.whole
        return True

    @staticmethod
    def _unite(group: TensorGroup, left: int, right: int, pairs: Sequence[tuple[Split | None, Split | None]]) -> bool:
        """Make labels one that two tensors of a group have in the same place."""
        fits = True
        for mine, other in pairs:
            if mine is not None and other is not None:  # earlier pairs may have renamed what this one has
                fits &= _rename(group, group.members[right][other], group.members[left][mine])
        return fits


def _rename(group: TensorGroup, old: int, new: int) -> bool:
    """Make two labels of a group one; returns whether no tensor has both."""
    if old == new:
        return True
    if any(old in labels.values() and new in labels.values() for labels in group.members.values()):
        return False
    for labels in group.members.values():
        for split, label in labels.items():
            if label == old:
                labels[split] = new
    group.sizes.pop(old, None)
    return True
