"""Several strategies of the complete search in turn, with limits that grow, until one of them decides."""

from __future__ import annotations

from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.cancel import CancelToken
from planner.memory.packing.complete import (
    CROWDED,
    FAILING,
    FEWEST,
    FULLEST,
    LOWEST,
    TIGHTEST,
    Sections,
    place_completely,
    sections_of,
)
from planner.memory.packing.problem import PackingProblem

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
#: How a section is chosen, the order of candidates, whether those with most bytes left come first, and whether time is
#: mirrored.
_STRATEGIES = (
    (CROWDED, 0, False, False), (TIGHTEST, 1, False, True), (CROWDED, 0, False, True), (FEWEST, 0, False, False),
    (CROWDED, 1, False, True), (FULLEST, 1, True, False), (TIGHTEST, 0, False, True), (CROWDED, 1, False, False),
    (LOWEST, 1, False, True), (FAILING, 0, False, False),
)  # fmt: skip
#: Nodes of the first round for each box, how many times more each round has, and the shares of boxes over which ranks
#: are shuffled after the first: a search that began badly seldom recovers, and many short ones solve more than one.
_FIRST_NODES, _GROWTH, _NOISES = 3, 1.3, (0.2, 0.05)
#: Nodes of a call that only finds out how long they take.
_PROBE = 64


class Decision(NamedTuple):
    """Whether boxes fit below a height (None: not decided), with their offsets or the boxes that prove it."""

    fits: bool | None
    offsets: Ints
    blamed: Ints


class _Rounds:
    """How far the strategies have come at one height: each round has all of them, with more nodes than the last.

    Args:
        boxes: number of boxes.
    """

    def __init__(self, boxes: int) -> None:
        self.limit = _FIRST_NODES * boxes + 16
        self.strategy = 0
        self._random, self._round = np.random.default_rng(0), 0

    def ranks(self, rank: Ints) -> Ints:
        """The ranks as given in the first round, afterwards shuffled a little."""
        if self._round == 0:
            return rank
        noise = _NOISES[self._round % len(_NOISES)]
        moved = rank + self._random.normal(0, noise * len(rank), len(rank))
        return np.argsort(np.argsort(moved)).astype(np.int64)

    def advance(self) -> None:
        """Go on to the next strategy."""
        self.strategy += 1
        if self.strategy == len(_STRATEGIES):
            self.strategy, self.limit = 0, int(_GROWTH * self.limit)
            self._round += 1


