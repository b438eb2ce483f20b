"""Memory of a GPU that a run takes beside its arena is planned for, counted, and kept within the budget."""

from __future__ import annotations

import re
from pathlib import Path

from tests.gpu.accounting import BUDGET, KEPT, OTHERS, OWN_LIMIT, SCRATCH
from tests.gpu.program import printed_by

PLAN_FOR = r'plan for the graph that planner.profile.prepare\(step, "auto"\) returns'
ROOM = "30 MiB of temporary memory"


# one test, since another process would print the same for each
def test_temporary_memory_and_what_libraries_keep_are_within_the_budget_and_the_allocator_is_held_to_it(
    tmp_path: Path,
) -> None:
    found = printed_by("tests.gpu.accounting", XDG_CACHE_HOME=str(tmp_path))
    planned = found["planned"]
    assert planned["counted"] == SCRATCH + KEPT
    assert planned["workspaces"] == 0
    assert planned["budget"] == BUDGET
    assert (planned["total"], planned["library"]) == (SCRATCH + KEPT, KEPT)
    assert planned["within"]
    assert planned["arena"] < BUDGET - SCRATCH - KEPT
    gpu = planned["gpu"]  # what is in use on the whole GPU, and by whom
    assert (gpu["arena"], gpu["libraries"], gpu["others"]) == (planned["arena"], KEPT, OTHERS)
    assert 0 <= gpu["temporaries"] <= SCRATCH  # seen when an op runs, or between two
    assert 0 <= gpu["rounding"] < 24 * 2**20
    shown = planned["shown"]  # by `planner run`
    assert shown["library_bytes"] == KEPT
    assert {name: shown[f"gpu_{name}_bytes"] for name in gpu} == gpu
    assert shown["step_peak_bytes"] == planned["step peak"]
    refused, arena = found["refused"], found["refused"]["arena"]
    assert refused["room"] == refused["room for libraries"] == ""
    assert re.search(f"this plan has an arena of 31.2 MiB, and on cuda its ops take up to {ROOM} beside it: 30 MiB "
                     f"more than its budget of 31.2 MiB; {PLAN_FOR}", refused["in the arena"])  # fmt: skip
    assert re.search(f"addmm takes {ROOM} here, beside an arena of .*: 1 B more than the plan's budget .*; "
                     f"{PLAN_FOR}, which counts that, or allow at least {arena + SCRATCH} bytes",
                     refused["no room"])  # fmt: skip
    assert re.search(f"libraries keep 8 MiB of the GPU's memory here, beside an arena of .* and up to {ROOM}: 1 B more "
                     f"than .*; {PLAN_FOR}, which counts that, or allow at least {arena + SCRATCH + KEPT} bytes",
                     refused["no room for libraries"])  # fmt: skip
    enough, too_little = refused["together"]  # graphs have their temporary memory apart from that of other calls
    assert re.fullmatch(r"[1-9]\d* of \d+ calls in \d+ graphs?", enough)
    assert too_little == "none, as their temporary memory, apart from that of other calls, goes 1 B over the budget"
    capped = found["capped"]
    assert capped["step"]
    assert capped["steps"] > 100
    assert capped["beside others"] == ""  # what the program itself takes between two steps is no fault of the plan
    assert capped["eager"] == [1.0, 1.0]  # eager PyTorch takes memory of its own
    assert (capped["after"], capped["after refusing"]) == (1.0, 1.0)
    assert re.search(r"aten\.\S+\) in .* found too little GPU memory beside the arena of .* of step 2, where the "
                     f"plan's budget is .*: allow more, {PLAN_FOR}", capped["grows"])  # fmt: skip
    assert capped["mine"] == [[OWN_LIMIT], OWN_LIMIT]  # a lower limit of the program's own stays
    assert found["left"] == 0
