"""What partitions are compared with: layers on devices in turn, and about one worker against exactly one."""

import pytest

from planner import zoo
from planner.capture import capture
from planner.errors import StowageError
from planner.machine import op_seconds
from planner.memory import step_peak
from planner.partition import PartitionPlan, average_worker, coarsen, place_operators, recurse, worker_graph
from planner.profile import machine


def test_a_layer_is_on_one_device_and_its_update_with_it() -> None:
    graph = capture(zoo.load("mlp:layers=4,hidden=32,optimizer=adam"))
    several = machine("k80x8")
    placed = place_operators(graph, several)
    by_layer: dict[str, set[int]] = {}
    for op in graph.ops:
        if op.module.startswith("layers."):
            by_layer.setdefault(".".join(op.module.split(".")[:2]), set()).add(placed.devices[op.id])
    assert all(len(devices) == 1 for devices in by_layer.values())
    assert len(set.union(*by_layer.values())) == len(by_layer) == 4
    assert max(placed.peak_bytes) < step_peak(graph) <= sum(placed.peak_bytes) * len(several.devices)
    # a chain of layers leaves all devices but one idle, and pays for the copies
    assert placed.seconds >= op_seconds(graph, several).sum() / len(several.devices)


def test_one_device_has_nothing_to_place_on() -> None:
    with pytest.raises(StowageError, match="choose a machine with several"):
        place_operators(capture(zoo.load("mlp")), machine("v100-16gb"))


def test_an_average_worker_takes_about_what_the_exact_one_does() -> None:
    graph = capture(zoo.load("mlp:layers=2,hidden=256,batch=64"))
    found = recurse(coarsen(graph), 4)
    about = average_worker(found)
    exact = worker_graph(PartitionPlan.of(found, method="recursion"), graph, 0, progress=False)
    persistent = [sum(each.bytes for each in g.storages if each.persistent) for g in (about, exact)]
    assert persistent[0] == pytest.approx(persistent[1], rel=0.02)
    assert 0.5 * step_peak(exact) < step_peak(about) < 1.5 * step_peak(exact)
