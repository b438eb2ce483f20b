"""`planner partition`: the promised fields, pins, a file that validates, and every mistake in one sentence."""

from pathlib import Path

import pytest

from planner.partition import load_partition

MODEL = "mlp:layers=2,hidden=32,batch=16"
FIELDS = {
    "workers", "mesh", "search_seconds", "recursion_seconds", "bytes_per_level", "bytes_total",
    "recursion_bytes_total", "bound_bytes", "gap_to_bound_percent", "worker_peak_bytes", "single_peak_bytes",
    "step_seconds", "groups", "baselines", "opaque_bytes_percent", "valid",
}  # fmt: skip


def test_help_shows_examples(planner) -> None:
    answer = planner("partition", "--help")
    assert answer.status == 0
    assert "--pin head.weight=0" in answer.out


@pytest.mark.parametrize("workers", [1, 4, 7])
def test_a_partition_has_the_promised_fields_and_is_written(planner, tmp_path: Path, workers: int) -> None:
    out = tmp_path / "parts.json"
    facts = planner("partition", MODEL, "--workers", workers, "--out", out, "--json").json
    assert set(facts) >= FIELDS
    assert facts["workers"] == workers == len(facts["worker_peak_bytes"])
    assert facts["valid"] is True
    assert facts["bytes_total"] == sum(facts["bytes_per_level"]) <= facts["recursion_bytes_total"]
    assert facts["bytes_total"] == 0 if workers == 1 else facts["bytes_total"] > 0
    assert max(facts["worker_peak_bytes"]) <= facts["single_peak_bytes"]
    assert facts["recursion_seconds"] <= facts["search_seconds"]
    assert facts["step_seconds"] is None
    plan = load_partition(out)
    assert (plan.workers, list(plan.mesh), plan.bytes_moved) == (workers, facts["mesh"], facts["bytes_total"])


def test_a_machine_gives_the_time_of_a_step_and_no_baseline_that_fits_moves_less(planner) -> None:
    facts = planner("partition", MODEL, "--workers", 4, "--machine", "h100x8", "--json").json
    assert facts["step_seconds"] > 0
    assert set(facts["baselines"]) == {"data-parallel", "all-row", "spartan", "equal-chop", "icml18"}
    assert all(facts["bytes_total"] <= moved for moved in facts["baselines"].values() if moved is not None)


def test_pins_are_met_and_a_table_says_so_in_rows(planner, tmp_path: Path) -> None:
    out = tmp_path / "parts.json"
    words = ["--pin", "layers.0.weight=1", "--pin", "layers.1.weight=free,replicated", "--out", out]
    answer = planner("partition", MODEL, "--workers", 4, *words)
    assert answer.status == 0
    for row in ("workers", "mesh", "moved", "recursion", "lower bound", "worker peak", "baselines", "valid"):
        assert row in answer.out
    first = load_partition(out).tensors[0]
    assert {getattr(state, "dimension", None) for state in first} == {1}


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--workers", 0], "at least 1, got 0"),
        (["--workers", -3], "at least 1, got -3"),
        (["--workers", 16, "--machine", "k80x8"], "too few for 16 workers"),
        (["--workers", 4, "--memory", "100B"], "too little for each of 4 workers"),
        (["--memory", "lots"], "not a budget"),
        (["--pin", "layers.0.weight"], "is not TENSOR=DIMENSION"),
        (["--pin", "layers.0.wieght=0"], "did you mean layers.0.weight?"),
        (["--pin", "layers.0.weight=7"], "has no dimension 7"),
        (["--workers", 64, "--pin", "layers.0.weight=0"], "cannot be split 2 x 2 x 2 x 2 x 2 x 2 ways"),
        (["--seed", -1], "seed must be"),
        (["--machine", "h100x9"], "unknown machine"),
        (["--out", "/no/such/folder/parts.json"], "cannot write"),
    ],
)
def test_mistakes_end_with_one_sentence_and_status_2(planner, words: list[object], reason: str) -> None:
    answer = planner("partition", MODEL, *words)
    assert answer.status == 2
    assert reason in answer.err
    assert answer.err.startswith("error: ")
    assert answer.err.count("\n") == 1


def test_a_tensor_is_pinned_once(planner) -> None:
    answer = planner("partition", MODEL, "--pin", "layers.0.weight=0", "--pin", "layers.0.weight=1")
    assert answer.status == 2
    assert "layers.0.weight is pinned twice" in answer.err


def test_a_step_that_cannot_be_split_is_named_so(planner) -> None:
    answer = planner("partition", "mlp:layers=1,hidden=3,batch=3", "--workers", 1000, "--seconds", 5)
    assert "every worker does the whole step" in answer.out


def test_all_devices_of_a_machine_are_used(planner) -> None:
    facts = planner("partition", MODEL, "--machine", "h100x8:hosts=2", "--seconds", 0, "--json").json
    assert facts["workers"] == 16


def test_a_partition_of_a_gpus_ops_says_so_and_is_not_run_with_those_of_the_cpu(planner, tmp_path: Path) -> None:
    model, out = "gpt:layers=1,hidden=16,heads=2,sequence=8,vocabulary=40,batch=4", tmp_path / "parts.json"
    words = ("partition", model, "--workers", 2, "--seconds", 2)
    assert planner(*words, "--json").json["approximate"] == ""
    for_gpus = planner(*words, "--machine", "h100x8", "--json").json["approximate"]
    assert for_gpus.startswith("the step was captured for the CPU: ")
    table = planner(*words, "--device", "cuda", "--out", out).out
    assert table.splitlines()[0].split("  ")[-1].strip() == "a GPU's"
    assert "the step was captured without a GPU: " in " ".join(table.split())
    refused = planner("run", model, "--partition", out)
    assert (refused.status, refused.out) == (2, "")
    assert 'search for one with this model, batch and optimizer, captured for device="cpu"' in refused.err


def test_a_file_holds_the_bound_that_was_found(planner, tmp_path: Path) -> None:
    out = tmp_path / "parts.json"
    facts = planner("partition", MODEL, "--workers", 4, "--out", out, "--json").json
    assert facts["bound_bytes"] is not None
    assert load_partition(out).bound == facts["bound_bytes"]
