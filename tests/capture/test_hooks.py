"""A hook that computes is a part of the step; one that only looks is refused before it is handed anything fake."""

from __future__ import annotations

import functools

import pytest
import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook

from planner import StowageError
from planner.capture import capture
from planner.run import run, same_bits
from planner.step import SGD, TrainStep

SEEN: list[object] = []
FEATURES: dict[str, torch.Tensor] = {}


def batch():
    return torch.randn(4, 8, generator=torch.Generator().manual_seed(1))


def small():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))


def square(model, x):
    return model(x).square().mean()


def equal_to_eager(make, loss=square):
    """Whether three steps of a run leave what three eager steps of the same model leave."""
    step, eager = (TrainStep(make(), batch(), loss=loss, optimizer=SGD(lr=0.1, momentum=0.9)) for _ in range(2))
    losses = run(step, steps=3).wait().losses
    expected = tuple(float(eager.eager()) for _ in range(3))
    state = eager.state()
    return losses == expected and all(same_bits(value, state[key]) for key, value in step.state().items())


@pytest.fixture(autouse=True)
def nothing_seen():
    SEEN.clear()
    FEATURES.clear()


def record(module, inputs, output):
    SEEN.append(output)


def record_gradients(module, inputs, outputs):
    SEEN.append(outputs)


def in_place(module, inputs, output):
    output.mul_(2)


class Recorder:
    def __call__(self, module, inputs, output):
        SEEN.append(output)

    def now_and_then(self, module, inputs, output):
        if len(SEEN) % 100:
            return
        SEEN.append(output)


LOOKING = {
    "function": (lambda model: model[0].register_forward_hook(record), "forward hook", "record at test_hooks.py:"),
    "lambda": (lambda model: model[0].register_forward_hook(lambda m, i, o: SEEN.append(o)), "forward hook", "<lam"),
    "partial": (lambda model: model[0].register_forward_hook(functools.partial(record)), "forward hook", "record at"),
    "object": (lambda model: model[0].register_forward_hook(Recorder()), "forward hook", "Recorder at test_hooks.py:"),
    "method": (lambda model: model[0].register_forward_hook(Recorder().now_and_then), "forward hook", "now_and_then"),
    "print": (lambda model: model[0].register_forward_hook(lambda m, i, o: print(o)), "forward hook", "<lambda>"),
    "retain_grad": (
        lambda model: model[0].register_forward_hook(lambda m, i, o: o.retain_grad()), "forward hook", "<lambda>",
    ),
    "always": (
        lambda model: model[0].register_forward_hook(record, always_call=True), "forward hook", "record at",
    ),
    "before": (
        lambda model: model[0].register_forward_pre_hook(lambda m, a, k: SEEN.append(a), with_kwargs=True),
        "forward pre-hook", "<lambda>",
    ),
    "backward": (
        lambda model: model[0].register_full_backward_hook(record_gradients), "backward hook", "record_gradients",
    ),
    "before backward": (
        lambda model: model[0].register_full_backward_pre_hook(lambda m, g: SEEN.append(g)), "backward pre-hook", "",
    ),
    "in place": (lambda model: model[0].register_forward_hook(in_place), "forward hook", "in_place at"),
}  # fmt: skip


@pytest.mark.parametrize("captured_before", [False, True])
@pytest.mark.parametrize(("register", "kind", "name"), LOOKING.values(), ids=LOOKING)
def test_a_hook_that_only_looks_is_refused_and_never_called(register, kind, name, captured_before):
    model = small()
    step = TrainStep(model, batch(), loss=square)
    if captured_before:
        capture(step)
    hook = register(model)
    with pytest.raises(StowageError, match=rf"0 \(Linear\) has a {kind} that returns nothing, .*{name}.*: remove"):
        capture(step)
    assert SEEN == []
    hook.remove()
    capture(step)


def test_a_hook_of_all_modules_that_only_looks_is_refused():
    hook = register_module_forward_hook(record)
    try:
        with pytest.raises(StowageError, match="every module has a forward hook that returns nothing, record at"):
            capture(TrainStep(small(), batch(), loss=square))
    finally:
        hook.remove()
    assert SEEN == []


