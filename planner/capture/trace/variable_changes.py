"""Changes that a step on fake tensors makes to Python variables, and whether a plan can reproduce them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from torch import Tensor, nn

from planner import torch_private as private
from planner.capture.record.optimizer_kernels import PersistentTensor
from planner.capture.record.recorder import Recorder
from planner.errors import StowageError
from planner.guards import ContainerWatch, Reach, Value
from planner.program import Effects, Layout, LiveRef, NextRef, OutputRef, Ref, find_effects
from planner.step import ModuleTensor, Step


class Changes:
    """Compares what a step's code can reach before and after the step.

    Args:
        step, model: the traced step and its model.
        reach: the reach before the step, with real tensors.
        fakes: the fake tensors that replace the real ones, by the `id` of the real ones.
    """

    def __init__(self, step: Step, model: nn.Module, reach: Reach, fakes: Mapping[int, Tensor]) -> None:
        self._step, self._model, self._reach, self._fakes = step, model, reach, fakes
        self._before = [container.contents() for container in reach.containers]
        self._watch = ContainerWatch(reach.containers, reach.objects)
        self._tensors = {path: fakes.get(id(tensor), tensor) for path, tensor in reach.tensors.items()}
        self._after: Reach | None = None
        self._looked = False
        self.advances = ""

    def replaces(self, fake: Tensor | None) -> bool:
        """Whether the step has replaced a tensor with something else."""
        after = self._look()
        return after is not None and any(
            before is fake and after.tensors.get(path) is not fake for path, before in self._tensors.items()
        )

    def found(
        self, persistent: Sequence[PersistentTensor], members: Sequence[ModuleTensor], recorder: Recorder
    ) -> tuple[list[PersistentTensor], Effects | None, list[Layout]]:
        """Find what the step leaves behind.

        Args:
            persistent: the tensors that outlive the step.
            members: all module tensors that its code reaches.
            recorder: the recorder of its calls.

        Returns:
            The persistent tensors, with their replacements; the effects on variables, None if there are none; and the
            layouts of the additional tensors that the effects need.
        """
        after = self._look()
        if after is None:
            return list(persistent), None, []
        changed = _difference(_without_tensors(self._reach.values), _without_tensors(after.values))
        self.advances = changed
        keys = {one.key for one in persistent}
        of_fake = {
            id(self._fakes.get(id(member.tensor), member.tensor)): member.key
            for member in members if member.key in keys
        }  # fmt: skip
        heirs = self._replacements(persistent, of_fake, recorder)
        moved = [before for path, before in self._tensors.items() if after.tensors.get(path) is not before]
        lost = frozenset(of_fake.get(id(tensor), "") for tensor in moved) - heirs.keys()
        settles = not changed and not lost and self._tensors.keys() == after.tensors.keys()
        by_replacement = {id(tensor): key for key, tensor in heirs.items()}
        outputs: list[Tensor] = []

        def reference(tensor: Tensor) -> Ref | None:
            if id(tensor) in by_replacement:
                return NextRef(by_replacement[id(tensor)])
            if id(tensor) in of_fake:
                return LiveRef(of_fake[id(tensor)])
            if not isinstance(tensor, private.FakeTensor):
                return None
            if isinstance(tensor, nn.Parameter):
                raise StowageError("the step makes a parameter, which the optimizer does not know: make it before")
            if not any(tensor is other for other in outputs):
                outputs.append(tensor)
            return OutputRef(next(place for place, other in enumerate(outputs) if other is tensor))

        written, shuffles = find_effects(self._reach, self._before, reference)
        if not written:
            return list(persistent), None, []
        effects = Effects(written, settles and not outputs, lost, shuffles)
        self._refuse_shared([*heirs.values(), *outputs], persistent, heirs.keys(), recorder)
        kept = [
            replace(one, replaced=recorder.layout(heirs[one.key])) if one.key in heirs else one for one in persistent
        ]
        return kept, effects, [recorder.layout(tensor) for tensor in outputs]

    def refuse_advancing(self, again: Callable[[], None]) -> None:
        """Refuse state that the step changes every time, such as a counter; state that it sets up once is allowed.

        Args:
            again: runs the step a second time, on the state that the first run left behind.

        Raises:
            StowageError: the second run also changed something other than tensors.
        """
        before = self._step.reach(self._model)
        again()
        after = self._step.reach(self._model)
        changed = _difference(_without_tensors(before.values), _without_tensors(after.values))
        if "in another state" in changed:
            drawn = changed.partition(" is ")[0]
            raise StowageError(
                f"the step draws from {drawn}, a generator or an iterator of Python's or NumPy's, and a plan would "
                "not: draw with torch.rand, or let what it gives come in with the batch"
            )
        if changed:
            raise StowageError(
                f"the step changes a value that a plan would not change again ({changed} after it): keep it as a "
                "tensor, change it between two steps of Run.steps, or make the step with recapture=True, which "
                "captures every step anew"
            )

    def _look(self) -> Reach | None:
        if not self._looked:
            self._looked = True
            if self._watch.changed():
                self._after = self._step.reach(self._model)
        return self._after

    def _replacements(
        self, persistent: Sequence[PersistentTensor], of_fake: Mapping[int, str], recorder: Recorder
    ) -> dict[str, Tensor]:
        """Return, by key, the tensor with a matching layout that replaces a persistent one at every path of it.

        Its value is copied to the memory of that one within the step, so no other tensor may share that memory.
        """
        assert self._after is not None
        layouts = {one.key: one.layout for one in persistent}
        crowded = Counter(one.layout.storage for one in persistent)
        now: dict[str, set[int]] = {}
        kept: dict[str, Tensor] = {}
        for path, before in self._tensors.items():
            key = of_fake.get(id(before))
            if key is not None:
                tensor = self._after.tensors.get(path)
                now.setdefault(key, set()).add(id(tensor))
                if tensor is not None and tensor is not before:
                    kept[key] = tensor
        found: dict[str, Tensor] = {}
        for key, tensor in kept.items():
            shared = sum(tensor is other for other in kept.values()) > 1
            if len(now[key]) != 1 or shared or isinstance(tensor, nn.Parameter):
                continue
            if not isinstance(tensor, private.FakeTensor) or id(tensor) in of_fake:
                continue
            layout, own = recorder.layout(tensor), layouts[key]
            if crowded[own.storage] > 1:
                continue
            item = own.dtype.itemsize
            alike = layout[1:3] == own[1:3] and layout.dtype == own.dtype
            if alike and (layout.offset - own.offset) * item % 64 == 0:
                found[key] = tensor
        return found

    def _refuse_shared(
        self,
        tensors: Sequence[Tensor],
        persistent: Sequence[PersistentTensor],
        replaced: Collection[str],
        recorder: Recorder,
    ) -> None:
        """Refuse writes to memory that variables share in eager PyTorch: a plan gives each variable its own memory."""
        storages = [recorder.layout(tensor).storage for tensor in tensors]
        names = {one.layout.storage: one.name for one in persistent if one.key not in replaced}
        name = next((names[storage] for storage in storages if storage in names), None)
        if name is not None:
            raise StowageError(
                f"the step keeps a view of {name} in a variable, which would change with it: keep a copy, by clone()"
            )
        shared = len(set(storages)) < len(storages)
        variables = {one.layout.storage: one.name for one in persistent if one.key in replaced}
        for event in recorder.events if shared else ():
            for layout in event.mutated:
                if layout.storage in variables:
                    raise StowageError(
                        f"{variables[layout.storage]} is written in place and shares memory with another variable: "
                        "give each memory of its own, by clone()"
                    )


def _without_tensors(values: Mapping[str, Value]) -> dict[str, Value]:
    return {path: value for path, value in values.items() if value.kind != "tensor"}


def _difference(before: Mapping[str, Value], after: Mapping[str, Value]) -> str:
    for path, value in after.items():
        if path not in before:
            return f"{path} is new"
        if before[path] != value:
            return f"{path} is {value} instead of {before[path]}"
    gone = next((path for path in before if path not in after), None)
    return "" if gone is None else f"{gone} is gone"
