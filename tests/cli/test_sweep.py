"""`planner sweep`: the points of `planner.swap.sweep` for each method, as a table and as JSON."""

from __future__ import annotations

import os
import signal
import time
from threading import Thread, enumerate

import pytest

import planner as stowage
from planner.machine import PRESETS

MODEL = "gpt:layers=1,hidden=64,sequence=64,batch=4"
ASKED = ["--machine", "h200", "--budgets", "95%,80%", "--methods", "on-demand,calendar"]


def test_the_points_are_those_of_the_function_by_method_and_budget(planner) -> None:
    facts = planner("sweep", MODEL, *ASKED, "--seconds", 20, "--json").json
    graph = stowage.capture(stowage.zoo.load(MODEL), progress=False)
    expected = [
        [method, point.budget_bytes, point.step_seconds, point.percent_of_ideal, point.bound_seconds]
        for method in ("on-demand", "calendar")
        for point in stowage.swap.sweep(graph, PRESETS["h200"], ["80%", "95%"], method=method, progress=False)
    ]
    names = ("method", "budget_bytes", "step_seconds", "percent_of_ideal", "bound_seconds")
    assert [[point[name] for name in names] for point in facts["points"]] == expected
    assert facts["stopped"] is False
    assert facts["step_peak_bytes"] == stowage.swap.peak_of(graph, PRESETS["h200"].device.alignment)


def test_the_table_has_a_row_for_each_budget_and_a_column_for_each_method(planner) -> None:
    ops, table, caution = planner("sweep", MODEL, *ASKED, "--seconds", 1).out.split("\n\n")
    lines = table.splitlines()
    assert lines[0].split() == ["budget", "on-demand", "calendar"]
    assert [line.count(" %") for line in lines[1:]] == [2, 2]
    assert " ".join(ops.split()).endswith("and not those of h200: for these add --device cuda")
    assert caution.startswith("Approximate: the step was captured for the CPU: ")
    of_a_gpu = planner("sweep", MODEL, *ASKED, "--seconds", 1, "--device", "cuda").out.split("\n\n")
    assert of_a_gpu[0] == "ops: a GPU's"
    assert of_a_gpu[2].startswith("Approximate: the step was captured without a GPU: ")


def test_control_c_ends_it_with_the_points_so_far(planner) -> None:
    def press() -> None:
        while not any(thread.name.startswith("stowage-search") for thread in enumerate()):
            time.sleep(0.05)
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGINT)

    presses = Thread(target=press)
    presses.start()
    words = ["--machine", "v100-16gb", "--budgets", "95%,80%", "--methods", "swapadvisor", "--seconds", 600, "--json"]
    answer = planner("sweep", MODEL, *words)
    presses.join()
    assert answer.status == 0
    assert answer.json["stopped"] is True
    assert len(answer.json["points"]) == 1
    assert answer.err.strip() == "stopped: these are the points so far"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--methods", "swop"], "did you mean swap"),
        (["--budgets", "50%,,60%"], "has an empty word"),
        (["--budgets", "1%"], "allow at least"),
        (["--machine", "abacus"], "abacus"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_is_answered_in_one_sentence(planner, words: list[str], says: str) -> None:
    answer = planner("sweep", MODEL, *words)
    assert (answer.status, answer.out) == (2, "")
    assert says in answer.err
