"""The calls of hooks in a step: one for each tensor that autograd saves, and one whenever it uses one of these."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.capture import SaveAction, SavedTensors
from planner.graph import PERSISTENT, Graph, Kind


class HookCalls:
    """When, in hook calls, each saved tensor is saved, used and dropped.

    Args:
        graph: of the step.
        saved: what autograd saves in it.

    Attributes:
        tensors: the saved tensors, in order.
        position: `[calls]`, how many ops of the graph have run; never falls.
        saves: by number of a saved tensor, the call that saves it.
        uses: by number of a saved tensor, the calls that use it.
        alone: the numbers of the tensors before whose save all earlier ones are dropped, 0 among them.
        left: by number of the tensor that is saved last in a storage, the first call from which on nothing but
            autograd holds that storage; missing if others hold it until the end.
        dropped: by number of a saved tensor, the first call after it is dropped.
        members: by storage, the numbers of the saved tensors in it; a tensor whose storage the graph does not have is
            by itself, under a negative key. Parameters, buffers, optimizer state and the batch are not among them: they
            are on the device whether they are saved or not.
    """

    def __init__(self, graph: Graph, saved: SavedTensors) -> None:
        self.tensors = saved.tensors
        self.saves: list[int] = []
        self.uses: list[list[int]] = [[] for _ in saved.tensors]
        self.left: dict[int, int] = {}
        self.dropped: dict[int, int] = {}
        self.alone: set[int] = set()
        positions: list[int] = []
        for action, number, position in saved.actions:
            if action in (SaveAction.DROP, SaveAction.LEFT):
                (self.dropped if action is SaveAction.DROP else self.left)[number] = len(positions)
                continue
            if action is SaveAction.SAVE:
                if len(self.saves) == len(self.dropped):
                    self.alone.add(number)
                self.saves.append(len(positions))
            else:
                self.uses[number].append(len(positions))
            positions.append(position)
        self.position: NDArray[np.int64] = np.array(positions, np.int64)
        self.members: dict[int, list[int]] = {}
        for number, one in enumerate(saved.tensors):
            kind = graph.storages[one.storage].kind if one.storage >= 0 else Kind.ACTIVATION
            if kind not in PERSISTENT and kind is not Kind.INPUT:
                self.members.setdefault(one.storage if one.storage >= 0 else -1 - number, []).append(number)

    def __len__(self) -> int:
        return len(self.position)

    def first_at(self, position: int) -> int:
        """The first call at which so many ops have run; the number of calls if there is none."""
        return int(np.searchsorted(self.position, position))

    def offloadable(self, storage: int) -> bool:
        """Whether hooks may offload a storage: an op makes it, and none writes it while autograd holds it."""
        ours = [self.tensors[number] for number in self.members.get(storage, ())]
        return storage >= 0 and any(one.bytes for one in ours) and not any(one.written for one in ours)
