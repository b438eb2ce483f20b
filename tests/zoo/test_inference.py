"""`mode=inference` is the forward pass of the same model on the same inputs, in evaluation mode."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from planner import zoo
from planner.capture import capture
from planner.graph import PERSISTENT, Kind, Phase
from planner.run import run
from planner.step import InferenceStep

SMALL = {
    "mlp": "mlp:layers=2,hidden=32,batch=4",
    "wresnet": "wresnet:image=32,batch=2,classes=10",
    "rnn": "rnn:layers=1,hidden=16,steps=3,batch=2",
    "brnn": "brnn:layers=1,hidden=16,steps=3,batch=2",
    "inception": "inception:widen=1,image=75,batch=2",
    "nasnet": "nasnet:cells=1,filters=8,image=64,batch=2",
    "gpt": "gpt:layers=1,hidden=32,heads=2,sequence=8,dropout=0.5",
}


@pytest.fixture(autouse=True)
def one_thread() -> Any:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def test_every_model_has_it() -> None:
    assert set(SMALL) == {model.name for model in zoo.models()}


@pytest.mark.parametrize("name", SMALL)
def test_nothing_that_outlives_the_step_is_written_and_nothing_is_random(name: str) -> None:
    step = zoo.load(f"{SMALL[name]},mode=inference")
    assert isinstance(step, InferenceStep)
    graph = capture(step)
    written = {storage for writes in graph.writes for storage in writes}
    assert not [s for s in graph.storages if s.kind in PERSISTENT and s.id in written]
    assert {op.phase for op in graph.ops} == {Phase.FORWARD}
    assert not [op for op in graph.ops if op.random], "dropout is for training"
    assert not [s for s in graph.storages if s.kind in (Kind.GRADIENT, Kind.OPTIMIZER_STATE)]


@pytest.mark.parametrize("name", ["wresnet", "gpt"])
def test_it_scores_what_the_trained_model_scores_in_evaluation_mode(name: str) -> None:
    training, inference = zoo.load(SMALL[name]), zoo.load(f"{SMALL[name]},mode=inference")
    live = training.materialize()
    live.model.eval()
    with torch.no_grad():
        scores = live.model(live.batch[0])
    assert torch.equal(inference.eager(), scores)
    assert [leaf.shape for leaf in inference.batch_leaves()] == [live.batch[0].shape], "no labels"


@pytest.mark.parametrize("name", ["wresnet", "rnn"])
def test_it_runs_within_a_budget_with_the_bits_of_ordinary_pytorch(name: str) -> None:
    result = run(zoo.load(f"{SMALL[name]},mode=inference"), budget="70%", steps=2, check=True).wait()
    assert not result.mismatches
    assert result.compared > 0
    assert result.peak_bytes <= result.budget_bytes
