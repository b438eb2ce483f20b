"""A proven lower bound on the time of a plan whose order is given, by a linear program.

Let the op in slot `c` start at time `t(c)`, and look only at the starts of some slots, the checkpoints, of which slot 0
is one. They cut the step into intervals: before the first, between two, and from the last to the end of the step. For
any valid plan, read off these numbers:

- `away[s, c]`, for a checkpoint `c` inside a span between two uses of storage `s` (or before its first use or after its
  last if it must be live there): the bytes of `s` that the device does not have at `t(c)`; all of them if no residency
  covers slot `c`, otherwise those that a copy in has yet to move, if any.
- `copied[s, c]`: the bytes of the present value of `s` that had been copied to the host by `t(c)`.
- `host[s]`, for persistent storages: all bytes if `s` begins the step on the host, else none.

They satisfy the rows below, so the least total length of the intervals under these rows bounds the step's length.

1. *Memory.* Residencies in one slot share no byte, so their sizes add up to no more than the budget, aligned or not. A
   copy in that has moved anything by `t(c)` began before the op in slot `c` was done, so its residency covers slot `c`.
   Hence in slot `c`, live bytes less `away` fit the budget. An op that reuses the buffer of an input counts it once.
2. *In.* Bytes that are off the device at `t(c)` and needed by slot `v` move between `t(c)` and `t(v)`: between two
   checkpoints at least as much comes in as `away` shrinks; after the last one in a span, all that is still `away`.
   Before the first use all of `host` comes in; after the last use, a storage that began on the device is back at the
   end: all of `away` less `host`.
3. *Out.* A storage that is off the device at `t(c)` left in a slot up to `c`, and the op in slot `c` waits for the copy
   out: so `away <= copied`, unless the host copy was valid without one (an input; a storage that no op writes; the
   first value of a storage that began on the host). A value is copied after the op that wrote it, and once copied stays
   so until the next write: `copied` only grows, and only by what goes out. A storage that an op updates and that began
   on the host has all of its last value copied by the end.
4. *Link.* While both directions are busy, each does only a share of its work. So in an interval the larger of the bytes
   in and out, plus `1 / share - 1` times the smaller, takes no longer on the link than the interval.
5. *Compute.* An interval is at least as long as the ops that start in it.

The model leaves out latencies, alignment, holes between residencies, queue orders, that a storage moves as a whole, and
everything between checkpoints; this only lowers the bound. Storages with the same access pattern share their variables.
The bound is not the solver's optimum but the value of its dual solution by weak duality, so the solver's tolerances
cannot raise it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np

from planner.errors import StowageError
from planner.graph import Graph
from planner.machine import Machine
from planner.progress import Progress, ShowProgress, reporting
from planner.swap.bounds.any_order import both_ways, bound_of
from planner.swap.problem.problem import Bytes, Ints, Problem, Seconds, build_problem
from planner.swap.problem.uses import Uses, uses_of

#: How many segments of equal compute time get a checkpoint each: more give a higher bound and take longer.
_SEGMENT_COUNTS = (8, 24, 40, 64)
#: A finer program is started only if this many times the time of the last one is left.
_GROWTH = 4.0


def order_bound(
    graph: Graph,
    machine: Machine,
    budget: int,
    seconds: Seconds,
    order: Sequence[int],
    *,
    time_limit: float = 3.0,
    progress: ShowProgress = True,
) -> float:
    """Lower bound in seconds on any plan with this order, however it swaps; at least `lower_bound`.

    Args:
        graph, machine: what is planned, and where it runs.
        budget: device bytes.
        seconds: `[ops]`, how long each op runs.
        order: the op in each slot.
        time_limit: seconds after which the best bound proven so far is returned.
        progress: True shows progress, False shows nothing; a function is called with the share done, 0 to 1, and a
            description of the current work.

    Raises:
        StowageError: `order` is not a legal order of the ops, or as in `lower_bound`.
    """
    if not _legal(graph, order):
        raise StowageError(
            f"the ops of {graph.name} cannot run in this order; list each op once, after all it depends on, or give "
            "the order of a plan"
        )
    with reporting(progress) as report:
        report(0.0, "laying out the graph")
        problem = build_problem(graph, machine, budget, seconds)
        return bound_of_order(problem, np.asarray(order, np.int32), time_limit, report)


def _legal(graph: Graph, order: Sequence[int]) -> bool:
    """Whether every op is listed once, after all that it depends on."""
    slots = {int(op): slot for slot, op in enumerate(order)}
    if len(order) != len(graph.ops) or slots.keys() != set(range(len(graph.ops))):
        return False
    return all(slots[earlier] < slots[op] for op, before in enumerate(graph.dependencies) for earlier in before)


def bound_of_order(problem: Problem, order: Ints, time_limit: float, report: Progress | None = None) -> float:
    """`order_bound` of a problem: linear programs of more and more checkpoints, as long as there is time."""
    report = report or Progress()
    best, begin, last_seconds = bound_of(problem), perf_counter(), 0.0
    uses = uses_of(order, problem.arrays)
    live = _live(problem, uses)
    if live.max(initial=0) <= problem.arena_budget:
        return best
    for segments in _SEGMENT_COUNTS:
        left = time_limit - (perf_counter() - begin)
        if left <= _GROWTH * last_seconds:
            break
        start = perf_counter()
        share = min(1.0, (start - begin) / time_limit)
        report(share, f"bounding the order with {segments} checkpoints")
        program = _LinearProgram(
            problem, order, uses, live, _checkpoints(problem.compute_seconds[order], live, segments)
        )
        best = max(best, program.solve(left))
        last_seconds = perf_counter() - start
    return best


def _live(problem: Problem, uses: Uses) -> Bytes:
    """`[slots]`, the unaligned bytes that are on the device or must come back, without storages no longer needed."""
    arrays, n = problem.arrays, problem.ops
    sizes = _sizes(problem)
    change = np.zeros(n + 1, np.int64)
    touched = np.flatnonzero(np.diff(uses.start) > 0)
    first, last = uses.slot[uses.start[touched]], uses.slot[uses.start[touched + 1] - 1]
    live_at_end = arrays.persistent[touched] | (arrays.live_out[touched] & ~arrays.live_in[touched])
    np.add.at(change, np.where(arrays.live_in[touched], 0, first), sizes[touched])
    np.add.at(change, np.where(live_at_end, n, last + 1), -sizes[touched])
    live = np.cumsum(change)[:n]
    reusing = np.flatnonzero(uses.reused_buffer >= 0)
    live[reusing] -= sizes[uses.reused_buffer[reusing]]
    return live


def _sizes(problem: Problem) -> Bytes:
    return problem.sizes


def _checkpoints(seconds: Seconds, live: Bytes, segments: int) -> Ints:
    """Slot 0 and the slot with most live bytes of each segment."""
    ends = np.cumsum(seconds)
    which = np.minimum((ends - seconds) / max(ends[-1], 1e-300) * segments, segments - 1).astype(np.int64)
    edges = np.flatnonzero(np.diff(which, prepend=-1))
    fullest = [a + int(np.argmax(live[a:b])) for a, b in zip(edges, [*edges[1:].tolist(), len(seconds)], strict=True)]
    return np.unique([0, *fullest]).astype(np.int32)


#: A half-open range of checkpoints in a span without uses, and the index of the value stored then.
Span = tuple[int, int, int]


@dataclass(frozen=True)
class _AccessPattern:
    """How a storage is used, at the resolution of the checkpoints.

    `before`, `between` and `after` are spans of checkpoints before the first use, between uses, and after the last.
    `written[j]` is the first checkpoint after value `j` was written, or -1 if it needs no copying.
    `persistent` says whether the storage is persistent, `updated` whether it is live-in and any op writes it.
    """

    persistent: bool
    updated: bool
    before: Span
    between: tuple[Span, ...]
    after: Span
    written: tuple[int, ...]


@dataclass(eq=False)
class _LinearProgram:
    """Rows `A x <= b` over `0 <= x <= most`, built entry by entry; the first variables are the stalls of the intervals.

    Args:
        problem, order, uses, live: what is bounded.
        checkpoints: slots, ascending, the first of them 0.
    """

    problem: Problem
    order: Ints
    uses: Uses
    live: Bytes
    checkpoints: Ints
    upper_bounds: list[float] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    columns: list[int] = field(default_factory=list)
    entries: list[float] = field(default_factory=list)
    limits: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        count = len(self.checkpoints)
        clock = np.concatenate([[0.0], np.cumsum(self.problem.compute_seconds[self.order])])
        self.compute = np.diff(np.concatenate([[0.0], clock[self.checkpoints], [clock[-1]]]))
        self.unit = float(max(self.problem.arena_budget, 1))  # bytes are measured in budgets
        self.moved_in: list[list[tuple[int, float]]] = [[] for _ in range(count + 1)]
        self.moved_out: list[list[tuple[int, float]]] = [[] for _ in range(count + 1)]
        self.away: list[list[int]] = [[] for _ in range(count)]
        patterns = self._access_patterns()
        total = sum(patterns.values()) / self.unit
        self.upper_bounds = [0.0] * (count + 1)
        for pattern, size in patterns.items():
            self._add(pattern, size / self.unit)
        for c in np.flatnonzero(self.live[self.checkpoints] > self.problem.arena_budget):
            missing = float(self.live[self.checkpoints[c]] - self.problem.arena_budget) / self.unit
            self._row([(x, -1.0) for x in self.away[c]], -missing)
        speed = self.problem.link.bandwidth / self.unit
        shared = both_ways(self.problem.link)
        # no bound needs stalls longer than copying everything both ways in every interval
        self.longest_stall = 4.0 * (count + 1) * max(total, 1.0) / speed
        for k in range(count + 1):
            self.upper_bounds[k] = self.longest_stall
            for one, other in ((self.moved_in[k], self.moved_out[k]), (self.moved_out[k], self.moved_in[k])):
                if one:
                    both = one + [(x, shared * share) for x, share in other]
                    self._row([(k, -speed), *both], speed * float(self.compute[k]))

    def solve(self, time_limit: float) -> float:
        """Least seconds of the step that the rows allow; 0 if the time does not suffice to prove a bound."""
        from scipy.optimize import linprog
        from scipy.sparse import csr_matrix

        upper_bounds = np.array(self.upper_bounds)
        cost = np.zeros(len(upper_bounds))
        cost[: len(self.checkpoints) + 1] = 1.0
        limits = np.array(self.limits)
        matrix = csr_matrix((self.entries, (self.rows, self.columns)), shape=(len(limits), len(upper_bounds)))
        solution = linprog(
            cost, A_ub=matrix, b_ub=limits, bounds=np.column_stack([np.zeros(len(upper_bounds)), upper_bounds]),
            method="highs", options={"time_limit": max(time_limit, 0.01)},
        )  # fmt: skip
        if solution.status != 0:
            return 0.0
        duals = np.maximum(0.0, -solution.ineqlin.marginals)
        reduced_costs = cost + matrix.T @ duals
        stall = float(-limits @ duals + np.minimum(reduced_costs, 0.0) @ upper_bounds)
        return float(self.compute.sum()) + min(max(stall, 0.0), self.longest_stall)

    def _access_patterns(self) -> dict[_AccessPattern, int]:
        """The total bytes of the storages of each access pattern."""
        arrays, uses, at = self.problem.arrays, self.uses, self.checkpoints
        count, sizes = len(at), _sizes(self.problem)
        above = np.searchsorted(at, uses.slot, side="right").tolist()  # the first checkpoint after each use
        below = np.searchsorted(at, uses.slot, side="left").tolist()  # the first checkpoint not before it
        start, writes = uses.start.tolist(), uses.writes.tolist()
        persistent, live_in = arrays.persistent.tolist(), arrays.live_in.tolist()
        live_out, updated = arrays.live_out.tolist(), arrays.updated.tolist()
        patterns: dict[_AccessPattern, int] = {}
        for s in range(self.problem.storages):
            a, b = start[s], start[s + 1]
            if a == b:
                continue
            first, last = below[a], above[b - 1]
            before = (0, first if live_in[s] else 0, 0)
            written = [0 if persistent[s] and updated[s] else -1]
            between: list[Span] = []
            for k in range(a, b):
                if writes[k]:
                    written.append(above[k])
                if k + 1 < b and above[k] < below[k + 1]:
                    between.append((above[k], below[k + 1], len(written) - 1))
            live_at_end = persistent[s] or (live_out[s] and not live_in[s])
            after = (last, count if live_at_end else last, len(written) - 1)
            if before[0] < before[1] or between or after[0] < after[1]:
                pattern = _AccessPattern(
                    persistent[s], updated[s] and live_in[s], before, tuple(between), after, tuple(written)
                )
                patterns[pattern] = patterns.get(pattern, 0) + int(sizes[s])
        return patterns

    def _add(self, pattern: _AccessPattern, size: float) -> None:
        """Add the variables and rows of the storages of one access pattern, `size` budgets in total."""
        end = len(self.checkpoints)
        spans = [span for span in (pattern.before, *pattern.between, pattern.after) if span[0] < span[1]]
        host = self._variable(size) if pattern.persistent else -1
        last_value = len(pattern.written) - 1
        copied: list[dict[int, int]] = [{} for _ in pattern.written]
        for value, since in enumerate(pattern.written):
            until = max((span[1] for span in spans if span[2] == value), default=0)
            if pattern.updated and pattern.persistent and value == last_value:
                until = end + 1  # by the end of the step
            if since >= 0:
                for k in range(since, until):
                    copied[value][k] = x = self._variable(size)
                    self.moved_out[k].append((x, 1.0))
                    if k > since:
                        self.moved_out[k].append((copied[value][k - 1], -1.0))
                        self._row([(copied[value][k - 1], 1.0), (x, -1.0)], 0.0)
        if pattern.updated and pattern.persistent:
            self._row([(host, 1.0), (copied[last_value][end], -1.0)], 0.0)
        if pattern.persistent and pattern.before[0] == pattern.before[1]:
            self.moved_in[0].append((host, 1.0))
        for span in spans:
            low, high, value = span
            previous = -1
            for k in range(low, high):
                x = self._variable(size)
                self.away[k].append(x)
                if pattern.written[value] >= 0:
                    begun = [(host, -1.0)] if value == 0 else []
                    self._row([(x, 1.0), (copied[value][k], -1.0), *begun], 0.0)
                if k == 0 and pattern.persistent:  # in slot 0, a storage that begins on the device is there
                    self._row([(x, 1.0), (host, -1.0)], 0.0)
                    self._moved_in(k, [(host, 1.0), (x, -1.0)], size)
                elif previous >= 0:
                    self._moved_in(k, [(previous, 1.0), (x, -1.0)], size)
                previous = x
            if span is not pattern.after:
                self.moved_in[high].append((previous, 1.0))
            elif pattern.persistent:
                self._moved_in(end, [(previous, 1.0), (host, -1.0)], size)

    def _moved_in(self, interval: int, shrinks: list[tuple[int, float]], size: float) -> None:
        """Require that at least as much comes in as `away` shrinks."""
        x = self._variable(size)
        self.moved_in[interval].append((x, 1.0))
        self._row([*shrinks, (x, -1.0)], 0.0)

    def _variable(self, upper_bounds: float) -> int:
        self.upper_bounds.append(upper_bounds)
        return len(self.upper_bounds) - 1

    def _row(self, entries: list[tuple[int, float]], limit: float) -> None:
        for column, entry in entries:
            self.rows.append(len(self.limits))
            self.columns.append(column)
            self.entries.append(entry)
        self.limits.append(limit)
