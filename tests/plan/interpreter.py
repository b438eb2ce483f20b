"""A machine that runs a plan on tokens instead of numbers, byte by byte, in any legal interleaving of its streams.

Ops and copies take time: what they write is rubbish from their begin to their end, and what they read must be the
same at both. It shares nothing with the validator; both know only the words of `planner.plan.schema`.
"""

from __future__ import annotations

import random
from functools import lru_cache

from planner.graph import Graph, Kind
from planner.plan import SwapPlan

COMPUTE, OUT, IN = 0, 1, 2


class FaultError(Exception):
    """The plan computed a wrong value, or could not be run."""


@lru_cache(maxsize=4096)
def content(token, size):
    """Every byte of a storage that holds a token; the same objects each time, which are compared at once."""
    return [(token, byte) for byte in range(size)]


class Machine:
    """Runs steps of a plan one after another.

    Args:
        plan, graph: the plan and its graph.
        seed: of the interleavings; how eager each stream is differs from seed to seed.
    """

    def __init__(self, plan: SwapPlan, graph: Graph, seed: int) -> None:
        self.plan = plan
        self.graph = graph.with_workspaces(dict(plan.workspaces))
        self.random = random.Random(seed)
        self.eagerness = [self.random.choice([0.02, 1.0, 50.0]) for _ in range(3)]
        self.n = len(plan.order)
        self.device = [("nothing",)] * plan.budget_bytes
        self.host = [("nothing",)] * (plan.host_bytes if plan.host_budget_bytes is None else plan.host_budget_bytes)
        self.arrivals = {(copy.storage, copy.start) for copy in plan.swap_ins}
        self.written = {s for written in self.graph.writes for s in written}
        self.truth = {s.id: ("at first", s.id) for s in self.graph.storages if s.persistent}
        self.number = 0

    def size(self, storage):
        return self.graph.storages[storage].bytes

    def put(self, memory, offset, storage, token):
        if offset < 0 or offset + self.size(storage) > len(memory):
            raise FaultError(f"storage {storage} lies outside of memory")
        memory[offset : offset + self.size(storage)] = content(token, self.size(storage))

    def get(self, memory, offset, storage):
        if offset < 0 or offset + self.size(storage) > len(memory):
            raise FaultError(f"storage {storage} lies outside of memory")
        return memory[offset : offset + self.size(storage)]

    def expect(self, memory, offset, storage, token, when):
        found = self.get(memory, offset, storage)
        if found != content(token, self.size(storage)):
            raise FaultError(f"{when}: storage {storage} should hold {token} and holds {found}")

    def first_stay(self, storage):
        """The residency from the start of the step that neither a copy nor an op begins."""
        if not self.graph.storages[storage].live_in or (storage, 0) in self.arrivals:
            return None
        return next((r for r in self.plan.residencies if (r.storage, r.start) == (storage, 0)), None)

    def stay(self, storage, slot):
        """Where an op finds a storage; one whose memory it takes over has just left."""
        found = [r for r in self.plan.residencies if r.storage == storage and r.start <= slot < r.stop]
        if found:
            return found[0]
        op = self.graph.ops[self.plan.order[slot]]
        if storage in {self.graph.tensors[t].storage for t in op.overwrites}:
            for old in self.plan.residencies:
                for new in self.plan.residencies:
                    here = (old.storage, old.stop, new.storage, new.start) == (storage, slot, self.heir(op), slot)
                    if here and old.offset == new.offset:
                        return old
        if self.size(storage):
            raise FaultError(f"slot {slot}: storage {storage} is not on the device")
        return None

    def heir(self, op):
        return self.graph.tensors[op.outputs[0]].storage

    def place(self, storage, start, stop):
        for home in self.plan.host_residencies:
            if home.storage == storage and home.start <= start and stop <= home.stop:
                return home
        raise FaultError(f"storage {storage} has no place on the host from {start} to {stop}")

    def homes(self, storage):
        return [h for h in self.plan.host_residencies if h.storage == storage and h.start == -1]

    def load(self):
        """Put a new batch, and at first the state, where the step expects them; all else is rubbish."""
        for storage in self.graph.storages:
            if storage.kind is Kind.INPUT:
                self.truth[storage.id] = ("batch", self.number, storage.id)
            if not storage.live_in or (storage.persistent and self.number):
                continue
            stay, homes = self.first_stay(storage.id), self.homes(storage.id)
            if stay is not None:
                self.put(self.device, stay.offset, storage.id, self.truth[storage.id])
            for home in homes:
                stale = stay is not None and storage.id in self.written
                self.put(self.host, home.offset, storage.id, ("stale",) if stale else self.truth[storage.id])

    def values(self):
        """What each op reads and leaves, by running them in captured order."""
        now = {s.id: self.truth[s.id] for s in self.graph.storages if s.live_in}
        reads, leaves = [], []
        for op in self.graph.ops:
            reads.append({s: now[s] for s in (*self.graph.reads[op.id], *self.graph.writes[op.id]) if s in now})
            now |= {s: ("made", self.number, op.id, s) for s in self.graph.writes[op.id]}
            leaves.append({s: now[s] for s in self.graph.writes[op.id]})
        return reads, leaves, now

    def step(self):
        """Run one step and look at what it leaves."""
        self.load()
        self.reads, self.leaves, final = self.values()
        self.done, self.running = [0, 0, 0], [None, None, None]
        counts = (self.n, len(self.plan.swap_outs), len(self.plan.swap_ins))
        while self.done != list(counts):
            choices = [s for s in range(3) if self.running[s] or (self.done[s] < counts[s] and self.may_begin(s))]
            if not choices:
                raise FaultError(f"the streams wait for each other after {self.done}")
            stream = self.random.choices(choices, [self.eagerness[s] for s in choices])[0]
            if self.running[stream] is None:
                self.running[stream] = self.begin(stream, self.done[stream])
            else:
                self.running[stream]()
                self.running[stream] = None
                self.done[stream] += 1
        self.finish(final)
        self.number += 1

    def may_begin(self, stream):
        """The waiting rules, word for word."""
        number = self.done[stream]
        if stream == COMPUTE:
            return all(self.done[IN] > k for k, copy in enumerate(self.plan.swap_ins) if copy.use <= number) and all(
                self.done[OUT] > k for k, out in enumerate(self.plan.swap_outs) if out.release <= number
            )
        if stream == OUT:
            return self.done[COMPUTE] > self.plan.swap_outs[number].ready
        start = self.plan.swap_ins[number].start
        outs = all(self.done[OUT] > k for k, out in enumerate(self.plan.swap_outs) if out.release <= start)
        return self.done[COMPUTE] >= start and outs

    def begin(self, stream, number):
        if stream == COMPUTE:
            return self.begin_op(number)
        if stream == OUT:
            out = self.plan.swap_outs[number]
            stay = next((r for r in self.plan.residencies if (r.storage, r.stop) == (out.storage, out.release)), None)
            place = self.place(out.storage, out.ready, out.release)
            return self.begin_copy(out.storage, self.device, stay, self.host, place, (stream, number))
        copy = self.plan.swap_ins[number]
        stay = next((r for r in self.plan.residencies if (r.storage, r.start) == (copy.storage, copy.start)), None)
        place = self.place(copy.storage, copy.start - 1, copy.use)
        return self.begin_copy(copy.storage, self.host, place, self.device, stay, (stream, number))

    def begin_copy(self, storage, source, origin, target, landing, who):
        if origin is None or landing is None:
            raise FaultError(f"copy {who} of storage {storage} has no residency")
        seen = self.get(source, origin.offset, storage)
        self.put(target, landing.offset, storage, ("unfinished", who))

        def end():
            self.expect(target, landing.offset, storage, ("unfinished", who), f"copy {who}")
            if self.get(source, origin.offset, storage) != seen:
                raise FaultError(f"storage {storage} changed while copy {who} was reading it")
            target[landing.offset : landing.offset + len(seen)] = seen

        return end

    def begin_op(self, slot):
        op = self.graph.ops[self.plan.order[slot]]
        alone = op.first_run_only if op.id in self.plan.order[:slot] else ()
        written = [s for s in self.graph.writes[op.id] if s not in alone]
        stays = {s: self.stay(s, slot) for s in (*self.graph.reads[op.id], *written) if s not in alone}
        stays = {s: stay for s, stay in stays.items() if stay is not None}
        before = {s: token for s, token in self.reads[op.id].items() if s in stays}
        taken = {stays[s].offset for s in before if stays[s].stop == slot}
        fresh = {s: ("unfinished", op.id, s) for s in written if s in stays and s not in before}
        if op.workspace >= 0:
            stays[op.workspace] = self.stay(op.workspace, slot)
            fresh[op.workspace] = ("scratch", op.id)
        for s, token in before.items():
            self.expect(self.device, stays[s].offset, s, token, f"slot {slot}")
        held_back = {s for s in fresh if stays[s].offset in taken and s == self.heir(op)}
        for s in fresh.keys() - held_back:
            self.put(self.device, stays[s].offset, s, fresh[s])

        def end():
            for s, token in before.items():
                self.expect(self.device, stays[s].offset, s, token, f"end of slot {slot}")
            for s in fresh.keys() - held_back:
                self.expect(self.device, stays[s].offset, s, fresh[s], f"end of slot {slot}")
            for s in written:
                if s in stays:
                    self.put(self.device, stays[s].offset, s, self.leaves[op.id][s])

        return end

    def finish(self, final):
        """Check what the step returns and what the next one starts from, then spoil everything else."""
        for storage in self.graph.output_storages:
            stay = next((r for r in self.plan.residencies if (r.storage, r.stop) == (storage, self.n)), None)
            if stay is not None:
                self.expect(self.device, stay.offset, storage, final[storage], "returned")
            elif self.size(storage):
                self.expect(self.host, self.place(storage, self.n, self.n).offset, storage, final[storage], "returned")
        device, host = [("spoilt",)] * len(self.device), [("spoilt",)] * len(self.host)
        for storage in self.graph.storages:
            if not storage.persistent:
                continue
            self.truth[storage.id] = final[storage.id]
            stay, homes = self.first_stay(storage.id), self.homes(storage.id)
            if stay is not None:
                self.expect(self.device, stay.offset, storage.id, final[storage.id], "state on the device")
                device[stay.offset : stay.offset + storage.bytes] = self.get(self.device, stay.offset, storage.id)
            for home in homes:
                if stay is None:
                    self.expect(self.host, home.offset, storage.id, final[storage.id], "state on the host")
                host[home.offset : home.offset + storage.bytes] = self.get(self.host, home.offset, storage.id)
        self.device, self.host = device, host


def runs_clean(plan: SwapPlan, graph: Graph, runs: int, steps: int = 3) -> bool:
    """Whether a plan computes the right values in every one of several interleavings, step after step."""
    for seed in range(runs):
        try:
            machine = Machine(plan, graph, seed)
            for _ in range(steps):
                machine.step()
        except FaultError:
            return False
    return True