class CompleteSearch:
    """Decides whether boxes fit below a height; asked again for the same height, it goes on where it was.

    Args:
        problem: the boxes.
        chosen: `[chosen]`, which of them; all by default.

    Attributes:
        possible: whether there are few enough of them.
    """

    def __init__(self, problem: PackingProblem, chosen: Ints | None = None) -> None:
        self._problem = problem
        self.boxes = np.flatnonzero(problem.sizes) if chosen is None else chosen[problem.sizes[chosen] > 0]
        count = np.diff(problem.span_at)[self.boxes]
        span_at = np.concatenate(([0], np.cumsum(count))).astype(np.int32)
        span = problem.span[
            np.repeat(problem.span_at[self.boxes] - span_at[:-1], count) + np.arange(span_at[-1])
        ]  # those of the chosen boxes
        self._unit = int(np.gcd.reduce(np.append(problem.rounded[self.boxes], problem.fixed[self.boxes].clip(0)))) or 1
        self._size = problem.rounded[self.boxes] // self._unit
        fixed = problem.fixed[self.boxes]
        self._fixed = np.where(fixed < 0, -1, fixed // self._unit)
        self._views: list[tuple[Sections, list[Ints]]] = []
        for times in (span, problem.segments - span[:, ::-1]):
            sections = sections_of(span_at, np.ascontiguousarray(times), problem.segments, self._size)
            if sections is None:
                break
            self._views.append((sections, self._orders(sections)))
        self.possible = len(self._views) == 2 and len(self.boxes) > 0
        self._weights: dict[tuple[int, int], NDArray[np.float64]] = {}
        self._rounds: dict[int, _Rounds] = {}
        self._speeds: dict[int, float] = {}  # by strategy, nodes per second in its last call
        self._speed = 0.0  # in the last call of any

    def decide(self, capacity: int, nodes: int | None, until: float, stop: CancelToken) -> Decision:
        """Search until it is decided.

        Args:
            capacity: bytes that no box may reach beyond.
            nodes: how many nodes to visit at most; None for no limit.
            until: when to give up, on `perf_counter`.
            stop: checked before each strategy, and by the kernel.

        Raises:
            Cancelled: cancellation was requested.
        """
        n, empty = len(self.boxes), np.empty(0, np.int64)
        sizes = self._problem.sizes[self.boxes]
        highest = (capacity - sizes) // self._unit
        too_high = highest < np.maximum(self._fixed, 0)
        if too_high.any():
            return Decision(False, empty, self.boxes[too_high][:1])
        top = highest + self._size
        highest = np.where(self._fixed >= 0, self._fixed, highest)
        rounds, spent = self._rounds.setdefault(capacity, _Rounds(n)), 0
        while True:
            stop.check()
            if perf_counter() > until or (nodes is not None and spent >= nodes):
                return Decision(None, empty, empty)
            choice, order, by_bytes_left, mirrored = _STRATEGIES[rounds.strategy]
            sections, orders = self._views[mirrored]
            room = np.maximum.reduceat(top[sections.in_section], sections.section_at[:-1])
            rank = rounds.ranks(orders[order])
            weights = self._weights.setdefault((rounds.strategy, capacity), np.ones(len(room)))
            offsets, proof = np.zeros(n, np.int64), np.zeros(sections.bits.shape[1], np.uint64)
            strategy, most = rounds.strategy, rounds.limit if nodes is None else min(rounds.limit, nodes - spent)
            if nodes is None:
                most = min(most, self._affordable(strategy, until - perf_counter()))
            if nodes is not None or self._speed:  # a call that only finds out how fast it is takes nobody's turn
                rounds.advance()
            begin = perf_counter()
            result, visited = place_completely(
                self._size, highest, self._fixed, self._alike(sections, highest), sections, room, rank, choice,
                by_bytes_left, most, weights, offsets, proof, stop.flag,
            )  # fmt: skip
            spent += visited
            self._speed = self._speeds[strategy] = visited / max(perf_counter() - begin, 1e-9)
            if result == 1:
                return Decision(True, offsets * self._unit, empty)
            if result == 0:
                return Decision(False, empty, self.boxes[(sections.bits & proof).any(1)])

    def _affordable(self, strategy: int, seconds: float) -> int:
        """How many nodes a strategy may visit in a time: a call does not look at the clock."""
        nodes = _PROBE + self._speeds.get(strategy, self._speed) * seconds
        return int(min(nodes, 2**62)) if self._speed else _PROBE

    def above(self, height: int) -> int:
        """The least height in bytes above a given one that the top of some box can have."""
        sizes = self._problem.sizes[self.boxes]
        return int((sizes + np.maximum((height - sizes) // self._unit + 1, 0) * self._unit).min())

    def _orders(self, sections: Sections) -> list[Ints]:
        """Ranks of the boxes: the long ones first, or those that are alive when memory is fullest."""
        width, size = self._problem.length[self.boxes], self._size.astype(np.float64)
        ranks = []
        for first, second, third in (
            (width, width * size, sections.fullest),
            (sections.fullest, width * size, width),
        ):
            rank = np.empty(len(width), np.int64)
            rank[np.lexsort((-third, -second, -first))] = np.arange(len(width))
            ranks.append(rank)
        return ranks

    def _alike(self, sections: Sections, highest: Ints) -> NDArray[np.int32]:
        """The next box, in a ring, of those with the same life and the same room above them."""
        top = (highest + self._size).tolist()
        span_at, span, fixed = sections.span_at.tolist(), sections.span.tolist(), self._fixed.tolist()
        following = list(range(len(top)))
        seen: dict[tuple[object, ...], int] = {}
        for box in range(len(top)):
            if fixed[box] >= 0:
                continue
            life = (top[box], *(tuple(one) for one in span[span_at[box] : span_at[box + 1]]))
            before = seen.setdefault(life, box)
            if before != box:
                following[box], following[before] = following[before], box
        return np.array(following, np.int32)
