"""Descriptions and strategies are proven against the real kernels, and mistakes of every kind are found.

This is a sample, one call of each operator over an uneven number of workers; `benchmarks/verify_tdl.py` proves all.
"""

import pytest
import torch
from tdl_cases import calls
from torch import nn

from planner.capture import capture
from planner.errors import StowageError
from planner.partition import (
    KernelCall,
    PartitionPlan,
    coarsen,
    described,
    describes,
    optimize,
    prove,
    validate_partition,
)
from planner.partition.tdl import Max, Sum, indices
from planner.step import InferenceStep
from tests.partition.planted import wrong_descriptions, wrong_strategies

FIRST = {call.target: call for call in reversed(list(calls()))}
MISTAKES = {mistake.name: mistake for mistake in (*wrong_descriptions(), *wrong_strategies())}
SHARES = 8


def test_every_described_operator_has_calls_to_prove_it_by():
    assert {target for target in described() if target.startswith("aten.")} == FIRST.keys()


@pytest.mark.parametrize("share", range(SHARES))
def test_descriptions_and_strategies_are_what_the_kernels_do(share):
    for call in list(FIRST.values())[share::SHARES]:
        proof = prove(call, (3,))
        assert proof.faults == []
        assert proof.checks


@pytest.mark.parametrize("name", MISTAKES)
def test_a_planted_mistake_is_found(name):
    assert MISTAKES[name].faults()


def test_many_kinds_of_mistakes_are_planted():
    assert len(MISTAKES) >= 47


@torch.library.custom_op("stowage::row_powers", mutates_args=())
def row_powers(x: torch.Tensor) -> torch.Tensor:
    return x**3


@row_powers.register_fake
def _(x):
    return torch.empty_like(x)


class Powers(nn.Module):
    def forward(self, x):
        return row_powers(x).relu()


def test_a_step_that_was_partitioned_already_heeds_a_description_that_is_written_later():
    def powers(op, x):
        i, j = indices("i j")
        op.output(0)[i, j] = x[i, j] * x[i, j] * x[i, j]

    graph = capture(InferenceStep(Powers(), torch.randn(64, 32)), progress=False)
    (place,) = (op.id for op in graph.ops if "row_powers" in op.target)
    assert set(PartitionPlan.of(optimize(coarsen(graph), 2)).ops[place]) == {None}  # every worker computes all of it
    describes("stowage.row_powers.default")(powers)
    plan = PartitionPlan.of(optimize(coarsen(graph), 2))
    assert None not in plan.ops[place]
    assert validate_partition(plan, graph) == []


@torch.library.custom_op("stowage::row_scaled_sum", mutates_args=())
def row_scaled_sum(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return (x * scale).sum(1)


def test_an_operator_of_one_s_own_is_described_and_proven_in_a_few_lines():
    def rows(op, x, scale):
        i, j = indices("i j")
        op.output(0)[i] = Sum(j, x[i, j] * scale[j])

    torch.manual_seed(0)
    call = KernelCall("stowage.row_scaled_sum.default", [torch.randn(5, 7), torch.randn(7)])
    proof = prove(call, (2, 3), rows)
    assert proof.faults == []
    assert proof.strategies == 4  # rows, columns, and partial sums of either factor
    describes("stowage.row_scaled_sum.default")(rows)
    assert "stowage.row_scaled_sum.default" in described()
    assert prove(call).faults == []


@pytest.mark.parametrize("describer", [lambda op, self, dim: None, lambda op, self, dim: _only_the_largest(op, self)])
def test_a_description_that_leaves_out_an_output_is_refused(describer):
    proof = prove(KernelCall("aten.max.dim", [torch.randn(5, 7), 1]), (2,), describer)
    (fault,) = proof.faults
    assert "the description of aten.max.dim says nothing of output" in str(fault)
    assert "call unknown(op)" in str(fault)


def _only_the_largest(op, x):
    i, j = indices("i j")
    op.output(0)[i] = Max(j, x[i, j])


def test_a_description_of_one_s_own_may_be_written_again_and_ours_may_not():
    def twice(op, x, scale):
        i, j = indices("i j")
        op.output(0)[i] = Sum(j, 2 * x[i, j] * scale[j])

    call = KernelCall("stowage.row_scaled_sum.default", [torch.randn(5, 7), torch.randn(7)])
    describes("stowage.row_scaled_sum.default")(twice)
    assert prove(call).faults
    with pytest.raises(StowageError, match=r"aten.mm.default is described by Stowage itself"):
        describes("mm.default")(twice)
    with pytest.raises(StowageError, match="'blend' names no overload of an operator"):
        describes("blend")
    with pytest.raises(StowageError, match=r"workers must be numbers of 2 or more, .* got \(0,\)"):
        prove(call, (0,))
