"""Whatever is asked wrongly is answered with one sentence on standard error and status 2, and no file is touched."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from planner.graph import load
from planner.partition import PartitionPlan, coarsen, recurse, save_partition

MODEL = "mlp:layers=2,hidden=32,batch=4"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["paint"], "paint"),
        (["swp", MODEL], "did you mean swap?"),
        (["capture"], "MODEL"),
        (["capture", "resnt"], "resnt"),
        (["capture", "wresnt:depth=50"], "wresnet"),
        (["capture", "mlp:height=3"], "hidden"),
        (["capture", "mlp:layers=many"], "layers"),
        (["capture", "no/such/file.py:step"], "no/such/file.py"),
        (["capture", MODEL, "--colour", "red"], "--colour"),
        (["swap", MODEL, "--machine", "abacus", "--budget", "50%"], "abacus"),
        (["swap", MODEL, "--machine", "laptop", "--budget", "0"], "0"),
        (["swap", MODEL, "--machine", "laptop", "--budget", "-1"], "-1"),
        (["swap", MODEL, "--machine", "laptop", "--budget", "lots"], "lots"),
        (["swap", MODEL, "--machine", "laptop", "--budget", "8 bananas"], "8 bananas"),
        (["swap", MODEL, "--machine", "laptop", "--budget", "1KiB"], "at least"),
        (["swap", MODEL, "--machine", "laptop", "--budget", "50%", "--method", "magic"], "magic"),
        (["swap", MODEL, "--machine", "laptop", "--budget", "50%", "--host-budget", "1"], "host"),
        (["swap", MODEL, "--machine", "laptop", "--budget", "50%", "--seconds", "-3"], "seconds"),
        (
            ["swap", MODEL, "--machine", "laptop", "--budget", "50%", "--seconds", "nan"],
            "--seconds must be a number of 0 or more, got nan",
        ),
        (["run", MODEL], "--budget"),
        (["run", MODEL, "--budget", "lots"], "lots"),
        (["run", MODEL, "--budget", "50%", "--steps", "0"], "steps"),
        (["run", MODEL, "--budget", "50%", "--device", "toaster"], "toaster"),
        (["run", MODEL, "--plan", "no/such/plan.json"], "no/such/plan.json"),
        (["pack", "no/such/buffers.csv"], "no/such/buffers.csv"),
        (["validate", "no/such/plan.json", "no/such/graph.json"], "no/such"),
    ],
)
def test_one_sentence_says_what_to_change(planner, words, says) -> None:
    answer = planner(*words)
    assert answer.status == 2
    assert answer.out == ""
    assert answer.err.startswith("error: ")
    assert answer.err.count("\n") == 1
    assert says in answer.err
    assert "should not happen" not in answer.err


@pytest.mark.parametrize(
    "words",
    [
        ("capture", "no_such_model", "--out"),
        ("swap", "no_such_model", "--machine", "laptop", "--out"),
        ("swap", "no_such_model", "--machine", "laptop", "--trace"),
        ("run", "no_such_model", "--budget", "50%", "--trace"),
        ("pack", "no_such_buffers.csv", "--out"),
    ],
)
@pytest.mark.parametrize("place", ["gone/result.json", "."])
def test_a_file_that_cannot_be_written_is_refused_before_anything_is_worked_out(planner, tmp_path, words, place):
    answer = planner(*words, tmp_path / place)
    assert answer.status == 2
    assert "cannot write" in answer.err
    assert "no_such" not in answer.err
    assert list(tmp_path.iterdir()) == []


def test_a_traceback_comes_only_when_asked_for(planner) -> None:
    assert "Traceback" not in planner("capture", "resnt").err
    with pytest.raises(Exception, match="resnt"):
        planner("--debug", "capture", "resnt")


USER_FILES = {
    "unknown word": ("import torch, planner\ndef f(): return planner.TrainStep(torch.nn.Embedding(4, 2),"
                     " torch.tensor([9]), loss=lambda m, b: m(b).sum())\n", "IndexError"),
    "raises": ("import torch, planner\nclass M(torch.nn.Linear):\n def forward(self, x): raise KeyError('oh')\n"
               "def f(): return planner.TrainStep(M(2, 2), torch.ones(2), loss=lambda m, b: m(b).sum())\n", "oh"),
    "no step": ("def f(): return 3\n", "TrainStep"),
    "no function": ("x = 1\n", "f"),
    "syntax": ("def f(:\n", "f"),
    "value-dependent": ("import torch, planner\nclass M(torch.nn.Linear):\n def forward(self, x):\n"
                        "  return super().forward(x) if self.weight.sum().item() > 0 else x\n"
                        "def f(): return planner.TrainStep(M(2, 2), torch.ones(2, 2), loss=lambda m, b: m(b).sum())\n",
                        "torch.where"),
    "wrong device": ("import torch, planner\ndef f(): return planner.TrainStep(torch.nn.Linear(2, 2),"
                     " torch.ones(2, 2, device='meta'), loss=lambda m, b: m(b).sum())\n", "meta"),
}  # fmt: skip


@pytest.mark.parametrize("case", USER_FILES)
def test_a_users_own_model_fails_in_one_sentence(planner, tmp_path: Path, case: str) -> None:
    text, says = USER_FILES[case]
    (tmp_path / "mine.py").write_text(text)
    answer = planner("run", f"{tmp_path / 'mine.py'}:f", "--budget", "100%")
    assert (answer.status, answer.out) == (2, "")
    assert answer.err.count("\n") == 1
    assert says in answer.err
    assert "should not happen" not in answer.err


def test_a_failed_command_leaves_the_earlier_file(planner, tmp_path: Path) -> None:
    kept = tmp_path / "plan.json"
    kept.write_text("earlier")
    assert planner("swap", MODEL, "--machine", "laptop", "--budget", "1KiB", "--out", kept).status == 2
    assert planner("capture", MODEL, "--out", tmp_path / "missing" / "graph.json").status == 2
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]
    assert kept.read_text() == "earlier"


class TestPlansFromElsewhere:
    @pytest.fixture
    def made(self, planner, tmp_path: Path) -> Path:
        words = ["swap", MODEL, "--machine", "laptop", "--budget", "80%", "--out", tmp_path / "plan.json"]
        assert planner(*words).status == 0
        assert planner("capture", MODEL, "--out", tmp_path / "graph.json").status == 0
        return tmp_path

    def test_a_sound_plan_is_valid(self, planner, made: Path) -> None:
        answer = planner("validate", made / "plan.json", made / "graph.json", "--json")
        assert (answer.status, answer.json) == (0, {"valid": True, "errors": []})

    def test_a_partition_plan_is_told_from_a_plan_of_swaps(self, planner, made: Path) -> None:
        parts = PartitionPlan.of(recurse(coarsen(load(made / "graph.json")), 2))
        save_partition(parts, made / "parts.json")
        answer = planner("validate", made / "parts.json", made / "graph.json", "--json")
        assert (answer.status, answer.json) == (0, {"valid": True, "errors": []})
        save_partition(replace(parts, bytes_per_level=(1,)), made / "parts.json")
        answer = planner("validate", made / "parts.json", made / "graph.json", "--json")
        assert answer.status == 2
        assert "1 bytes are received" in answer.json["errors"][0]

    def test_a_plan_for_another_graph_is_refused(self, planner, made: Path) -> None:
        answer = planner("run", "mlp:layers=2,hidden=64,batch=4", "--plan", made / "plan.json")
        assert answer.status == 2
        assert "another" in answer.err

    def test_a_truncated_plan_is_refused(self, planner, made: Path) -> None:
        text = (made / "plan.json").read_text()
        (made / "plan.json").write_text(text[: len(text) // 2])
        assert planner("run", MODEL, "--plan", made / "plan.json").status == 2
        answer = planner("validate", made / "plan.json", made / "graph.json", "--json")
        assert answer.status == 2
        assert answer.json["valid"] is False

    def test_an_edited_plan_is_refused(self, planner, made: Path) -> None:
        plan = json.loads((made / "plan.json").read_text())
        plan["budget_bytes"] += 64
        (made / "plan.json").write_text(json.dumps(plan))
        answer = planner("validate", made / "plan.json", made / "graph.json", "--json")
        assert answer.json["valid"] is False
        assert len(answer.json["errors"]) == 1

    def test_a_graph_of_another_version_is_refused(self, planner, made: Path) -> None:
        graph = json.loads((made / "graph.json").read_text())
        graph["version"] += 1
        (made / "graph.json").write_text(json.dumps(graph))
        answer = planner("validate", made / "plan.json", made / "graph.json")
        assert answer.status == 2
        assert "version" in answer.err
