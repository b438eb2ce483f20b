"""A run on a GPU, where the CPU stands in for one: everything but a GPU's kernels and streams."""

from __future__ import annotations

import re

from tests.gpu.program import printed_by

LOST = "; the model is as it was after step 0, as steps on a GPU are written back together"


# one test, since another process would print the same for each
def test_runs_on_a_gpu_have_eagers_bits_and_leave_everything_as_promised() -> None:
    found = printed_by("tests.gpu.running")
    for name, made in found["runs"].items():
        assert (made["device"], made["checked"], made["mismatches"]) == ("cuda", "every step", []), name
        assert made["compared"] > 20, name
        assert made["swaps"] > 0, name
        assert made["peak"], name
        assert made["pinned"] == 0, name  # nothing is left pinned
        assert re.fullmatch(r"[1-9]\d* of \d+ calls in \d+ graphs?", made["together"]), made["together"]
    for name, looped in found["loops"].items():
        assert looped == {"losses": True, "drawn": True, "different": [], "devices": ["cpu"]}, name
    late = found["late"]  # steps are written back together once the run ends
    assert late["different"] == []
    assert late["skipped"] == [[0, 1], 0]
    assert "out of memory" in late["told"]
    assert late["told"].endswith(LOST)
    assert late["changed"] == []
    assert found["driver"] == {
        "waits": True, "goes on": False, "failed": "operation not permitted when stream is capturing",
        "still recording": 0,
    }  # fmt: skip
    assert found["workbench"] == ["cuda", True, 0]
    assert found["left in the caller's stream"]
    assert "of host memory may not be pinned (CUDA's error 2); raise the limit of ulimit -l" in found["not pinned"]
    assert found["link"] == "a GPU copies at the pace of its own link: leave link_bandwidth out"
    kinds = ["kernels", "calls", "memory", "copies", "steps", "graphs", "peak"]
    assert [(name, outcome) for name, outcome, _ in found["stages"]] == [(kind, "passed") for kind in kinds]
