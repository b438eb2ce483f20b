"""PyTorch's settings for the process: around the whole loop and from some step on."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import pytest
import torch
from beside_eager import Loop
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from tests.run.loops.harness import Case, Net, Specification, at, inputs, loop, squares

spec = Specification()


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.last = nn.Linear(16, 48), nn.Linear(16, 16)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).view(2, 2, 40, 24).chunk(3, -1)
        return self.last(scaled_dot_product_attention(q, k, v).reshape(2, 40, 16))


def attention(**rest: Any) -> Loop:
    batches = [{"x": torch.randn(2, 40, 16), "y": torch.randn(2, 40, 16)} for _ in range(5)]
    return loop(Attention(), batches=batches, **rest)


def convolutions(**rest: Any) -> Loop:
    model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Conv2d(16, 4, 3))
    batches = [{"x": torch.randn(2, 3, 12, 12), "y": torch.randn(2, 4, 8, 8)} for _ in range(5)]
    return loop(model, batches=batches, **rest)


def from_step_to_step(first: int, last: int, make: Any, build: Any = loop, **rest: Any) -> Loop:
    """A loop that enters a context manager before one step and leaves it before another."""
    stack = ExitStack()
    edits = {first: lambda: stack.enter_context(make()), last: stack.close}
    return build(before=at(edits), around=lambda: stack, **rest)  # left in any case, where the loop is refused too


@contextmanager
def deterministic() -> Any:
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


class Uninitialised(Net):
    """Reads memory that nobody has written, where deterministic algorithms fill it with NaN."""

    def forward(self, x: Tensor) -> Tensor:
        out = super().forward(x)
        if torch.are_deterministic_algorithms_enabled():
            out = out + torch.nan_to_num(torch.empty(4), 0.25)
        return out


@contextmanager
def default_dtype(dtype: torch.dtype) -> Any:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def made_of_constants() -> nn.Module:
    class Own(Net):
        def forward(self, x: Tensor) -> Tensor:
            return (super().forward(x) * torch.linspace(0, 1, 4)).float()

    return Own()


def wide() -> list[dict[str, Tensor]]:
    return [{"x": torch.randn(32, 64), "y": torch.randn(32, 4)} for _ in range(5)]


@spec.equal
def deterministic_algorithms_around_the_loop() -> Loop:
    return loop(around=deterministic)


@spec.equal
def uninitialised_memory_is_filled() -> Loop:
    return loop(Uninitialised(), around=deterministic)


@spec.equal
def deterministic_algorithms_from_the_third_step() -> Loop:
    return from_step_to_step(2, 4, deterministic, model=Uninitialised())


@spec.equal
def deterministic_algorithms_and_rows_that_are_added_up() -> Loop:
    class Added(Net):
        def forward(self, x: Tensor) -> Tensor:
            rows = torch.tensor([0, 0, 1, 1])
            return super().forward(x).index_put((rows,), torch.ones(4, 4), accumulate=True)

    return from_step_to_step(2, 4, deterministic, model=Added())


@spec.equal
def double_as_the_default_dtype_around_the_loop() -> Loop:
    return loop(made_of_constants(), around=lambda: default_dtype(torch.float64))


@spec.equal
def double_as_the_default_dtype_from_the_third_step() -> Loop:
    return from_step_to_step(2, 4, lambda: default_dtype(torch.float64), model=made_of_constants())


@spec.equal
def more_threads_from_the_third_step() -> Loop:
    model = nn.Linear(8, 4)
    batches = [{"x": torch.randn(20000, 8), "y": torch.randn(20000, 4)} for _ in range(5)]
    edits = {2: lambda: torch.set_num_threads(3), 4: lambda: torch.set_num_threads(1)}
    return loop(model, lambda m, b: (m(b["x"]) - b["y"]).square().sum() / 9e4, batches=batches, before=at(edits))


@spec.equal
def two_threads_around_the_loop() -> Loop:
    @contextmanager
    def threads() -> Any:
        torch.set_num_threads(2)
        yield

    batches = [{"x": torch.randn(20000, 8), "y": torch.randn(20000, 4)} for _ in range(5)]
    return loop(nn.Linear(8, 4), batches=batches, around=threads)


@spec.equal
def attention_by_its_mathematics_around_the_loop() -> Loop:
    return attention(around=lambda: sdpa_kernel(SDPBackend.MATH))


@spec.equal
def attention_by_its_mathematics_from_the_third_step() -> Loop:
    return from_step_to_step(2, 4, lambda: sdpa_kernel(SDPBackend.MATH), attention)


@spec.equal
def attention_by_flash_from_the_third_step_after_mathematics() -> Loop:
    edits = {2: lambda: torch.backends.cuda.enable_flash_sdp(True)}

    @contextmanager
    def without() -> Any:
        torch.backends.cuda.enable_flash_sdp(False)
        yield

    return attention(around=without, before=at(edits))


@spec.equal
def onednn_is_off_around_the_loop() -> Loop:
    return convolutions(around=lambda: torch.backends.mkldnn.flags(enabled=False))


@spec.equal
def onednn_is_off_from_the_third_step() -> Loop:
    return from_step_to_step(2, 4, lambda: torch.backends.mkldnn.flags(enabled=False), convolutions)


@spec.equal
def onednn_is_switched_off_under_an_lstm() -> Loop:
    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm, self.last = nn.LSTM(8, 8, batch_first=True), nn.Linear(8, 4)

        def forward(self, x: Tensor) -> Tensor:
            return self.last(self.lstm(x)[0][:, -1])

    batches = [{"x": torch.randn(4, 6, 8), "y": torch.randn(4, 4)} for _ in range(5)]
    edits = {2: lambda: setattr(torch.backends.mkldnn, "enabled", False)}
    return loop(Own(), batches=batches, before=at(edits))


@spec.equal
def the_precision_of_matrix_products_is_lowered_in_mid_training() -> Loop:
    edits = {2: lambda: torch.set_float32_matmul_precision("medium")}
    return loop(nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 4)), before=at(edits), batches=wide())


@spec.equal
def the_precision_of_matrix_products_is_low_around_the_loop() -> Loop:
    @contextmanager
    def medium() -> Any:
        torch.set_float32_matmul_precision("medium")
        yield

    return loop(nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 4)), around=medium, batches=wide())


@spec.equal_or_refused
def tiny_numbers_are_flushed_to_zero_from_the_third_step() -> Loop:
    @contextmanager
    def flushed() -> Any:
        yield
        torch.set_flush_denormal(False)

    return loop(
        loss=lambda m, b: squares(m, b) * 1e-38 * 0.1 * 1e30,
        around=flushed,
        before=at({2: lambda: torch.set_flush_denormal(True)}),
    )


@spec.equal_or_refused
def anomalies_are_looked_for_from_the_third_step() -> Loop:
    return from_step_to_step(2, 4, torch.autograd.detect_anomaly)


@spec.equal_or_refused
def the_default_device_becomes_meta_in_mid_training() -> Loop:
    edits = {2: lambda: torch.set_default_device("meta"), 4: lambda: torch.set_default_device(None)}
    return loop(before=at(edits))


@spec.equal
def the_default_device_is_the_cpu_by_name() -> Loop:
    return loop(made_of_constants(), around=lambda: torch.device("cpu"))


@spec.equal_or_refused
def tensors_saved_for_backward_are_packed_by_the_user() -> Loop:
    seen: list[int] = []

    def pack(tensor: Tensor) -> Tensor:
        seen.append(tensor.numel())
        return tensor

    return loop(around=lambda: torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor), also=seen)


@spec.equal_or_refused
def tensors_saved_for_backward_are_rounded_by_the_user() -> Loop:
    def around() -> AbstractContextManager[object]:
        return torch.autograd.graph.saved_tensors_hooks(lambda t: t.bfloat16(), lambda t: t.float())

    return loop(around=around)


@spec.equal_or_refused
def a_mode_of_the_user_changes_a_function() -> Loop:
    class Sine(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return torch.sin(*args) if func is torch.tanh else func(*args, **(kwargs or {}))

    return loop(around=Sine)


@spec.equal_or_refused
def a_mode_of_the_user_is_entered_in_mid_training() -> Loop:
    class Sine(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return torch.sin(*args) if func is torch.tanh else func(*args, **(kwargs or {}))

    return from_step_to_step(2, 4, Sine)


@spec.equal_or_refused
def a_mode_that_counts_ops_is_around_the_loop() -> Loop:
    class Counting(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func is torch.ops.aten.tanh.default:
                seen.append(1)
            return func(*args, **(kwargs or {}))

    seen: list[int] = []
    return loop(around=Counting, also=seen)


@spec.equal
def batches_are_made_without_gradients_around_the_edits() -> Loop:
    batches = inputs()

    def edit(number: int) -> None:
        with torch.no_grad():
            batches[number]["x"].add_(1.0)
        with torch.inference_mode():
            torch.ones(3) + 1

    return loop(batches=batches, before=edit)


@pytest.mark.parametrize("case", spec.cases)
def test_settings_are_those_of_the_step_that_is_made(case: Case) -> None:
    case.check()
