"""What `torch.utils.checkpoint` runs again draws what it drew in the forward pass, in every plan, to the bit."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor, nn
from torch.nn.functional import gumbel_softmax, scaled_dot_product_attention
from torch.utils.checkpoint import checkpoint

from planner.graph import Graph, Phase, fingerprint, from_json, to_json
from planner.plan import PlanIndex, validate
from planner.profile import PreparedStep, prepare
from planner.run import run
from planner.run.executor.executor import reordered
from planner.step import AdamW, Step, TrainStep
from planner.swap import plan_swaps
from tests.effort import EFFORT, combinations
from tests.run.plans import resident_plan
from tests.run.recomputing import recomputing_plan, repeatable
from tests.run.test_random_order import backwards_order

WIDTH = 24
_Part = Callable[[Tensor], Tensor]


class Blocks(nn.Module):
    """Layers with three draws each, some of them in checkpoints and some outside."""

    def __init__(self, *, reentrant: bool = False, nested: bool = False) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(8))
        self.run_again = partial(checkpoint, use_reentrant=reentrant, preserve_rng_state=True)
        self.nested = nested

    def block(self, layer: nn.Module, x: Tensor) -> Tensor:
        inner = partial(self.run_again, torch.dropout) if self.nested else torch.dropout
        mixed = inner(torch.tanh(layer(torch.dropout(x, 0.2, True))), 0.3, True)
        return x + mixed * torch.rand_like(mixed)

    def pair(self, first: nn.Module, second: nn.Module, x: Tensor) -> Tensor:
        return self.run_again(self.block, second, self.run_again(self.block, first, x))

    def forward(self, x: Tensor) -> Tensor:
        x = x.requires_grad_()  # or a reentrant checkpoint has no backward pass
        if self.nested:
            for pair in (self.layers[:2], self.layers[2:4]):
                x = self.run_again(self.pair, *pair, x)
        else:
            for layer in self.layers[:4]:
                x = self.run_again(self.block, layer, x)
        for layer in self.layers[4:]:
            x = self.block(layer, x)
        return x


class Mixture(nn.Module):
    """Draws of many kinds, in checkpoints in checkpoints and outside of them, chosen at random."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.parts = self.program(random.Random(seed), depth=0)

    def program(self, rng: random.Random, depth: int) -> list[_Part]:
        choices: list[_Part] = [
            lambda x: torch.dropout(x, 0.4, True),
            lambda x: x + 0.1 * torch.randn_like(x),
            lambda x: x * gumbel_softmax(x, dim=1),
            lambda x: x + torch.randint(0, 3, (WIDTH,)),
            lambda x: x * torch.bernoulli(torch.sigmoid(x.detach())),
            lambda x: scaled_dot_product_attention(x, x, x, dropout_p=0.2),
            *(lambda x, layer=layer: torch.tanh(layer(x)) for layer in self.layers),  # type: ignore[misc]
        ]
        parts = []
        for _ in range(rng.randint(2, 4)):
            if depth < 3 and rng.random() < 0.5:
                inner = partial(_each, self.program(rng, depth + 1))
                parts.append(partial(checkpoint, inner, use_reentrant=rng.random() < 0.5))
            else:
                parts.append(rng.choice(choices))
        return parts

    def forward(self, x: Tensor) -> Tensor:
        return self.layers[0](_each(self.parts, x.requires_grad_()))


def _each(parts: list[_Part], x: Tensor) -> Tensor:
    for part in parts:
        x = part(x)
    return x


def of_blocks(build: Callable[[], nn.Module], **settings: Any) -> TrainStep:
    """A step of a model of vectors, of which it makes others."""

    def loss(model: nn.Module, x: Tensor) -> Tensor:
        return model(x).square().mean()

    return TrainStep(build, lambda: torch.randn(32, WIDTH), loss=loss, optimizer=AdamW(lr=1e-2), **settings)


def _gpt2(*, reentrant: bool) -> Step:
    def build() -> nn.Module:
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(
            vocab_size=60, n_positions=16, n_embd=32, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=0
        ))  # fmt: skip
        model.activation_checkpointing_enable({"use_reentrant": reentrant})
        model.enable_input_require_grads()
        return model.train()

    tokens = torch.arange(32).reshape(2, 16)  # which the model looks at
    return TrainStep(build, {"input_ids": tokens, "labels": tokens.clone()}, optimizer=AdamW(lr=1e-2))


