"""SwapPlan: in which order ops run, and where every storage lies at every moment.

Time in a plan is a *slot*, a position in the order, never seconds. Slot `i` is the moment at which the op
`order[i]` runs; slot `n`, one past the last op, is the end of the step. Spans of slots are half-open.
A storage is away from the device between two of its residencies. Three streams work through their queues in
order, and the slots say what each entry waits for:

- the op in slot `i` waits for every swap-in with `use <= i` and every swap-out with `release <= i`;
- a swap-out waits for the op in slot `ready` (-1: for nothing);
- a swap-in waits for every op in a slot below `start` and every swap-out with `release <= start`;
- the step ends when all three queues are empty.

So the memory in use in any slot is known before any time is, and a budget holds whatever the timing is.
Where the op in slot `i` makes a storage by overwriting one of its inputs, the input's residency stops at `i`
and the new storage's begins there, at the same offset.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.plan.timeline import Timeline
from planner.units import format_bytes


@dataclass(frozen=True, slots=True)
class Residency:
    """A storage has `offset` on the device, in bytes, from slot `start` until slot `stop`."""

    storage: int
    start: int
    stop: int
    offset: int


@dataclass(frozen=True, slots=True)
class HostResidency:
    """A storage has `offset` in the host slab, in bytes.

    It is reserved from the moment the op in slot `start` is done (-1: from the start of the step) until the op in
    slot `stop` begins. Persistent storages and inputs that ever leave or enter the device have -1 until `n`.
    """

    storage: int
    start: int
    stop: int
    offset: int


@dataclass(frozen=True, slots=True)
class SwapOut:
    """Copy a storage to the host once slot `ready` is done (-1: at once); slot `release` may use its memory.

    The residency of the storage that contains the copy stops at `release`. A storage whose host copy is still
    valid leaves without a swap-out: its residency just stops.
    """

    storage: int
    ready: int
    release: int


@dataclass(frozen=True, slots=True)
class SwapIn:
    """Copy a storage back: its memory is reserved from slot `start`, and slot `use` is the first to need it.

    A residency of the storage begins at `start`. `use` is `n` for what only has to be back by the end of the step.
    """

    storage: int
    start: int
    use: int


@dataclass(frozen=True, eq=False)
class SwapPlan:
    """A whole plan; plain data, safe to load from a stranger.

    Residency at the step's start: storages with a residency from slot 0 that no swap-in begins and no op makes.
    The host copies of held storages that are not resident at the start are valid then, and so are those of held
    storages that no op ever writes; a resident one's that is written is not.

    Args:
        graph: fingerprint of the graph it is for.
        machine: name of the machine it was made for.
        method: which planner made it.
        budget_bytes, host_budget_bytes: limits it was made under; no host limit is None.
        alignment: every offset is a multiple of this many bytes.
        order: the op in each slot.
        workspaces: (op, bytes) of temporary memory it provides for.
        residencies, host_residencies: who lies where, when.
        swap_outs, swap_ins: the two copy queues, in queue order.
        peak_bytes, host_bytes: size of the device arena and of the host slab; the largest offset + bytes.
        predicted: the timeline the machine model foresees.
    """

    graph: str
    machine: str
    method: str
    budget_bytes: int
    host_budget_bytes: int | None
    alignment: int
    order: tuple[int, ...]
    workspaces: tuple[tuple[int, int], ...]
    residencies: tuple[Residency, ...]
    host_residencies: tuple[HostResidency, ...]
    swap_outs: tuple[SwapOut, ...]
    swap_ins: tuple[SwapIn, ...]
    peak_bytes: int
    host_bytes: int
    predicted: Timeline

    def __repr__(self) -> str:
        """One line: all of a plan is pages of numbers, which a notebook would print."""
        return (
            f"<SwapPlan by {self.method} for {self.machine}: {len(self.order)} ops in {self.predicted.seconds:.4g} s, "
            f"{format_bytes(self.peak_bytes)} of {format_bytes(self.budget_bytes)}, "
            f"{len(self.swap_outs)} copies out, {len(self.swap_ins)} in>"
        )