def test_a_hook_that_returns_what_it_was_given_is_refused():
    def look(module, inputs, output):
        SEEN.append(output)
        return output

    model = small()
    model[0].register_forward_hook(look)
    with pytest.raises(StowageError, match=r"look at test_hooks.py:\d+, that changed nothing when .* remove it"):
        capture(TrainStep(model, batch(), loss=square))
    assert SEEN == [], "what it kept of the capture is gone"


def double(module, inputs, output):
    return output * 2


def sometimes(module, inputs, output):
    if isinstance(module, nn.ReLU):
        return output * 3
    return None


COMPUTING = {
    "forward": lambda model: model[0].register_forward_hook(double),
    "in place": lambda model: model[0].register_forward_hook(lambda m, i, o: o.mul_(2)),
    "always, with kwargs": lambda model: model[0].register_forward_hook(
        lambda m, a, k, o: o + 1, always_call=True, with_kwargs=True
    ),
    "before": lambda model: model[2].register_forward_pre_hook(lambda m, a: (a[0] * 3,)),
    "backward": lambda model: model[2].register_full_backward_hook(lambda m, i, o: (i[0] * 2,)),
    "before backward": lambda model: model[2].register_full_backward_pre_hook(lambda m, o: (o[0] * 2,)),
    "weight norm": lambda model: nn.utils.weight_norm(model[0]),
    "parametrized": lambda model: nn.utils.parametrizations.spectral_norm(model[0]),
}


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("register", COMPUTING.values(), ids=COMPUTING)
def test_a_hook_that_computes_is_a_part_of_the_step(register):
    def make():
        model = small()
        register(model)
        return model

    assert equal_to_eager(make)


def test_a_hook_of_all_modules_computes_for_some():
    hook = register_module_forward_hook(sometimes)
    try:
        assert equal_to_eager(small)
    finally:
        hook.remove()


class Keeping(nn.Module):
    """Uses what a hook of its own keeps, as a feature extractor does."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 2)
        self.kept = {}
        self.first.register_forward_hook(self.keep)

    def keep(self, module, inputs, output):
        self.kept["first"] = output

    def forward(self, x):
        return self.second(self.first(x)) + self.kept.pop("first")[:, :2]


def test_a_hook_of_the_models_own_is_its_code():
    assert equal_to_eager(Keeping)


def test_what_a_hook_keeps_for_the_loss_is_its_code_and_nothing_fake_stays_there():
    def make():
        model = small()
        model[0].register_forward_hook(lambda m, i, o: FEATURES.update(first=o))
        return model

    def distilling(model, x):
        return model(x).square().mean() + FEATURES["first"].square().mean()

    assert equal_to_eager(make, distilling)
    FEATURES.clear()
    capture(TrainStep(make(), batch(), loss=distilling))
    assert FEATURES == {}


class Inside(nn.Module):
    """Calls a function on what it has computed."""

    def __init__(self, act):
        super().__init__()
        torch.manual_seed(0)
        self.linear, self.act = nn.Linear(8, 2), act

    def forward(self, x):
        hidden = self.linear(x)
        self.act(hidden)
        return hidden * 2


def test_hooks_of_tensors_inside_forward_that_only_look_are_refused():
    registered, kept = torch.Tensor.register_hook, torch.Tensor.retain_grad
    with pytest.raises(
        StowageError, match=r"register_hook\(\) in .* at test_hooks.py:\d+ is given list.append, .*: remove"
    ):
        capture(TrainStep(Inside(lambda x: x.register_hook(SEEN.append)), batch(), loss=square))
    with pytest.raises(StowageError, match=r"retain_grad\(\) in .* at test_hooks.py:\d+ keeps a gradient, .*: remove"):
        capture(TrainStep(Inside(lambda x: x.retain_grad()), batch(), loss=square))
    assert SEEN == []
    assert torch.Tensor.register_hook is registered
    assert torch.Tensor.retain_grad is kept


def test_hooks_of_tensors_inside_forward_that_compute_are_a_part_of_the_step():
    assert equal_to_eager(lambda: Inside(lambda x: x.register_hook(lambda grad: grad * 2)))
