"""What can be computed again from what autograd saves, and when that happens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from planner.apply.schedule.hook_calls import HookCalls
from planner.graph import Graph, Phase
from planner.program import Program, ScalarRef


class Producers:
    """By storage, the op that makes it, if that op gives the same result at any time before the optimizer's.

    It draws no random numbers and writes nothing but its results, which no other op writes.

    Args:
        graph: with its program.
    """

    def __init__(self, graph: Graph) -> None:
        program: Program = graph.program
        self.graph = graph
        self.writers: dict[int, list[int]] = {}
        for op in graph.ops:
            if op.phase is not Phase.OPTIMIZER:
                for storage in graph.writes[op.id]:
                    self.writers.setdefault(storage, []).append(op.id)
        self.of: dict[int, int] = {}
        for op, call in zip(graph.ops, program.calls, strict=True):
            plain = op.phase is Phase.FORWARD and not (op.random or op.first_run_only or call.in_place)
            alone = all(self.writers[storage] == [op.id] for storage in graph.writes[op.id]) if plain else False
            if alone and not any(isinstance(one, ScalarRef) for one in (*call.args, *call.kwargs.values())):
                self.of.update(dict.fromkeys(graph.writes[op.id], op.id))

    def ops(self, storage: int, available: Callable[[int], bool]) -> tuple[list[int], set[int]] | None:
        """What has to run to make a storage; None if it cannot be made.

        Args:
            storage: the storage.
            available: whether a storage is there.

        Returns:
            The ops, in order, and the storages that they read and that are there.
        """
        ops, sources, wanted = set[int](), set[int](), [storage]
        while wanted:
            one = wanted.pop()
            if one != storage and available(one):
                sources.add(one)
                continue
            if one not in self.of:
                return None
            if self.of[one] not in ops:
                ops.add(self.of[one])
                wanted += self.graph.reads[self.of[one]]
        return sorted(ops), sources


@dataclass(frozen=True)
class Recomputation:
    """The saved storages that are dropped and made again.

    Args:
        producers: what makes them.
        constant: storages of the state that are read as they are.
        usable: saved storages of which others can be made, as nothing writes them once more.
        sources: by storage, the saved storages from which it can be made.
        made: by storage, the call of a hook at which it is made.
        needed: by storage from which others are made, the calls at which that happens.
    """

    producers: Producers
    constant: frozenset[int]
    usable: frozenset[int]
    sources: dict[int, tuple[int, ...]]
    made: dict[int, int]
    needed: dict[int, list[int]]


def recomputation(graph: Graph, calls: HookCalls, wanted: Iterable[int], state: Iterable[int]) -> Recomputation:
    """Find what of some storages can be dropped and made again.

    Args:
        graph: with its program.
        calls: of the hooks in the step.
        wanted: saved storages that a plan makes again.
        state: storages of parameters and buffers that can be read at any time.
    """
    producers = Producers(graph)
    constant = frozenset(storage for storage in state if storage not in producers.writers)
    found: dict[int, tuple[int, ...]] = {}

    usable = frozenset(
        storage
        for storage, numbers in calls.numbers.items()
        if len(producers.writers.get(storage, ())) <= 1 and not any(calls.tensors[n].written for n in numbers)
    )
    candidates = [one for one in wanted if one in producers.of and calls.offloadable(one)]
    for storage in sorted(candidates, key=producers.of.__getitem__):
        before = calls.saves[calls.numbers[storage][0]]

        def available(one: int, before: int = before) -> bool:
            kept = one in usable and one not in found and calls.saves[calls.numbers[one][0]] < before
            return one in constant or kept

        made = producers.ops(storage, available)
        if made is not None and calls.first_use(storage) is not None:
            found[storage] = tuple(sorted(made[1] - constant))
    return Recomputation(producers, constant, usable, found, *_timed(producers, calls, found, constant, usable))


def _timed(
    producers: Producers,
    calls: HookCalls,
    found: Mapping[int, tuple[int, ...]],
    constant: frozenset[int],
    usable: frozenset[int],
) -> tuple[dict[int, int], dict[int, list[int]]]:
    """When each storage is made, at its first use or with another one whose ops make it too, and what needs what."""
    when: dict[int, int] = {}
    needed: dict[int, list[int]] = {}
    first = {storage: calls.first_use(storage) or 0 for storage in found}
    for storage in sorted(found, key=first.__getitem__):
        if storage in when:
            continue
        now = first[storage]

        def available(one: int, now: int = now, ours: tuple[int, ...] = found[storage]) -> bool:
            if one in found:
                return one in when and now < calls.last_call(one)
            there = one in usable and (one in ours or calls.saves[calls.numbers[one][0]] < now < calls.last_call(one))
            return one in constant or there

        made = producers.ops(storage, available)
        assert made is not None
        for op in made[0]:
            for one in producers.graph.writes[op]:
                if one in found and one not in when and now < calls.last_call(one):
                    when[one] = now
        for one in made[1] - constant:
            needed.setdefault(one, []).append(now)
    return when, needed
