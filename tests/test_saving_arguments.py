"""What saves something refuses arguments of other types and in another order, in one sentence."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import planner
from planner import StowageError
from planner.memory import plan_buffers
from tests.snapshot.test_comparison import step

GRAPH = step()
MACHINE = planner.machine("v100-16gb")
PLAN = planner.plan_swaps(GRAPH, MACHINE, "100%", progress=False)
BUFFERS = plan_buffers(GRAPH, PLAN)
SAVING: Any = planner  # without types, which would refuse these calls earlier
TRACE_ORDER = "the path, the graph and the plan in this order; the"


def swap_search() -> Any:
    return planner.search_swaps(GRAPH, MACHINE, "100%", evaluations=1)


def partition_search() -> Any:
    return planner.search_partition(GRAPH, workers=2, evaluations=1)


#: The call without its file, and the sentence.
CALLS: list[tuple[Callable[[Any], Any], str]] = [
    (lambda path: SAVING.plan.save_plan(path, PLAN),
     "save_plan takes the plan first, then the path; the plan must be of type SwapPlan, got str"),
    (lambda path: SAVING.plan.save_plan(PLAN, PLAN), "the path must be a str or a Path, got SwapPlan"),
    (lambda path: SAVING.plan.save_plan(PLAN, None), "the path must be a str or a Path, got None"),
    (lambda path: SAVING.plan.save_plan(GRAPH, path), "the plan must be of type SwapPlan, got Graph"),
    (lambda path: SAVING.graph.save(path, GRAPH),
     "graph.save takes the graph first, then the path; the graph must be of type Graph, got str"),
    (lambda path: SAVING.graph.save(GRAPH, 5), "the path must be a str or a Path, got int"),
    (lambda path: SAVING.partition.save_partition(PLAN, path),
     "save_partition takes the plan first, then the path; the plan must be of type PartitionPlan, got SwapPlan"),
    (lambda path: SAVING.plan.save_trace(GRAPH, PLAN, path),
     f"save_trace takes {TRACE_ORDER} path must be a str or a Path, got Graph"),
    (lambda path: SAVING.plan.save_trace(path, PLAN, GRAPH), "the graph must be of type Graph, got SwapPlan"),
    (lambda path: SAVING.plan.save_trace(path, GRAPH, PLAN, PLAN.predicted), "timelines must be a list of timelines"),
    (lambda path: SAVING.snapshot.write(path, GRAPH, None),
     f"snapshot.write takes {TRACE_ORDER} plan must be of type SwapPlan, got None"),
    (lambda path: SAVING.memory.write_buffers(BUFFERS, path),
     "write_buffers takes the path first, then the buffers; the path must be a str or a Path, got Buffers"),
    (lambda path: SAVING.memory.write_buffers(path, PLAN), "the buffers must be of type Buffers, got SwapPlan"),
    (lambda path: SAVING.memory.write_buffers(path, BUFFERS, [0]), "offsets must be a NumPy array of bytes, got list"),
    (lambda _: swap_search().save(PLAN), "save takes the path; the path must be a str or a Path, got SwapPlan"),
    (lambda _: partition_search().save(5), "save takes the path; the path must be a str or a Path, got int"),
]  # fmt: skip


@pytest.mark.parametrize(("save", "said"), CALLS)
def test_it_is_one_sentence_and_nothing_is_written(tmp_path: Path, save: Callable[[Any], Any], said: str) -> None:
    with pytest.raises(StowageError) as error:
        save(str(tmp_path / "file"))
    assert said in str(error.value)
    assert "\n" not in str(error.value)
    assert not [*tmp_path.iterdir()]
