"""Plans with swaps, made at random and without any planner: every choice that the rules leave is drawn."""

from __future__ import annotations

import random
from collections import defaultdict

import numpy as np

from planner.graph import Graph, fingerprint
from planner.plan import (
    HostResidency,
    Residency,
    SwapIn,
    SwapOut,
    SwapPlan,
    Timeline,
    device_queues,
)
from tests.plan.changing import replace


def random_plan(graph: Graph, order: list[int], seed: int, alignment: int = 8) -> SwapPlan:
    """A sound plan: storages leave and come back at random, with and without copies, to other addresses.

    Where the order has an op again, what it makes may have been dropped before.
    """
    return _Maker(graph, order, random.Random(seed), alignment).make()


class _Maker:
    def __init__(self, graph, order, rng, alignment):
        self.graph, self.order, self.rng, self.alignment = graph, order, rng, alignment
        self.n = len(order)
        self.touches, self.writes, self.made = defaultdict(list), defaultdict(set), defaultdict(set)
        makers = {}
        for op in graph.ops:
            for s in graph.writes[op.id]:
                makers.setdefault(s, op.id)
        for slot, identity in enumerate(order):
            op = graph.ops[identity]
            written = {*graph.writes[identity], *([op.workspace] if op.workspace >= 0 else [])}
            for s in {*graph.reads[identity], *written}:
                self.touches[s].append(slot)
            for s in written:
                self.writes[s].add(slot)
                if makers.get(s, identity) == identity and not graph.storages[s].live_in:
                    self.made[s].add(slot)
        self.stays, self.outs, self.ins, self.homes = [], [], [], []
        self.tied = {}  # stays that must have one offset: (storage, start) -> (storage, start)

    def make(self):
        for storage in self.graph.storages:
            self.follow(storage)
        self.take_over()
        self.outs.sort(key=lambda out: (out.ready, out.release))
        self.ins.sort(key=lambda copy: (copy.start, copy.use))
        offsets = self.place(self.stays, self.tied)
        residencies = [Residency(s, a, b, offsets[s, a]) for s, a, b in self.stays]
        host_offsets = self.place(self.homes, {})
        homes = [HostResidency(s, a, b, host_offsets[s, a]) for s, a, b in self.homes]
        self.rng.shuffle(residencies)
        top = max((r.offset + self.size(r.storage) for r in residencies), default=0)
        host_top = max((h.offset + self.size(h.storage) for h in homes), default=0)
        plan = SwapPlan(
            graph=fingerprint(self.graph), machine="test", method="random", budget_bytes=top + self.rng.choice([0, 64]),
            host_budget_bytes=self.rng.choice([None, host_top, host_top + 8]), alignment=self.alignment,
            queues=device_queues(self.order, self.outs, self.ins),
            workspaces=tuple((op.id, self.size(op.workspace)) for op in self.graph.ops if op.workspace >= 0),
            residencies=tuple(residencies), host_residencies=tuple(homes),
            peak_bytes=top, host_bytes=host_top,
            predicted=Timeline.of_device(0.0, *(np.zeros((0, 2)),) * 3, np.zeros(0), np.zeros(0, np.int64)),
        )  # fmt: skip
        return with_times(plan)

    def size(self, storage):
        return self.graph.storages[storage].bytes

    def between(self, low, high):
        return self.rng.randint(low, high)

    def follow(self, storage):
        """Decide when one storage is where."""
        s, touches = storage.id, self.touches[storage.id]
        output = s in self.graph.output_storages
        if not storage.live_in and not touches:
            return
        resident = storage.live_in and self.rng.random() < 0.5
        clean = storage.live_in and (not resident or not self.writes[s])
        moved = bool(storage.live_in and not resident and (touches or output))
        start = 0 if resident else None
        copied = [[]]  # slots that each place on the host must span
        if not storage.live_in:
            start = touches[0]
        for place, slot in enumerate(touches):
            if start is None and slot in self.made[s] and (not clean or self.rng.random() < 0.5):
                start = slot
            elif start is None:
                begin = self.between(touches[place - 1] + 1 if place else 0, slot)
                start = max(begin, self.gap_from if place else 0)
                self.ins.append(SwapIn(s, start, slot))
                copied[-1] += [start - 1, slot]
                moved = True
            clean &= slot not in self.writes[s]
            more = place + 1 < len(touches)
            leave = self.rng.random() < 0.4
            if more and leave and touches[place + 1] > slot + 1:
                release = self.between(slot + 1, touches[place + 1])
                if touches[place + 1] in self.made[s] and self.rng.random() < 0.7:
                    self.stays.append((s, start, release))
                else:
                    clean = self.leave(s, start, slot, release, clean, copied)
                start, self.gap_from, moved = None, release, True
        last = touches[-1] if touches else -1
        if storage.persistent and resident:
            if last + 1 < self.n and self.rng.random() < 0.5:
                release = self.between(last + 1, self.n - 1)
                if release > start:
                    self.leave(s, start, last, release, clean, copied)
                    start = self.between(release, self.n - 1)
                    self.ins.append(SwapIn(s, start, self.n))
                    moved = True
            self.stays.append((s, start, self.n))
            self.tied[s, start] = (s, 0)
        elif storage.persistent or output:
            stay_on = output and not storage.persistent and self.rng.random() < 0.5
            if start is not None and stay_on:
                self.stays.append((s, start, self.n))
            elif start is not None:
                release = self.between(max(last, start) + 1, self.n)
                self.leave(s, start, last, release, clean, copied)
                copied[-1].append(self.n)
                moved = True
        elif start is not None:
            self.stays.append((s, start, self.between(max(last, start) + 1, self.n)))
        if storage.live_in and (moved or (clean and self.rng.random() < 0.2)):
            self.homes.append((s, -1, self.n))
        elif not storage.live_in and copied[0]:
            before = -1
            for span, after in zip(copied, [*map(min, copied[1:]), self.n], strict=True):
                low, high = min(span), max(span)
                begin, end = self.between(max(before, low - 1), low), self.between(high, min(after, high + 1))
                self.homes.append((s, begin, end))
                before = end

    def leave(self, s, start, last, release, clean, copied):
        """End a stay; a copy is made unless the host has a valid one, and sometimes even then."""
        self.stays.append((s, start, release))
        if not clean or self.rng.random() < 0.1:
            arrival = next((copy.use for copy in self.ins if (copy.storage, copy.start) == (s, start)), -1)
            wrote = max((slot for slot in self.writes[s] if start <= slot <= last), default=-1)
            ready = self.between(max(wrote, min(arrival, release - 1)), release - 1)
            self.outs.append(SwapOut(s, ready, release))
            if copied[-1] and max(copied[-1]) <= ready:
                copied.append([])  # what lies there is of no more use, so the new copy may lie elsewhere
            copied[-1] += [ready, release]
        return True

    def take_over(self):
        """Let some outputs lie where an input with no later use lay."""
        stays = {(s, a): b for s, a, b in self.stays}
        ends = {(out.storage, out.release) for out in self.outs}
        arrivals = {(copy.storage, copy.start) for copy in self.ins}
        for slot, identity in enumerate(self.order):
            op = self.graph.ops[identity]
            if not op.overwrites:
                continue
            new = self.graph.writes[identity][0]
            if slot not in self.made[new] or (new, slot) not in stays or (new, slot) in arrivals:
                continue
            for old in {self.graph.tensors[t].storage for t in op.overwrites}:
                facts = self.graph.storages[old]
                then = next((touch for touch in self.touches[old] if touch > slot), None)
                if facts.live_in or old in self.graph.output_storages or then not in {None, *self.made[old]}:
                    continue
                start, stop = next((a, b) for (s, a), b in stays.items() if s == old and a <= slot < b)
                again = then is not None and then < stop
                if (old, stop) in ends or (old, then) in arrivals or again or start == slot or self.rng.random() < 0.3:
                    continue
                stays[old, start] = slot
                self.tied[new, slot] = (old, start)
                break
        self.stays = [(s, a, b) for (s, a), b in stays.items()]

    def place(self, spans, tied):
        """Offsets, first fit in random order; tied spans get one between them."""
        groups = defaultdict(list)
        for s, a, b in spans:
            head = (s, a)
            while head in tied and tied[head] != head:
                head = tied[head]
            groups[head].append((s, a, b))
        placed, offsets = [], {}
        for group in self.rng.sample(sorted(groups.values()), len(groups)):
            at = 0
            size = self.size(group[0][0])
            while any(
                lo < at + size and at < hi and a < stop and start < b
                for lo, hi, start, stop in placed
                for _, a, b in group
                if hi > lo and size
            ):
                at += self.alignment
            for s, a, b in group:
                placed.append((at, at + size, a, b))
                offsets[s, a] = at
        return offsets


