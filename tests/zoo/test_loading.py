"""A step is named by one line of text, and every mistake in it is answered by one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner import zoo
from planner.errors import StowageError
from planner.step import InferenceStep, TrainStep

FILE = """
from dataclasses import dataclass

import torch
from planner.step import InferenceStep, TrainStep
from planner.errors import StowageError
from sizes import HIDDEN


@dataclass
class Batch:
    x: torch.Tensor


def train():
    import sizes
    return TrainStep(torch.nn.Linear(sizes.HIDDEN, 1), lambda: torch.zeros(3, HIDDEN), loss=lambda m, x: m(x).sum())


def infer():
    return InferenceStep(torch.nn.Linear(HIDDEN, 1), (torch.zeros(3, HIDDEN),))


def module():
    return torch.nn.Linear(1, 1)


def nothing():
    pass


def fails():
    raise ValueError("no data\\nin this folder")


def leaves():
    raise SystemExit(3)


def refuses():
    raise StowageError("choose a smaller width")


def needs(width):
    return None


number = 5
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "sizes.py").write_text("HIDDEN = 4\n")
    path = tmp_path / "mine.py"
    path.write_text(FILE)
    return path


def sentence(text: str) -> str:
    with pytest.raises(StowageError) as caught:
        zoo.load(text)
    said = str(caught.value)
    assert "\n" not in said
    return said


def test_every_model_describes_its_arguments() -> None:
    models = {model.name: model for model in zoo.models()}
    assert set(models) == {"mlp", "wresnet", "rnn", "brnn", "inception", "nasnet", "gpt"}
    for model in models.values():
        assert model.about
        assert {"batch", "optimizer", "mode", "seed"} <= set(model.arguments)
        for argument, default in model.arguments.items():
            assert model.read(argument, str(default)) == default


@pytest.mark.parametrize(
    "text", ["wresnet:depth=101,widen=2", "gpt:layers=2,dropout=0.1", "rnn:optimizer=adam,seed=3", "mlp:mode=inference"]
)
def test_a_step_is_named_by_the_text_that_makes_it(text: str) -> None:
    assert zoo.load(text).name == text


def test_defaults_are_left_out_of_the_name_and_spaces_do_not_matter() -> None:
    assert zoo.load(" wresnet : depth=50 , batch=16,").name == "wresnet:batch=16"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("resnet", "did you mean wresnet"),
        ("transformer9000", "the zoo has mlp, wresnet"),
        ("", "the zoo has mlp, wresnet"),
        ("mlp:layer=3", "did you mean layers"),
        ("mlp:width=3", "it takes layers=4,hidden=512"),
        ("mlp:layers=three", "is not a whole number"),
        ("mlp:layers=2.5", "is not a whole number"),
        ("gpt:dropout=much", "is not a number"),
        ("gpt:dropout=1", "below 1"),
        ("gpt:dropout=nan", "below 1"),
        ("gpt:hidden=100,heads=3", "must be a multiple of heads=3"),
        ("mlp:layers", "key=value"),
        ("mlp:layers=1,layers=2", "given twice"),
        ("mlp:batch=0", "batch=0 must be at least 1"),
        ("rnn:steps=-1", "steps=-1 must be at least 1"),
        ("wresnet:depth=34", "choose one of 50, 101, 152"),
        ("wresnet:width=outer", "choose one of inner, full"),
        ("wresnet:image=8", "at least 32"),
        ("inception:version=2", "choose 3 or 4"),
        ("inception:image=32", "at least 75"),
        ("nasnet:filters=30", "multiple of 4"),
        ("mlp:optimizer=lion", "choose one of sgd, momentum, adam, adamw"),
        ("mlp:mode=test", "choose one of train, inference"),
        ("mlp:mode=inference,optimizer=adam", "leave it out"),
    ],
)
def test_a_mistake_in_the_text_is_said_in_one_sentence(text: str, says: str) -> None:
    assert says in sentence(text)


def test_python_callers_get_the_same_sentences() -> None:
    with pytest.raises(StowageError, match="choose one of sgd"):
        zoo.mlp(optimizer="lion")  # type: ignore[arg-type]
    with pytest.raises(StowageError, match="choose inner or full"):
        zoo.wresnet(width="outer")  # type: ignore[arg-type]
    with pytest.raises(StowageError, match="choose one of train, inference"):
        zoo.mlp(mode="predict")  # type: ignore[arg-type]


def test_a_step_comes_from_a_file_of_ones_own(file: Path) -> None:
    assert isinstance(zoo.load(f"{file}:train"), TrainStep)
    assert isinstance(zoo.load(f"{file}:infer"), InferenceStep)


@pytest.mark.parametrize(
    ("function", "says"),
    [
        ("trian", "did you mean train"),
        ("", "has no function"),
        ("number", "is not a function"),
        (
            "module",
            "returned Linear, which is not a step; wrap it in planner.TrainStep(module, batch) or planner.",
        ),
        ("nothing", "returned NoneType"),
        ("fails", "raised ValueError: no data;"),
        ("leaves", "raised SystemExit: 3;"),
        ("refuses", "choose a smaller width"),
        ("needs", "called without arguments"),
    ],
)
def test_a_mistake_in_a_file_is_said_in_one_sentence(file: Path, function: str, says: str) -> None:
    assert says in sentence(f"{file}:{function}")


def test_a_missing_or_broken_file_is_said_in_one_sentence(file: Path) -> None:
    assert "there is no file" in sentence(f"{file.parent / 'other.py'}:train")
    assert "there is no file" in sentence(f"{file.parent}/folder.py:train")
    assert "names no function" in sentence(str(file))
    for text, says in (("def", "SyntaxError"), ("import nowhere", "ModuleNotFoundError"), ("exit(3)", "SystemExit: 3")):
        file.write_text(text)
        assert says in sentence(f"{file}:train")


def test_a_step_is_made_with_other_arguments_than_its_text_has(file: Path) -> None:
    make_step = zoo.step_maker("mlp:layers=2,batch=3")
    assert make_step().name == zoo.load("mlp:layers=2,batch=3").name
    assert make_step(batch=5).name == zoo.load("mlp:layers=2,batch=5").name
    with pytest.raises(
        StowageError,
        match=r"needs in .* returned NoneType, which is not a step; return a TrainStep or an InferenceStep",
    ):
        zoo.step_maker(f"{file}:needs")(width=2)
