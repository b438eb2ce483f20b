"""The hooks: they recognise each saved tensor by its place in the captured step, and follow the schedule."""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping
from weakref import WeakValueDictionary, ref

import torch

from planner.apply.hooks.offloaded_storage import BufferPool, OffloadedStorage
from planner.apply.hooks.packed_tensors import KeptTensor, StorageView
from planner.apply.schedule.absences import Absence
from planner.apply.schedule.hook_calls import HookCalls
from planner.errors import StowageError


class OffloadingHooks:
    """Packs and unpacks what autograd saves, step after step.

    Args:
        calls: of the hooks in a step.
        absences: of saved storages on the host.
        name: of the step, for messages.

    Attributes:
        steps: how many whole steps have been recognised.
    """

    def __init__(self, calls: HookCalls, absences: Iterable[Absence], name: str) -> None:
        absences = tuple(absences)
        self._calls, self._name, self._pool = calls, name, BufferPool()
        self._swapped = {absence.storage for absence in absences}
        releases = [(one.release, False, one.turn, one.storage) for one in absences]
        self._due = sorted(releases + [(one.fetch, True, one.turn, one.storage) for one in absences])
        self._next = 0
        self._holdings: ref[_Holdings] | None = None
        self.steps = 0

    def pack(self, tensor: torch.Tensor) -> Packed:
        """Take a tensor that autograd saves.

        Raises:
            StowageError: it is not what the captured step saves here.
        """
        number, holdings = self._recognised(tensor)
        storage, by_storage = self._calls.tensors[number].storage, holdings.by_storage
        with torch.no_grad():
            self._follow(holdings, self._calls.saves[number])
            if storage not in self._swapped:
                return Packed(number, holdings, KeptTensor(tensor))
            return Packed(number, holdings, StorageView(self._offloaded(storage, by_storage, tensor), tensor))

    def unpack(self, packed: Packed) -> torch.Tensor:
        """Return a tensor that autograd uses.

        Raises:
            StowageError: it was changed in place after it was saved.
        """
        uses = self._calls.uses[packed.number]
        with torch.no_grad():
            if packed.used < len(uses):
                self._follow(packed.holdings, uses[packed.used])
            packed.used += 1
            return packed.tensor.unpacked()

    def close(self) -> None:
        """Free the host copies that autograd no longer needs; it gets the others as before."""
        self._pool.clear()

    def _recognised(self, tensor: torch.Tensor) -> tuple[int, _Holdings]:
        """The number of a tensor in the step, and what its step holds."""
        number, holdings = self._next, self._holdings() if self._holdings is not None else None
        whole = number == len(self._calls.tensors)
        # all that was saved has been dropped, in the middle of a step: it ended by an exception
        ended = holdings is None and number not in self._calls.alone
        if whole or ended or (self._difference(tensor, number) and not self._difference(tensor, 0)):
            number, holdings = 0, None
        self._next = 0
        if not self._calls.tensors or self._difference(tensor, number):
            raise StowageError(
                f"the step saves {self._difference(tensor, number)} of {self._name}: run that step alone under "
                "planner.apply, with batches like the captured one, and whatever else needs gradients outside of it; "
                "for a last, smaller batch, leave the `with` block or give the DataLoader drop_last=True"
            )
        self._next = number + 1
        if holdings is None:
            holdings = _Holdings()
            self._holdings = ref(holdings)
        self.steps += self._next == len(self._calls.tensors)
        return number, holdings

    def _difference(self, tensor: torch.Tensor, number: int) -> str:
        """How a tensor differs from a saved one of the captured step; empty if it does not."""
        if not self._calls.tensors:
            return "a tensor for a backward pass, and nothing was saved in the captured step"
        known = self._calls.tensors[number]
        dtype = str(tensor.dtype).removeprefix("torch.")
        size = tensor.untyped_storage().nbytes()
        if (tuple(tensor.shape), dtype, size) == (known.shape, known.dtype, known.bytes):
            return ""
        return (
            f"a {dtype} tensor of shape {tuple(tensor.shape)} where a {known.dtype} tensor of shape {known.shape} is "
            f"saved in the captured step"
        )

    def _follow(self, holdings: _Holdings, call: int) -> None:
        """Make the releases and copies that are due."""
        while holdings.done < len(self._due) and self._due[holdings.done][0] <= call:
            _, back, _, storage = self._due[holdings.done]
            holdings.done += 1
            held = holdings.by_storage.get(storage)
            if held is not None and back:
                held.fetch()
            elif held is not None:
                held.release()

    def _offloaded(
        self, storage: int, held: MutableMapping[int, OffloadedStorage], tensor: torch.Tensor
    ) -> OffloadedStorage:
        """The storage that a tensor is in; the first tensor saved in it starts its copy."""
        known = held.get(storage)
        if known is not None and known.is_of(tensor):
            return known
        held[storage] = made = OffloadedStorage(tensor, self._pool)
        return made


class _Holdings:
    """What autograd holds of one step; it is there as long as any of it.

    Attributes:
        by_storage: the storages that are offloaded.
        done: how many of the releases and copies that the schedule has for a step were made.
    """

    def __init__(self) -> None:
        self.by_storage: WeakValueDictionary[int, OffloadedStorage] = WeakValueDictionary()
        self.done = 0


class Packed:
    """What autograd gets for a saved tensor.

    Args:
        number: of the tensor in the step.
        holdings: of the step.
        tensor: the tensor, on the device or on the host.
    """

    def __init__(self, number: int, holdings: _Holdings, tensor: StorageView | KeptTensor) -> None:
        self.number, self.holdings, self.tensor, self.used = number, holdings, tensor, 0
