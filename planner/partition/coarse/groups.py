"""Groups of tensors that share one split: the atoms of their members, matched with each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from planner.graph import Graph
from planner.partition.atoms import Atoms
from planner.partition.strategy import Split

#: The labels of the atoms of one tensor.
Labels = dict[Split, int]
#: Atoms of two tensors that are one: their places among the atoms of what each tensor views.
Pairs = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class TensorGroup:
    """Tensors that are split alike.

    Args:
        members: by tensor that was made, the label of each of its atoms. Atoms of one tensor have different labels.
        sizes: by label, how many indices the atom has.
        whole: no split of it is possible, because its members overlap in memory in a way that no split follows.
    """

    members: dict[int, Labels]
    sizes: dict[int, int]
    whole: bool = False


@dataclass(slots=True, eq=False)
class _Tied:
    """A group that may still grow."""

    tensors: list[int] = field(default_factory=list)
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
        self._of: dict[int, _Tied] = {}
        self._labels: dict[int, list[int]] = {}  # by tensor that was made, one for each of its atoms
        self._same: list[int] = []  # by label, one that is the same, and in the end itself
        self._sizes: list[int] = []
        self._owners: list[set[int]] = []  # by label, the tensors that have it
        self._views: list[tuple[tuple[Split, ...], tuple[int, ...]]] = []  # by layout: atoms, and their places below
        self._layouts = self._find_layouts()
        self._pairs: dict[tuple[int, int], Pairs | None] = {}
        for tensor in graph.tensors:
            if tensor.base < 0:
                splits, _ = self._views[self._layouts[tensor.id]]
                first = len(self._same)
                self._labels[tensor.id] = list(range(first, first + len(splits)))
                self._same += self._labels[tensor.id]
                self._sizes += [split.size for split in splits]
                self._owners += [{tensor.id} for _ in splits]
                self._of[tensor.id] = _Tied([tensor.id])

    def root(self, tensor: int) -> int:
        """The tensor that was made, of which one is a view."""
        return self.atoms.tensors[tensor].root

    def keep_whole(self, tensor: int) -> None:
        """Let the group of a tensor not be split."""
        self._of[self.root(tensor)].whole = True

    def groups(self) -> tuple[TensorGroup, ...]:
        """All groups, in the order of their first tensors."""
        return tuple(self._group(tied) for tied in self._distinct())

    def numbers(self) -> tuple[int, ...]:
        """Per tensor, the number of its group among all."""
        numbers = {id(tied): number for number, tied in enumerate(self._distinct())}
        return tuple(numbers[id(self._of[self.root(tensor.id)])] for tensor in self.graph.tensors)

    def identity(self, tensor: int) -> int:
        """A number that a tensor has in common with those it is tied to, until the next tie."""
        return id(self._of[self.root(tensor)])

    def labels(self, tensor: int) -> tuple[tuple[int, Split], ...]:
        """The labels of a tensor and where they are in it."""
        found = self._labels[self.root(tensor)]
        splits, below = self._views[self._layouts[tensor]]
        return tuple(
            (self._find(found[place]), split) for split, place in zip(splits, below, strict=True) if place >= 0
        )

    def tie(self, left: int, right: int) -> bool:
        """Let two tensors of one shape be split alike; returns whether that is possible."""
        ours, theirs = self.root(left), self.root(right)
        if (ours in self.sums) != (theirs in self.sums):
            return False
        key = self._layouts[left], self._layouts[right]
        if key not in self._pairs:
            self._pairs[key] = self._matched(*key)
        pairs = self._pairs[key]
        return pairs is not None and self._merge(ours, theirs, pairs)

    def _find_layouts(self) -> list[int]:
        """Per tensor, a number that it has in common with all whose atoms are the same, seen alike."""
        tensors, numbers = self.atoms.tensors, {}
        found: list[int] = []
        for tensor in self.graph.tensors:
            key = tensors[tensor.id].layout, self.atoms.cut_alike[tensors[tensor.id].root]
            if key not in numbers:
                numbers[key] = len(self._views)
                self._views.append(self._view(tensor.id))
            found.append(numbers[key])
        return found

    def _view(self, tensor: int) -> tuple[tuple[Split, ...], tuple[int, ...]]:
        """The atoms of a tensor, and the place of each among those of what it views; -1 if it is none of them."""
        mine, made = self._splits(tensor), self._splits(self.root(tensor))
        places: dict[object, int] = {split: place for place, split in enumerate(made)}
        return mine, tuple(places.get(self.atoms.to_root(tensor, split), -1) for split in mine)

    def _splits(self, tensor: int) -> tuple[Split, ...]:
        dimensions = range(len(self.graph.tensors[tensor].shape))
        return tuple(split for d in dimensions for split in self.atoms.splits(tensor, d) if split.size > 1)

    def _matched(self, left: int, right: int) -> Pairs | None:
        """The pairs of atoms of two layouts; None if not all of their atoms are in the same places."""
        (ours, mine), (theirs, others) = self._views[left], self._views[right]
        if ours != theirs or -1 in mine or -1 in others:
            return None
        return tuple(zip(mine, others, strict=True))

    def _merge(self, left: int, right: int, pairs: Pairs) -> bool:
        kept, gone = self._of[left], self._of[right]
        ours, theirs = self._labels[left], self._labels[right]
        if kept is gone:
            fits = True
            for mine, other in pairs:  # earlier pairs may have joined what this one has
                here, there = self._find(ours[mine]), self._find(theirs[other])
                fits = fits and (here == there or self._unite(here, there))
            return fits
        if any(len(set(side)) < len(side) for side in zip(*pairs, strict=True)):
            return False
        for mine, other in pairs:
            self._join(ours[mine], theirs[other])
        if len(gone.tensors) > len(kept.tensors):
            kept, gone = gone, kept
        kept.tensors += gone.tensors
        kept.whole = kept.whole or gone.whole
        for tensor in gone.tensors:
            self._of[tensor] = kept
        return True

    def _unite(self, here: int, there: int) -> bool:
        """Make two labels of a group one; returns whether no tensor has both."""
        if not self._owners[here].isdisjoint(self._owners[there]):
            return False
        self._join(here, there)
        return True

    def _join(self, left: int, right: int) -> None:
        """Make two labels one, which is the lesser of them."""
        low, high = sorted((self._find(left), self._find(right)))
        fewer, more = sorted((self._owners[low], self._owners[high]), key=len)
        more |= fewer
        self._owners[low], self._owners[high] = more, set()
        self._same[high] = low

    def _find(self, label: int) -> int:
        same = self._same
        while same[label] != label:
            same[label] = same[same[label]]
            label = same[label]
        return label

    def _distinct(self) -> Sequence[_Tied]:
        return list(dict.fromkeys(self._of.values()))

    def _group(self, tied: _Tied) -> TensorGroup:
        members: dict[int, Labels] = {}
        for tensor in tied.tensors:
            splits, _ = self._views[self._layouts[tensor]]
            members[tensor] = dict(zip(splits, map(self._find, self._labels[tensor]), strict=True))
        sizes = {label: self._sizes[label] for labels in members.values() for label in labels.values()}
        return TensorGroup(members, sizes, tied.whole)
