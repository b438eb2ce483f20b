"""The tensors that autograd saves in a step, as storages of its graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from planner.capture.saved.saved_tensor_log import SaveAction, SavedTensorLog
from planner.program import Event


@dataclass(frozen=True, slots=True)
class SavedTensor:
    """A tensor that autograd saves for the backward pass.

    Args:
        storage: the storage of the graph that it is in, or -1 if no op of the graph makes it.
        shape: its shape.
        dtype: its type, such as `"float32"`.
        bytes: size of its storage.
        written: whether an op writes its storage after it is saved and before it is used for the last time.
    """

    storage: int
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    written: bool


@dataclass(frozen=True, slots=True)
class SavedTensors:
    """What autograd saves in a step, and what it does with it.

    Args:
        tensors: in the order in which they are saved.
        actions: (action, number of the saved tensor, number of the graph's ops that come before), in order.
    """

    tensors: tuple[SavedTensor, ...]
    actions: tuple[tuple[SaveAction, int, int], ...]


def saved_tensors_of(
    log: SavedTensorLog,
    events: Sequence[Event],
    storages: Mapping[int, int],
    storage_bytes: Sequence[int],
    ops_before: Sequence[int],
) -> SavedTensors:
    """What was logged, in terms of the graph.

    Args:
        log: of the recorded step.
        events: the recorded calls.
        storages: by number of a saved tensor, the storage of the graph.
        storage_bytes: by recorded storage.
        ops_before: `[events + 1]`, how many ops of the graph come before each recorded call.
    """
    last = {number: calls for action, number, calls in log.actions if action is SaveAction.USE}
    writes: dict[int, list[int]] = {}
    for place, event in enumerate(events):
        for layout in event.mutated:
            writes.setdefault(layout.storage, []).append(place)
    saved = []
    for action, number, calls in log.actions:
        if action is SaveAction.SAVE:
            layout = log.layouts[number]
            written = any(calls <= place < last.get(number, calls) for place in writes.get(layout.storage, ()))
            dtype = str(layout.dtype).removeprefix("torch.")
            saved.append(
                SavedTensor(storages[number], layout.shape, dtype, storage_bytes[layout.storage], written)
            )  # fmt: skip
    most = len(ops_before) - 1
    actions = ((action, number, ops_before[min(calls, most)]) for action, number, calls in log.actions)
    return SavedTensors(tuple(saved), tuple(actions))
