"""Recording of the tensors that autograd saves for the backward pass, and of when it uses and drops them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from weakref import WeakValueDictionary

import torch
from torch.autograd.graph import saved_tensors_hooks

from planner import torch_private as private
from planner.program import Layout


class SaveAction(StrEnum):
    """What happens to a saved tensor: `LEFT` is when nothing but autograd holds its storage any longer."""

    SAVE = "save"
    LEFT = "left"
    USE = "use"
    DROP = "drop"


@dataclass
class SavedTensorLog:
    """What autograd saved in a recorded step.

    Args:
        layouts: per saved tensor, its layout, in the order in which they were saved.
        actions: (action, number of the saved tensor, number of calls recorded before it), in order. `LEFT` is noted
            when autograd saves or uses a tensor next, for the tensor that was saved last in a storage.
    """

    layouts: list[Layout] = field(default_factory=list)
    actions: list[tuple[SaveAction, int, int]] = field(default_factory=list)

    @contextmanager
    def following(self, layout: Callable[[torch.Tensor], Layout], calls: Callable[[], int]) -> Iterator[None]:
        """Record what is saved during the block.

        Args:
            layout: returns the layout of a fake tensor.
            calls: returns the number of calls recorded so far.
        """
        known: WeakValueDictionary[int, _Shared] = WeakValueDictionary()
        shared: dict[int, _Shared] = {}

        def note(action: SaveAction, number: int) -> None:
            self.actions.append((action, number, calls()))

        def note_left() -> None:
            for key, one in list(shared.items()):
                if private.storage_holders(one.storage) <= 1 + one.packed:
                    note(SaveAction.LEFT, one.number)
                    del shared[key]

        def pack(tensor: torch.Tensor) -> _LoggedTensor:
            note_left()
            number = len(self.layouts)
            self.layouts.append(layout(tensor))
            storage = tensor.untyped_storage()
            key = private.storage_identity(storage)
            one = shared[key] = known.setdefault(key, _Shared(storage))
            one.number = number
            note(SaveAction.SAVE, number)
            return _LoggedTensor(tensor, number, one, note)

        def unpack(packed: _LoggedTensor) -> torch.Tensor:
            note_left()
            note(SaveAction.USE, packed.number)
            return packed.tensor

        with saved_tensors_hooks(pack, unpack):
            yield


@dataclass(eq=False)
class _Shared:
    """A storage that autograd holds, perhaps with others.

    Args:
        storage: the storage.
        number: of the tensor that was saved last in it.
        packed: how many of its holders are autograd's.
    """

    storage: torch.UntypedStorage
    number: int = -1
    packed: int = 0


class _LoggedTensor:
    """What autograd holds in place of a tensor: another tensor of the same storage."""

    def __init__(
        self, tensor: torch.Tensor, number: int, shared: _Shared, note: Callable[[SaveAction, int], None]
    ) -> None:
        with private.no_modes():
            self.tensor = tensor.detach()
        self.number, self.shared, self.note = number, shared, note
        shared.packed += 1

    def __del__(self) -> None:
        self.shared.packed -= 1
        self.note(SaveAction.DROP, self.number)
