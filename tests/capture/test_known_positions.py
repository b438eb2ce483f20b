"""Rows that a model looks up by positions that it counts itself: beyond its tables they are refused, as eager does."""

import pytest
import torch
from torch import nn

from planner import StowageError, TrainStep
from planner.capture import capture

ROWS = 16


class Positions(nn.Module):
    """Looks up rows of a table of 16, at positions that a rule makes of 0, 1, 2, ..."""

    def __init__(self, rule):
        super().__init__()
        self.tokens, self.table = nn.Embedding(50, 8), nn.Embedding(ROWS, 8)
        self.rule = rule

    def forward(self, tokens):
        return self.tokens(tokens) + self.rule(self, torch.arange(tokens.shape[1]))


def added(model, positions):
    positions += 1
    return model.table(positions)


def filled(model, positions):
    return model.table(torch.empty_like(positions).copy_(positions))


#: By rule, the longest sequence that it has rows for; None where sequences may have any length.
RULES = {
    "an embedding": (lambda model, positions: model.table(positions.unsqueeze(0)), 16),
    "an index": (lambda model, positions: model.table.weight[positions], 16),
    "from the end": (lambda model, positions: model.table.weight[-1 - positions], 16),
    "changed in place": (added, 15),
    "within the table": (lambda model, positions: model.table(positions.clamp(max=ROWS - 1)), None),
}


def step_of(rule, length):
    return TrainStep(
        lambda: Positions(rule), lambda: torch.zeros(2, length, dtype=torch.int64),
        loss=lambda model, tokens: model(tokens).square().mean(),
    )  # fmt: skip


@pytest.mark.parametrize("name", RULES)
def test_a_step_is_captured_just_where_eager_pytorch_runs_it(name):
    rule, longest = RULES[name]
    for length in (14, 15, 16, 17, 40):
        if longest is None or length <= longest:
            capture(step_of(rule, length), progress=False)
            step_of(rule, length).eager()
        else:
            with pytest.raises(StowageError, match=f"looks up row -?[0-9]+ of a table with {ROWS} rows"):
                capture(step_of(rule, length), progress=False)
            with pytest.raises(IndexError):
                step_of(rule, length).eager()


def test_the_refusal_names_the_module_the_line_and_what_to_change():
    with pytest.raises(
        StowageError,
        match=r"^module table at test_known_positions.py:\d+ looks up row 16 of a table "
        r"with 16 rows \(aten.embedding.default\): make the sequence shorter, or the table longer$",
    ):
        capture(step_of(RULES["an embedding"][0], 17), progress=False)


def test_positions_in_memory_that_starts_with_any_values_are_not_judged():
    graph = capture(step_of(filled, 17), progress=False)
    assert any(op.target == "aten.embedding.default" for op in graph.ops)


def test_what_is_no_step_is_refused_in_a_sentence():
    with pytest.raises(StowageError, match="a Linear cannot be captured: give a TrainStep or an InferenceStep"):
        capture(nn.Linear(2, 2), progress=False)
