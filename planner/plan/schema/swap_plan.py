"""SwapPlan: the order in which ops run, and where every storage is at every moment.

Time in a plan is a *slot*, a position in the order, never seconds. Slot `i` is the moment at which the op
`order[i]` runs; slot `n`, one past the last op, is the end of the step. Spans of slots are half-open.
An entry of the order is an *instance* of an op: an op may run again, to make values that were dropped once more, in
residencies of the same storages that begin at that slot. A random op then draws the numbers of its first run again, and
what is in `Op.first_run_only` is neither read nor written. Where a result is still there, it is written once more.
A storage is off the device between two of its residencies. Every lane works through its queue in order, and the slots
determine what each entry waits for:

- the op in slot `i` waits for every swap-in with `use <= i` and every swap-out with `release <= i`;
- a swap-out waits for the op in slot `ready` (-1: for nothing);
- a swap-in waits for every op in a slot below `start` and every swap-out with `release <= start`;
- the step ends when all queues are empty.

A collective is an op like any other, and takes its turn in the order. A plan may hand it over to the communication
lane, which adds three rules and no op:

- in the slot of a collective that the communication lane has, its `start`, compute only hands it over, and goes on. The
  lane does its collectives in that order, each once compute has handed it over;
- the op in slot `i`, and a swap-in with `start` `i`, wait for every collective with `use <= i`;
- what a collective touches, its scratch memory among it, stays where it is from `start` until `use`. Until then nothing
  else writes what it reads, and nothing reads or writes what it writes: no op, and no copy.

The last rule includes the token of no bytes that every collective writes, so all workers exchange in the order of the
token, whichever lane does it. A collective whose result the next op needs stays on the compute lane: there is nothing
to run beside it, and no other thread to wake up.

Start and end are two slots of one op, and not two ops of the graph: so a graph does not say what overlaps, orders and
lifetimes stay as they are for every planner, and each plan is free to overlap as much as its memory allows.

So the memory in use in any slot is known without any times, and a budget holds for any timing.
Planners predict, and the validator proves, by these rules. The executor leaves out every wait that no access to memory
needs: an op may then run while a copy is still under way in bytes that the op does not use. Every byte still goes from
one storage to the next in the plan's order, so the slabs, and with them the budget, hold for any timing there too.
The same goes for collectives.
Where the op in slot `i` creates a storage by overwriting one of its inputs, the input's residency stops at `i`
and the new storage's begins there, at the same offset.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from planner.plan.schema.lanes import COMMUNICATION, COMPUTE, SWAP_IN, SWAP_OUT, Lane
from planner.plan.schema.timeline import Timeline
from planner.units import format_bytes


@dataclass(frozen=True, slots=True)
class Residency:
    """A storage is at `offset` on the device, in bytes, from slot `start` until slot `stop`."""

    storage: int
    start: int
    stop: int
    offset: int


@dataclass(frozen=True, slots=True)
class HostResidency:
    """A storage is at `offset` in the host slab, in bytes.

    It is reserved from the moment the op in slot `start` is done (-1: from the start of the step) until the op in
    slot `stop` begins. Persistent storages and inputs that ever leave or enter the device have it from -1 until `n`.
    """

    storage: int
    start: int
    stop: int
    offset: int


@dataclass(frozen=True, slots=True)
class SwapOut:
    """Copy a storage to the host once slot `ready` is done (-1: at once); slot `release` may reuse its memory.

    The residency of the storage that contains the copy stops at `release`. A storage whose host copy is still
    valid is evicted without a swap-out: its residency just stops.
    """

    storage: int
    ready: int
    release: int


@dataclass(frozen=True, slots=True)
class SwapIn:
    """Copy a storage back: its memory is reserved from slot `start`, and slot `use` is the first to need it.

    A residency of the storage begins at `start`. `use` is `n` if it only has to be back by the end of the step.
    """

    storage: int
    start: int
    use: int


@dataclass(frozen=True, slots=True)
class Communication:
    """The collective in slot `start` runs on the communication lane; slot `use` is the first to wait for it.

    `use` is `n` if it only has to be done by the end of the step.
    """

    start: int
    use: int


#: By kind of a lane, what the entries of its queue are: the id of an op, or rows of whole numbers.
ENTRIES: Mapping[str, type] = MappingProxyType({
    COMPUTE.kind: int, SWAP_OUT.kind: SwapOut, SWAP_IN.kind: SwapIn, COMMUNICATION.kind: Communication,
})  # fmt: skip
#: By lane, its entries in order.
Queues = Mapping[Lane, tuple[Any, ...]]


def device_queues(
    order: Iterable[int],
    swap_outs: Iterable[SwapOut] = (),
    swap_ins: Iterable[SwapIn] = (),
    communications: Iterable[Communication] = (),
) -> Queues:
    """The queues of a plan that has the lanes of one device alone.

    Args:
        order: the op in each slot.
        swap_outs, swap_ins: the two copy queues.
        communications: the communication queue; without entries, the plan has no such lane.
    """
    beside = tuple(communications)
    queues: Queues = {COMPUTE: tuple(order), SWAP_OUT: tuple(swap_outs), SWAP_IN: tuple(swap_ins)}
    return {**queues, COMMUNICATION: beside} if beside else queues


@dataclass(frozen=True)
class SwapPlan:
    """A whole plan; plain data, safe to load from an untrusted source. Two are equal if all that they say is.

    Resident at the step's start are storages with a residency from slot 0 that no swap-in begins and no op creates.
    The host copy of a live-in storage is valid at the start if the storage is not resident then, or if no op ever
    writes it; the host copy of a resident storage that is written is not.

    Args:
        graph: fingerprint of the graph it is for.
        machine: name of the machine it was made for.
        method: which planner made it.
        budget_bytes, host_budget_bytes: limits it was made under; None for no host limit. What `Graph.outside_bytes`
            says is taken outside of the arena is within the former, too.
        alignment: every offset is a multiple of this many bytes.
        queues: by lane, its entries in order; a plan has at least the lanes of `device_queues`.
        workspaces: (op, bytes) of scratch memory it provides for.
        residencies, host_residencies: where each storage is, and when.
        peak_bytes, host_bytes: size of the device arena and of the host slab; the largest offset + bytes.
        predicted: the timeline that the machine model predicts.
    """

    graph: str
    machine: str
    method: str
    budget_bytes: int
    host_budget_bytes: int | None
    alignment: int
    queues: Queues
    workspaces: tuple[tuple[int, int], ...]
    residencies: tuple[Residency, ...]
    host_residencies: tuple[HostResidency, ...]
    peak_bytes: int
    host_bytes: int
    predicted: Timeline

    def __hash__(self) -> int:
        """Of plans that are equal, equal."""
        return hash((self.graph, self.method, self.budget_bytes, self.peak_bytes, self.predicted.seconds))

    @property
    def order(self) -> tuple[int, ...]:
        """The op in each slot."""
        return self.queues[COMPUTE]

    @property
    def swap_outs(self) -> tuple[SwapOut, ...]:
        """The copies to the host, in queue order."""
        return self.queues[SWAP_OUT]

    @property
    def swap_ins(self) -> tuple[SwapIn, ...]:
        """The copies to the device, in queue order."""
        return self.queues[SWAP_IN]

    @property
    def communications(self) -> tuple[Communication, ...]:
        """The collectives of the communication lane, in queue order."""
        return self.queues.get(COMMUNICATION, ())

    def __repr__(self) -> str:
        """One line, because a notebook would print the default repr, which is pages of numbers."""
        return (
            f"<SwapPlan by {self.method} for {self.machine}: {len(self.order)} ops in {self.predicted.seconds:.4g} s, "
            f"{format_bytes(self.peak_bytes)} of {format_bytes(self.budget_bytes)}, "
            f"{len(self.swap_outs)} copies out, {len(self.swap_ins)} in>"
        )
