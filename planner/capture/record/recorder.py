"""Recording of every kernel call of a step that runs on fake tensors.

A recorder sees the calls that reach the kernels, below autograd and autocast: those that eager PyTorch makes, in the
same order. Tensors become layouts, strided views of numbered storages, so no tensor of the model is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import get_ident
from time import perf_counter
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from planner import torch_private as private
from planner.capture.failures.advice import instead_of_layout
from planner.capture.failures.failures import unplannable
from planner.capture.fakes.leaked_fakes import Leftovers
from planner.capture.record import dispatch_mode_derivatives as derivatives
from planner.capture.record.concrete_values import Steering
from planner.capture.record.data_dependent import result_by_values
from planner.capture.record.host_numbers import assigning
from planner.capture.record.repeated_calls import RepeatedCalls
from planner.capture.record.rng_tracker import RngTracker
from planner.capture.source.user_lines import UserLines
from planner.errors import StowageError
from planner.graph import Phase
from planner.program import Backend, Event, Layout

_CHECK_SECONDS = 0.1


class Recorder(private.TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records every kernel call made while it is active.

    Args:
        backend: of the device that the step is to run on.
        fake: the mode that fake tensors are created in.
        paths: module path by `id(module)`.
        lines: names the user's line that runs.
        draws: notified of every draw.
        steering: notified of every call, and provides the values that Python code reads.
        leftovers: notified of every tensor.
        report_calls: called several times a second with the number of calls so far; may raise to end the recording.
        check_interrupted: called after every op; may raise to end the recording.
    """

    def __init__(
        self,
        backend: Backend,
        fake: private.FakeTensorMode,
        paths: Mapping[int, str],
        lines: UserLines,
        draws: RngTracker,
        steering: Steering,
        leftovers: Leftovers,
        report_calls: Callable[[int], object],
        check_interrupted: Callable[[], object],
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.events: list[Event] = []
        self.storage_bytes: list[int] = []
        self.constants: dict[Layout, torch.Tensor] = {}
        self.literals: set[int] = set()
        self.phase = Phase.FORWARD
        self.current: private.OpOverload | None = None
        self.draws, self._steering, self._leftovers, self._report_calls = draws, steering, leftovers, report_calls
        self._check_interrupted = check_interrupted
        self._checked_at = perf_counter()
        self.fake, self._call = fake, RepeatedCalls(backend.fake_call, fake)
        self.paths, self._lines = paths, lines
        self._elsewhere = backend.device != "cpu"
        self._numbers: dict[int, int] = {}
        self._kept: list[torch.UntypedStorage | None] = []  # the identity of a freed storage is reused
        self._stack: list[str] = [""]
        self._origin: dict[int, tuple[str, str]] = {}
        self._converted: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func is torch.ops.prim.device.default:  # the most frequent call, never part of a graph
            return private.device_of(args[0])
        kwargs = kwargs or {}
        # PyTorch aborts if an exception is raised while it queries a device or layout, which are ops of prim
        if perf_counter() > self._checked_at + _CHECK_SECONDS and func.namespace != "prim":
            with private.no_modes():
                self._report_calls(len(self.events))
            self._checked_at = perf_counter()
        if func is torch.ops.aten.lift_fresh.default and not isinstance(args[0], private.FakeTensor):
            result = func(*args)
            self._leftovers.note(result)
            layout = self.layout(result)
            self.literals.add(layout.storage)
            with private.no_modes():
                self.constants[layout] = args[0].clone()
            self._steering.hold_constant(layout, self.constants[layout], literal=True)
            return result
        self.current = func
        if private.quantises(func):
            raise self._refusal("quantised")
        if func is torch.ops.aten.copy_.default and args[0].is_conj():
            with self:
                conjugate = torch.ops.aten._conj.default
                torch.ops.aten.copy_.default(conjugate(args[0]), conjugate(args[1]))
            return args[0]
        if func in private.COPYING and private.lazy(args[-1]):
            args = (*args[:-1], self.resolved(args[-1]))
        instead = assigning(func, args, self._literal) if self._elsewhere else None
        if instead is not None:
            with self:
                return instead()
        target = self._target(func, args, kwargs)
        if func in private.MIXED and private.autocasting():
            raise StowageError(
                f"{func} in {self._name()} computes in autocast's precision inside, which a plan does not: call it "
                "under torch.autocast(..., enabled=False)"
            )
        instead = derivatives.as_in_eager(private.backward_node(), func, args, self._name())
        if instead is not None:
            with self:
                return instead()
        args, kwargs = self._faked(args), {name: self._faked(value) for name, value in kwargs.items()}
        module, source = self._where()
        try:
            result = self._call(func, args, kwargs)
        except private.DATA_DEPENDENT:
            call = Event(func, self.noted(args), self.noted(kwargs), (), self.phase, module, source)
            result = result_by_values(self, self._steering, call)
            if result is None:
                raise
        draws_as = -1
        if not private.is_deterministic(func, args, kwargs):
            draws_as = self.draws.next(func, self.noted(args), self.noted(kwargs), module, len(self.events))
        self.events.append(
            Event(
                target,
                self.noted(args if target is func else args[:1]),
                {name: self.noted(value) for name, value in kwargs.items() if target is func},
                tuple(self.results(result)),
                self.phase,
                module,
                source,
                draws_as,
            )
        )
        self._steering.note(self.events[-1])
        self.current = None
        if func.namespace != "prim":
            self._check_interrupted()
        return result

    def layout(self, tensor: torch.Tensor) -> Layout:
        """Return the layout of a fake tensor; a new storage is numbered."""
        kind = unplannable(tensor)
        if kind is not None:
            raise self._refusal(kind)
        storage = tensor.untyped_storage()
        identity = private.storage_identity(storage)
        number = self._numbers.get(identity)
        if number is None:
            number = self._numbers[identity] = len(self._kept)
            self._kept.append(storage)
            self.storage_bytes.append(storage.nbytes())
        return Layout(number, tuple(tensor.shape), tensor.stride(), int(tensor.storage_offset()), tensor.dtype)

    def resolved(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the tensor, or a copy if it is lazily conjugated, which its layout would not express."""
        if not private.lazy(tensor):
            return tensor
        with torch.no_grad(), self.fake, self:
            return tensor.clone()

    def enter(self, phase: Phase) -> None:
        """Begin a phase of the step."""
        self.phase = phase

    def emit(
        self,
        target: private.OpOverload,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        *,
        module: str,
        source: str,
        like: Layout | None = None,
    ) -> Layout:
        """Add a call that was never made.

        Args:
            target: the overload.
            args, kwargs: its arguments, with layouts in place of tensors.
            module: path of the module that it belongs to.
            source: the line that it belongs to.
            like: the result is a new tensor with this layout; without it, the call updates its argument `out`, or else
                its first one.
        """
        result: Layout = kwargs.get("out", args[0]) if like is None else self.fresh(like)
        self.events.append(Event(target, args, kwargs, (result,), self.phase, module, source))
        return result

    @contextmanager
    def watching_modules(self) -> Iterator[None]:
        """Track the running module; the hooks are global, so those of other threads are ignored."""
        thread = get_ident()

        def enter(module: nn.Module, _: Any) -> None:
            if private.in_capture(thread, self):
                self._stack.append(self.paths.get(id(module), self._stack[-1]))

        def leave(*_: Any) -> None:
            if private.in_capture(thread, self):
                self._stack.pop()

        hooks = [register_module_forward_pre_hook(enter), register_module_forward_hook(leave, always_call=True)]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    def fresh(self, like: Layout) -> Layout:
        """Return the layout of a tensor in a new storage."""
        self.storage_bytes.append(like.bytes)
        self._kept.append(None)
        return Layout(len(self._kept) - 1, like.shape, like.strides, 0, like.dtype)

    def running(self) -> str:
        """The running module, for messages."""
        return self._name()

    def _refusal(self, kind: str, instead: str = "") -> StowageError:
        line = self._lines.running() if self.phase is Phase.FORWARD else ""
        where = f"{self._name()} at {line}" if line else self._name()
        return StowageError(
            f"{self.current} in {where} takes or makes a {kind} tensor, which cannot be planned: "
            f"{instead or instead_of_layout(kind)}"
        )

    def _target(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Return the op of a call in a graph, whose layouts do not say which tensors are lazily conjugated or negated.

        PyTorch copies such a tensor for every kernel that does not support it; the copy does the work.
        """
        if func.namespace == "prim" or not any(map(private.lazy, private.tensors((args, kwargs)))):
            return func
        if private.is_view(func):
            return func
        instead = private.MATERIALISED.get((func, args[0].is_conj(), args[0].is_neg()))
        if instead is None:
            raise self._refusal("lazily conjugated", "compute with its real and imaginary part there")
        return instead

    def _name(self) -> str:
        return f"module {self._stack[-1]}" if self._stack[-1] else "the model"

    def _where(self) -> tuple[str, str]:
        if self.phase is Phase.OPTIMIZER:
            return "", ""
        module, line = self._stack[-1], self._lines.running()
        sequence = private.backward_sequence()
        if sequence is not None:
            # derivatives that the user wrote, and what checkpointing runs again, have modules and lines of their own
            origin = self._origin.get(sequence, ("", ""))
            module, line = module or origin[0], line or origin[1]
        if sequence is not None or self.phase is Phase.FORWARD:
            self._origin.setdefault(private.forward_sequence(), (module, line))
        return module, line

    def _faked(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value if isinstance(value, private.FakeTensor) else self._constant(value)
        if isinstance(value, list | tuple):
            return type(value)([self._faked(item) for item in value])
        return value

    def _constant(self, value: torch.Tensor) -> torch.Tensor:
        known = self._converted.get(id(value))
        if known is None:
            if private.lazy(value):
                raise self._refusal("lazily conjugated", "call resolve_conj() on it before it is used")
            known = self._converted[id(value)] = (self.fake.from_tensor(value), value)
            layout = self.layout(known[0])
            self.constants.setdefault(layout, value)
            self._steering.hold_constant(layout, value, literal=False)
        return known[0]

    def _literal(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """The value of a tensor that the step makes of numbers in its code; None for any other tensor."""
        layout = self.layout(tensor)
        return self.constants.get(layout) if layout.storage in self.literals else None

    def noted(self, value: Any) -> Any:
        """Return an argument with layouts in place of its tensors."""
        if isinstance(value, torch.Tensor):
            return self.layout(value)
        if isinstance(value, list | tuple):
            return tuple(self.noted(item) for item in value)
        if isinstance(value, Mapping):
            return {name: self.noted(item) for name, item in value.items()}
        return value

    def results(self, value: Any) -> Iterator[Layout | None]:
        """Yield the layouts of the values that a call returns; None for values that are not tensors."""
        if isinstance(value, torch.Tensor):
            self._leftovers.note(value)
            yield self.layout(value)
        elif isinstance(value, list | tuple):
            for item in value:
                yield from self.results(item)
        else:
            yield None