STEPS: dict[str, Callable[[], Step]] = {
    "non-reentrant": lambda: of_blocks(Blocks),
    "reentrant": lambda: of_blocks(lambda: Blocks(reentrant=True)),
    "nested": lambda: of_blocks(lambda: Blocks(nested=True)),
    "nested, reentrant": lambda: of_blocks(lambda: Blocks(nested=True, reentrant=True)),
    "micro-batches": lambda: of_blocks(Blocks, micro_batches=2),
    "GPT-2": lambda: _gpt2(reentrant=False),
    "GPT-2, reentrant": lambda: _gpt2(reentrant=True),
}


@cache
def ready_of(name: str) -> PreparedStep:
    return prepare(STEPS[name](), "cpu")


def graph_of(name: str) -> Graph:
    return ready_of(name).graph


def drawn(graph: Graph) -> tuple[list[int], list[int]]:
    """The ops that draw numbers of their own, and those whose numbers are drawn again."""
    ops = [op for op in graph.ops if op.random]
    return [op.id for op in ops if op.draws_as < 0], [op.draws_as for op in ops if op.draws_as >= 0]


@pytest.mark.parametrize("name", STEPS)
def test_each_op_of_a_checkpoint_draws_the_numbers_of_its_own_first_run(name: str) -> None:
    graph = graph_of(name)
    own, again = drawn(graph)
    assert again
    assert set(again) < set(own)
    for op in graph.ops:
        if op.draws_as >= 0:
            first = graph.ops[op.draws_as]
            assert (op.phase, first.phase) == (Phase.BACKWARD, Phase.FORWARD)
            assert op.target == first.target
            shapes = [[graph.tensors[tensor].shape for tensor in one.outputs] for one in (op, first)]
            assert shapes[0] == shapes[1]
    if not name.startswith("GPT-2"):
        share = (
            2 / 3 if name.startswith("nested") else 1 / 2
        )  # an inner checkpoint is also in layers that have no other
        assert len({*again}) == share * len(own)


def test_a_graph_says_which_draws_are_repeated_in_its_file_and_in_its_fingerprint() -> None:
    graph = graph_of("nested")
    read = from_json(to_json(graph))
    assert read.ops == graph.ops
    assert fingerprint(read) == fingerprint(graph)


@pytest.mark.parametrize(("name", "method"), combinations(list(STEPS), ["swap", "recompute", "joint"]))
def test_every_plan_has_eagers_bits(name: str, method: str) -> None:
    ready, step = ready_of(name), STEPS[name]()
    copied_nothing = "92%" if name.startswith("GPT-2") else "85%"  # all of whose blocks are in checkpoints
    for budget in ("100%", copied_nothing if method == "recompute" else "65%"):
        plan = plan_swaps(
            ready.graph, ready.machine, budget, seconds=ready.seconds, method=method, time_limit=0.2,
            recompute_limit=None if method == "swap" else "50%",
        )  # fmt: skip
        result = run(step, plan, steps=3, check=True, stress=budget != "100%").wait()
        assert result.mismatches == ()
        assert result.peak_bytes <= plan.peak_bytes


@pytest.mark.parametrize("name", STEPS)
def test_what_draws_numbers_again_may_itself_run_again(name: str) -> None:
    graph = graph_of(name)
    twice = [op.id for op in graph.ops for _ in range(1 + op.random)]
    plan = recomputing_plan(graph, repeatable(graph)[::2], order=twice, swapped=4)
    assert validate(plan, graph) == []
    again = {op.id for op in graph.ops if op.draws_as >= 0}
    assert again <= {plan.order[slot] for slot in PlanIndex(graph, plan).repeats}
    assert not reordered(graph, plan)
    assert run(STEPS[name](), plan, steps=3, check=True, stress=True).wait().mismatches == ()


@pytest.mark.parametrize("name", STEPS)
def test_an_order_in_which_the_second_draw_comes_first_has_the_same_numbers(name: str) -> None:
    graph = graph_of(name)
    order = backwards_order(graph)
    plan = resident_plan(graph, order)
    assert validate(plan, graph) == []
    assert reordered(graph, plan)
    assert run(STEPS[name](), plan, steps=3, check=True, stress=True).wait().mismatches == ()


@pytest.mark.parametrize("seed", range(8 * EFFORT))
def test_random_programs_of_checkpoints_and_draws_have_eagers_bits(seed: int) -> None:
    step = of_blocks(lambda: Mixture(seed), micro_batches=1 + seed % 2)
    assert run(step, budget="90%", steps=3, check=True, stress=True).wait().mismatches == ()
