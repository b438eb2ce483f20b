"""A meter of the saved tensors that are really there, which shares no code with what offloads them."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.autograd.graph import saved_tensors_hooks
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from planner import torch_private as private


class Meter(TorchDispatchMode):
    """Follows every storage that autograd saves, or that is made while it saves and uses one, until it is freed.

    Args:
        aside: tensors that are there anyway, such as parameters and the batch.
        everything: follow what any op makes, and measure after each.
    """

    def __init__(self, aside, *, everything=False):
        super().__init__()
        self.everything = everything
        self.aside = {private.storage_identity(tensor.untyped_storage()) for tensor in aside}
        self.inside, self.seen, self.peak = False, {}, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        given = {id(leaf) for leaf in tree_leaves(args)}
        result = func(*args, **(kwargs or {}))
        if self.inside or self.everything:
            for leaf in tree_leaves(result):
                if isinstance(leaf, torch.Tensor) and id(leaf) not in given:  # what is copied into was there before
                    self.note(leaf)
        if self.everything:
            self.measure()
        return result

    def note(self, tensor):
        storage = tensor.untyped_storage()
        if private.storage_identity(storage) not in self.aside and tensor.device.type != "meta":
            self.seen[private.storage_identity(storage)] = StorageWeakRef(storage), storage.nbytes()

    def measure(self):
        self.seen = {key: (one, size) for key, (one, size) in self.seen.items() if not one.expired()}
        self.peak = max(self.peak, sum(size for _, size in self.seen.values()))

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Measure whenever autograd saves or uses a tensor, by the hooks that are entered, or by none."""
        pack, unpack = private.saved_tensors_hooks() or (lambda tensor: tensor, lambda tensor: tensor)

        def saving(tensor):
            self.note(tensor)
            return self.during(pack, tensor)

        def using(packed):
            return self.during(unpack, packed)

        with self, saved_tensors_hooks(saving, using):
            yield

    def during(self, hook, given):
        self.inside = True
        try:
            result = hook(given)
        finally:
            self.inside = False
        if isinstance(result, torch.Tensor):
            self.note(result)
        self.measure()
        return result
