"""`planner run --workers`: the promised fields, a partition from a file, and every mistake in one sentence."""

import pytest

MODEL = "mlp:layers=2,hidden=32,batch=16"
FIELDS = {
    "workers", "max_abs_error", "max_rel_error", "bytes_predicted", "bytes_counted", "worker_peak_bytes",
    "worker_budget_bytes", "step_seconds",
}  # fmt: skip


def test_a_step_on_workers_has_the_promised_fields(planner) -> None:
    facts = planner("run", MODEL, "--workers", 2, "--steps", 2, "--check", "--json").json
    assert set(facts) >= FIELDS
    assert facts["workers"] == 2 == len(facts["worker_peak_bytes"]) == len(facts["step_seconds"])
    assert facts["bytes_counted"] == facts["bytes_predicted"] > 0
    assert 0 < facts["max_rel_error"] <= 30 * facts["rounding_rel_error"]
    assert facts["worker_budget_bytes"] is None


def test_a_partition_from_a_file_is_run_within_a_budget(planner, tmp_path) -> None:
    file = tmp_path / "parts.json"
    assert planner("partition", MODEL, "--workers", 3, "--out", file).status == 0
    answer = planner("run", MODEL, "--partition", file, "--budget", "80%", "--steps", 1)
    assert answer.status == 0
    assert "max rel error" not in answer.out
    refused = planner("run", MODEL, "--partition", file, "--workers", 2)
    assert (refused.status, refused.err) == (2, f"error: {file} is for 3 workers, not 2; leave out --workers\n")


def test_steps_go_on_from_a_checkpoint(planner, tmp_path) -> None:
    file, folder = tmp_path / "parts.json", tmp_path / "checkpoint"
    assert planner("partition", MODEL, "--workers", 2, "--out", file).status == 0
    whole = planner("run", MODEL, "--partition", file, "--steps", 3, "--json").json
    args = "run", MODEL, "--partition", file, "--checkpoint", folder, "--json"
    first = planner(*args, "--steps", 1)
    rest = planner(*args, "--steps", 2)
    assert f"going on after step 1, from {folder}\n" in rest.err
    assert first.json["losses"] + rest.json["losses"] == whole["losses"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("--budget", "80%", "--checkpoint", "folder"),
            "--checkpoint is for a step on workers; leave it out or run wi",
        ),
        (("--workers", 0), "workers must be a whole number, at least 1, got 0"),
        (("--workers", 2, "--plan", "p.json"), "--plan is for a step on one device; leave it out or run without --w"),
        (("--workers", 2, "--stress"), "--stress is for a step on one device"),
        (("--workers", 2, "--device", "cuda"), "workers run on the CPU, not on cuda"),
        (("--workers", 65), "65 workers cannot be run on one machine; take at most 64"),
    ],
)
def test_what_cannot_be_run_is_refused_in_a_sentence(planner, words, sentence) -> None:
    answer = planner("run", MODEL, *words)
    assert answer.status == 2
    assert sentence in answer.err


def test_ranks_of_a_launcher_need_a_file(planner, monkeypatch) -> None:
    monkeypatch.setenv("RANK", "0")
    answer = planner("run", MODEL, "--workers", 2)
    assert answer.status == 2
    assert "ranks of a launcher need one partition: write it by `python -m planner partition` with --out" in answer.err
