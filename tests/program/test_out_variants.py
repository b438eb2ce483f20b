"""What the capture and the calls must know about kernels that PyTorch does not say, so that every bit is eager's."""

from contextlib import nullcontext
from itertools import product

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from planner import StowageError, run
from planner.capture import capture
from planner.capture.trace.trace import trace
from planner.graph import Phase
from planner.program import backend_of
from planner.step import TrainStep
from tests.capture.interpreter import differences
from tests.effort import combinations


class Transposed(nn.Module):
    def __init__(self, training):
        super().__init__()
        self.linear, self.norm = nn.Linear(8, 8), nn.BatchNorm1d(8).train(training)

    def forward(self, x):
        return self.norm(self.linear(x).transpose(1, 2))


class Conjugating(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4))

    def forward(self, x):
        z = torch.complex(x * self.weight, x)
        return (z @ z.mH).real


def step(model, *shape, **more):
    return TrainStep(model, torch.randn(*shape), loss=lambda m, x: m(x).float().square().mean(), **more)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("autocast", [None, torch.bfloat16])
def test_batch_normalisation_of_a_transposed_input_has_the_bits_of_eager(training, autocast):
    torch.manual_seed(0)
    assert run(step(Transposed(training), 4, 6, 8, autocast=autocast), steps=2, check=True).wait().mismatches == ()
    assert differences(step(Transposed(training), 4, 6, 8, autocast=autocast)) == []


def test_a_lazily_conjugated_tensor_is_refused_where_a_kernel_reads_it_as_it_is():
    with pytest.raises(StowageError, match=r"aten\.mm\.default in the model at .*\.py:\d+ takes or makes a lazily"):
        capture(step(Conjugating(), 3, 4))


def test_a_model_that_cannot_be_copied_for_a_check_says_so():
    with pytest.raises(StowageError, match="cannot be copied"):
        step(nn.utils.weight_norm(nn.Linear(4, 4)), 3, 4).clone()


class Laid(nn.Module):
    """What normalises, weighs, drops or bends vectors, given them transposed, and what is summed by its gradient."""

    def __init__(self, act):
        super().__init__()
        self.scale, self.act, self.norm = nn.Parameter(torch.rand(8)), act, nn.BatchNorm1d(8)
        self.linear = nn.Linear(8, 8)

    def forward(self, x):
        return self.act(self, self.linear(x * self.scale))


BENT = {
    "batch norm": lambda m, x: m.norm(x.transpose(1, 2)),
    "batch norm twice": lambda m, x: m.norm(m.norm.eval()(x.transpose(1, 2)).relu().transpose(1, 2).transpose(1, 2)),
    "log softmax": lambda m, x: x.transpose(1, 2).log_softmax(1).transpose(1, 2) * m.scale,
    "log sigmoid": lambda m, x: nn.functional.logsigmoid(x.transpose(1, 2)).transpose(1, 2) * m.scale,
    "layer norm": lambda m, x: nn.functional.layer_norm(x.transpose(1, 2), (6,)).transpose(1, 2) * m.scale,
    "threshold": lambda m, x: x.transpose(1, 2).clone().relu().transpose(1, 2) * m.scale,
    "copysign": lambda m, x: x.transpose(1, 2).copysign(x[:, :1, :1]).transpose(1, 2) * m.scale,
    "xlogy": lambda m, x: torch.xlogy(x.square().transpose(1, 2), x.square().transpose(1, 2) + 1).transpose(1, 2),
    "rounded": lambda m, x: x + torch.div(x.detach().transpose(1, 2), x[:, 0, :1, None], rounding_mode="floor").mT,
    "power": lambda m, x: (torch.pow(2, x.transpose(1, 2)).transpose(1, 2) * m.scale).sum(1),
}


@pytest.mark.parametrize(
    ("case", "loss"),
    combinations(list(product([None, torch.bfloat16], BENT)), ["mean", "sum", "smooth", "huber"]),
)
def test_strides_are_those_of_the_kernels_so_that_sums_have_the_order_of_eager(case, loss):
    autocast, name = case
    torch.manual_seed(0)
    losses = {
        "mean": lambda m, x: m(x).square().mean(),
        "sum": lambda m, x: m(x).sum().float(),
        "smooth": lambda m, x: nn.functional.smooth_l1_loss(m(x).mT, torch.ones_like(m(x).mT)),
        "huber": lambda m, x: nn.functional.huber_loss(m(x).mT, torch.ones_like(m(x).mT)),
    }
    made = TrainStep(Laid(BENT[name]), torch.randn(4, 6, 8), loss=losses[loss], autocast=autocast)
    assert differences(made, 2) == []


class Shapes(TorchDispatchMode):
    """Notes strides and types of what every kernel really returns."""

    def __init__(self):
        super().__init__()
        self.made = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        self.made.append((func, [laid(leaf) for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)]))
        return result


def laid(tensor):
    steps = tuple(step for step, size in zip(tensor.stride(), tensor.shape, strict=True) if size != 1)
    return tuple(tensor.shape), steps if tensor.numel() else (), tensor.dtype


@pytest.mark.parametrize("name", BENT)
def test_every_recorded_result_is_laid_out_as_the_kernel_lays_it_out(name):
    torch.manual_seed(0)
    made = TrainStep(Laid(BENT[name]), torch.randn(4, 6, 8), loss=lambda m, x: m(x).mT.square().sum())
    recorded = [
        e for e in trace(made, backend_of("cpu"), lambda share, what: None).events if e.phase is not Phase.OPTIMIZER
    ]
    with Shapes() as seen:
        made.materialize()
        made.passes(made.live.model, made.live.batch, lambda phase: None)
    ours = [(e.target, [laid(torch.empty_strided(*r[1:3], dtype=r.dtype)) for r in e.made]) for e in recorded]
    kept = {target for target, _ in seen.made}
    assert [each for each in ours if each[0] in kept] == seen.made


class Bilinear(nn.Module):
    def __init__(self, around):
        super().__init__()
        self.inner, self.around = nn.Bilinear(8, 8, 8), around

    def forward(self, x):
        with self.around():
            return self.inner(x, x)


def test_an_op_whose_insides_autocast_changes_is_refused_under_autocast_alone():
    def off():
        return torch.autocast("cpu", enabled=False)

    with pytest.raises(StowageError, match=r"aten\._trilinear\.default in module inner computes in autocast's"):
        capture(step(Bilinear(nullcontext), 4, 8, autocast=torch.bfloat16))
    assert run(step(Bilinear(nullcontext), 4, 8), steps=1, check=True).wait().mismatches == ()
    assert run(step(Bilinear(off), 4, 8, autocast=torch.bfloat16), steps=1, check=True).wait().mismatches == ()
