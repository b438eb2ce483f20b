"""Ops that are special to capture: each has eager's bits by a plan, or is refused before there is one.

What PyTorch tests its own ops by is tried as a whole by `benchmarks/op_samples.py`; here stands what that has found.
"""

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812
from torch.utils._pytree import tree_leaves

from planner import StowageError, capture, machine, plan_swaps, run
from planner.profile.measure import measure_ops
from planner.run.checks.eager_reference import same_bits
from planner.step import SGD, Adam, InferenceStep, TrainStep


class Calling(nn.Module):
    """Calls a function of two parameters, one real and one complex, and of the batch."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        self.weight = nn.Parameter(torch.randn(6, 6))
        self.complex = nn.Parameter(torch.randn(6, 6, dtype=torch.complex64))

    def forward(self, *batch):
        return self.function(self, *batch)


def square(model, batch):
    parts = [leaf for leaf in tree_leaves(model(*batch)) if leaf.requires_grad]
    return sum((torch.view_as_real(part) if part.is_complex() else part).float().square().sum() for part in parts)


def plan_of(step):
    """The first plan there is within what the step takes unswapped."""
    graph, here = capture(step), machine("cpu")
    costs = measure_ops(graph, here, cache=False)
    ready = graph.with_workspaces({op: int(size) for op, size in enumerate(costs.workspace_bytes) if size})
    return plan_swaps(ready, here, "100%", seconds=costs.seconds, time_limit=0)


def made(seed, *shapes, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(shape, generator=generator, dtype=dtype) for shape in shapes)


SQUARE, TALL, BATCH = made(1, (6, 6)), made(2, (9, 4)), made(3, (5, 6, 6), (1, 6, 6))
BAGS = torch.tensor([1, 2, 4, 5, 4, 3]), torch.tensor([0, 2, 5])

INFERENCE = {
    "eigvalsh": (lambda m, x: torch.linalg.eigvalsh(x), SQUARE),
    "eigh": (lambda m, x: torch.linalg.eigh(x)[0], SQUARE),
    "eigvals": (lambda m, x: torch.linalg.eigvals(x), SQUARE),
    "svdvals": (lambda m, x: torch.linalg.svdvals(x), TALL),
    "svdvals in low precision around": (lambda m, x: torch.linalg.svdvals(x @ x.mT), TALL),
    "svd": (lambda m, x: torch.linalg.svd(x)[1], TALL),
    "matrix norm": (lambda m, x: torch.linalg.matrix_norm(x, 2), TALL),
    "nuclear norm": (lambda m, x: torch.linalg.norm(x, "nuc"), TALL),
    "cond": (lambda m, x: torch.linalg.cond(x), SQUARE),
    "qr": (lambda m, x: torch.linalg.qr(x), TALL),
    "qr of many": (lambda m, x: torch.linalg.qr(x, mode="complete"), made(4, (2, 5, 3))),
    "one matrix beside many": (lambda m, x, y: x @ y, BATCH),
    "many matrices beside one": (lambda m, x, y: torch.matmul(y, x), BATCH),
    "matrix exponential": (lambda m, x: torch.matrix_exp(20 * x), SQUARE),
    "matrix exponentials": (lambda m, x: torch.matrix_exp(x * torch.logspace(-6, 2, 5)[:, None, None]), BATCH[:1]),
    "cholesky": (lambda m, x: torch.linalg.cholesky(x @ x.mT + torch.eye(6)), SQUARE),
    "factors of a matrix": (lambda m, x: torch.lu_unpack(*torch.linalg.lu_factor(x)), SQUARE),
    "is in": (lambda m, x: torch.isin(x, torch.arange(40)), (torch.arange(30),)),
    "diagonal scatter": (lambda m, x: torch.diagonal_scatter(x, x[0]), SQUARE),
    "copies of parts": (lambda m, x: torch.split_copy(x, 2), SQUARE),
    "a single complex number": (lambda m, x: torch.complex(x, x).sum(), SQUARE),
    "nothing": (lambda m, x: (x[:0] + 1, x + 1), SQUARE),
    "conjugated": (lambda m, x: torch.complex(x, x).conj(), SQUARE),
    "bags": (lambda m, x, y: F.embedding_bag(x, m.weight, y, mode="max"), BAGS),
    "bags of bfloat16": (lambda m, x, y: F.embedding_bag(x, m.weight.bfloat16(), y), BAGS),
}


@pytest.mark.parametrize("name", INFERENCE)
def test_inference_has_the_bits_of_eager(name):
    torch.manual_seed(0)
    function, batch = INFERENCE[name]
    model = Calling(function)
    with torch.no_grad():
        expected = tree_leaves(model.eval()(*batch))
    step = InferenceStep(model, batch)
    found = run(step, plan_of(step), steps=1).wait().outputs
    assert len(found) == len(expected)
    assert all(same_bits(ours, theirs) for ours, theirs in zip(found, expected, strict=True))


TRAINING = {
    "eigvalsh": (lambda m, x: torch.linalg.eigvalsh(m.weight + x), SQUARE),
    "qr": (lambda m, x: torch.linalg.qr(m.weight + x), SQUARE),
    "one matrix beside many": (lambda m, x: x @ m.weight[None], BATCH[:1]),
    "matrix exponential": (lambda m, x: torch.matrix_exp(m.weight * x), SQUARE),
    "distances": (lambda m, x: F.pairwise_distance(m.weight, x), SQUARE),
    "triplets": (lambda m, x: F.triplet_margin_loss(m.weight, x, x + 1), SQUARE),
    "renormalised": (lambda m, x: m.weight.renorm(2, 0, 1.0) * x, SQUARE),
    "largest": (lambda m, x: -(m.weight.mT * x).max() * m.weight, SQUARE),
    "median": (lambda m, x: -(m.weight * x).median() * m.weight, SQUARE),
    "product of one": (lambda m, x: m.weight[:, :1].prod(1) * x, SQUARE),
    "filled with a number": (lambda m, x: m.weight.masked_fill(x > 0, 2.0), SQUARE),
    "bags": (lambda m, x, y: F.embedding_bag(x, m.weight, y, mode="max"), BAGS),
    "convolution by Fourier": (lambda m, x: torch.fft.irfft(torch.fft.rfft(x) * torch.fft.rfft(m.weight)), SQUARE),
    "complex product": (lambda m, x: (m.complex * m.complex.conj() * torch.complex(x, m.weight)).abs(), SQUARE),
    "part of a conjugate": (lambda m, x: (m.complex.conj().imag[:, ::2] * x[:, ::2]).sum(1), SQUARE),
    "written in place": (lambda m, x: torch.complex(x, m.weight).conj().mul_(2).abs(), SQUARE),
    "connectionist loss": (
        lambda m, x: F.ctc_loss((x + m.weight[0]).log_softmax(-1), torch.tensor([[1, 2], [3, 3]]), (7, 7), (2, 1)),
        made(5, (7, 2, 6)),
    ),
    "class weights and smoothing": (
        lambda m, x: F.cross_entropy(m.weight, torch.tensor([0, -100, 1, 2, 3, 5]), x[0].abs(), label_smoothing=0.1),
        SQUARE,
    ),
}


@pytest.mark.parametrize("optimizer", [SGD(1e-2, momentum=0.9), Adam(1e-2)], ids=["sgd", "adam"])
@pytest.mark.parametrize("name", TRAINING)
def test_training_has_the_bits_of_eager(name, optimizer):
    torch.manual_seed(0)
    function, batch = TRAINING[name]
    step = TrainStep(Calling(function), batch, loss=square, optimizer=optimizer)
    plan = plan_of(step)
    assert run(step, plan, steps=2, check=True).wait().mismatches == ()


def test_a_gradient_that_is_lazily_conjugated_has_the_bits_of_eager():
    """Adam is not tried: that of `torch.optim` refuses such a gradient."""
    torch.manual_seed(0)
    adjoint = Calling(lambda m, x: torch.view_as_real((m.complex.mH * torch.complex(x, x)).sum(0)))
    step = TrainStep(adjoint, SQUARE, loss=square, optimizer=SGD(1e-2, momentum=0.9), clip_norm=0.5)
    assert run(step, plan_of(step), steps=2, check=True).wait().mismatches == ()


REFUSED = {
    "derivative of prod": (lambda m, x: m.weight.prod(1), r"functools\.reduce\(torch\.mul"),
    "derivative of masked_fill": (lambda m, x: x.masked_fill(x > 0, m.weight[0, 0]), r"torch\.where\(mask, value, x\)"),
    "lazily conjugated": (lambda m, x: m.complex @ m.complex.mH, "real and imaginary part"),
    "as_strided_scatter": (lambda m, x: torch.as_strided_scatter(m.weight, x[0], (6,), (1,)), "use slice_scatter"),
    "reads lengths": (
        lambda m, x: F.ctc_loss(m.weight[:, None].log_softmax(2), torch.ones(1, 2), *torch.tensor([[6], [2]])),
        "tuples of whole numbers",
    ),
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_a_plan_cannot_hold_is_refused_when_it_is_captured(words):
    function, advice = REFUSED[words]
    with pytest.raises(StowageError, match=advice):
        capture(TrainStep(Calling(function), SQUARE, loss=square))


def test_a_batch_that_is_lazily_conjugated_is_refused():
    with pytest.raises(StowageError, match=r"is lazily conjugated: give it with \.resolve_conj"):
        capture(InferenceStep(Calling(lambda m, x: x * 2), (torch.randn(3, dtype=torch.complex64).conj(),)))