def with_times(plan: SwapPlan) -> SwapPlan:
    """The plan with a timeline in which every op and every copy takes a second."""
    queues = [len(plan.order), len(plan.swap_outs), len(plan.swap_ins)]
    stop = [[], [], []]
    begin = [[], [], []]

    def waits(stream, k):
        if stream == 0:
            outs = [j for j, out in enumerate(plan.swap_outs) if out.release <= k]
            ins = [j for j, copy in enumerate(plan.swap_ins) if copy.use <= k]
            return [(1, j) for j in outs] + [(2, j) for j in ins]
        if stream == 1:
            return [(0, plan.swap_outs[k].ready)] if plan.swap_outs[k].ready >= 0 else []
        start = plan.swap_ins[k].start
        outs = [(1, j) for j, out in enumerate(plan.swap_outs) if out.release <= start]
        return outs + ([(0, start - 1)] if start else [])

    moved = True
    while moved:
        moved = False
        for stream in range(3):
            k = len(stop[stream])
            if k < queues[stream]:
                needs = waits(stream, k) + ([(stream, k - 1)] if k else [])
                if all(len(stop[other]) > j for other, j in needs):
                    begin[stream].append(max((stop[other][j] for other, j in needs), default=0.0))
                    stop[stream].append(begin[stream][-1] + 1.0)
                    moved = True
    spans = [np.array(list(zip(b, e, strict=True)), float).reshape(-1, 2) for b, e in zip(begin, stop, strict=True)]
    seconds = max((e for ends in stop for e in ends), default=0.0)
    timeline = Timeline.of_device(seconds, *spans, np.array([0.0, seconds]), np.array([plan.peak_bytes, 0]))
    return replace(plan, predicted=timeline)
