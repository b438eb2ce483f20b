"""What is compared, and what counts as a refusal: a harness that sees nothing would pass every loop."""

from __future__ import annotations

import functools
import json
from typing import Any

import numpy as np
import pytest
import torch
from beside_eager import Loop, outcome
from bits import bits_of, difference
from random_loops import KINDS, main
from torch import Tensor, nn

from planner import StowageError
from tests.run.loops.harness import Net, loop, sgd, squares


def after(change: Any) -> list[str]:
    """What is seen of a change to a model, its optimizer or something else."""
    model = Net()
    model.kept = {"list": [0.0, float("nan")], "array": np.ones(2), "tensor": torch.zeros(2)}
    model.kept["self"] = model.kept
    optimizer, also = sgd(model), [1]
    squares(model, {"x": torch.ones(4, 8), "y": torch.ones(4, 4)}).backward()
    optimizer.step()
    before = bits_of(model, optimizer, also)
    change(model, optimizer, also)
    return difference(before, bits_of(model, optimizer, also))


CHANGES = {
    "nothing": (lambda model, optimizer, also: None, []),
    "the sign of zero": (
        lambda model, optimizer, also: model.kept["list"].__setitem__(0, -0.0),
        ["model.kept[list][0]"],
    ),
    "another NaN": (lambda model, optimizer, also: model.kept["list"].__setitem__(1, float("nan")), []),
    "an array": (lambda model, optimizer, also: model.kept["array"].fill(2), ["model.kept[array]"]),
    "a tensor's sign of zero": (lambda model, optimizer, also: model.kept["tensor"].neg_(), ["model.kept[tensor]"]),
    "a weight": (lambda model, optimizer, also: model.last.bias.data[0].add_(1), ["model.last.bias"]),
    "a hook": (lambda model, optimizer, also: model.register_forward_hook(print), ["len(model._forward_hooks)"]),
    "a rate": (
        lambda model, optimizer, also: optimizer.param_groups[0].update(lr=1),
        ["optimizer[param_groups][0][lr]"],
    ),
    "something else": (lambda model, optimizer, also: also.append(1), ["len(also)", "also[1] is new"]),
    "a draw": (lambda model, optimizer, also: torch.rand(1), ["torch's generator"]),
    "a draw of NumPy": (lambda model, optimizer, also: np.random.rand(), ["NumPy's generator"]),
}


@pytest.mark.parametrize(("change", "seen"), CHANGES.values(), ids=CHANGES)
def test_every_bit_that_a_loop_leaves_is_compared(change: Any, seen: list[str]) -> None:
    assert after(change) == seen


def raising(error: Exception) -> Loop:
    """A loop whose run raises before its third step, and whose loop by hand does not."""
    made = loop()

    def before(number: int) -> None:
        if number == 2 and not by_hand:
            raise error

    by_hand = not attempts.pop()
    made.before = before
    return made


attempts: list[bool] = []


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (StowageError("the model has a hook: remove it. Or pass check=True"), "refused"),
        (StowageError("one. Two. Three"), "crashed"),
        (StowageError("it went wrong\nTraceback (most recent call last)"), "crashed"),
        (KeyError("weight"), "crashed"),
    ],
    ids=["a sentence", "three sentences", "a traceback in a sentence", "any other error"],
)
def test_a_refusal_is_one_or_two_sentences(error: Exception, kind: str) -> None:
    attempts[:] = [True, False]
    assert outcome(functools.partial(raising, error)).kind == kind


def test_a_refusal_after_a_wrong_step_names_the_step() -> None:
    def make(said: str) -> Loop:
        wrong = attempts.pop()
        model = nn.Linear(8, 4)

        def loss(model: Any, batch: Any) -> Tensor:
            return squares(model, batch) * (2.0 if wrong else 1.0)

        def before(number: int) -> None:
            if wrong and number == 2:
                raise StowageError(said)

        return loop(model, loss, before=before)

    found = []
    for said in ("the loss reads a number: pass a tensor", "from step 1 on the loss differs: pass a tensor"):
        attempts[:] = [True, False]
        found.append(outcome(functools.partial(make, said)).kind)
    assert found == ["different", "refused"]


def test_the_benchmark_of_random_loops_says_what_came_of_each(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--loops", "2", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert {each["kind"] for each in found.values()} <= set(KINDS)
    with pytest.raises(SystemExit):
        main(["--loops", "1", "--seed", "3"])
    assert "1 random loops of 5 steps" in capsys.readouterr().out
