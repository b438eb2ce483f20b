"""What a plan moves, box by box: every copy is counted once, with the box it belongs to and the box that needs it."""

from xml.etree import ElementTree

import pytest

import widgets
from planner.errors import StowageError
from tests.widgets.steps import MIB, by_hand, plan_by_hand, real, real_plan
from widgets.info import ModuleGraph, get_module_graph

SPECS = [
    "wresnet:depth=50,batch=2,image=32",
    "gpt:layers=3,optimizer=adam",
    "rnn:layers=2,hidden=64,steps=8,classes=10,batch=32",
]


def named(info: ModuleGraph) -> list[tuple[str, str, int, float, float]]:
    labels = [*(box.label for box in info.boxes), "none"]
    return [
        (labels[swap.source], labels[swap.target], swap.storages, swap.out_bytes / MIB, swap.in_bytes / MIB)
        for swap in info.swaps
    ]


def test_the_plan_by_hand() -> None:
    """The activation of `a` leaves after `b` has read it, and `b`'s gradient needs it back."""
    graph = by_hand()
    info = get_module_graph(graph, plan=plan_by_hand(graph))
    assert named(info) == [("a", "b", 1, 8, 8)]
    assert info.summary.endswith("The plan copies 8.00 MiB to the host and 8.00 MiB back.")


def test_without_a_plan_nothing_moves() -> None:
    assert get_module_graph(by_hand()).swaps == ()
    assert "host" not in get_module_graph(by_hand()).summary


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("most", [5, 20, 60])
def test_every_copy_is_counted_once(spec: str, most: int) -> None:
    graph, plan = real(spec)[1], real_plan(spec, "60%")
    info = get_module_graph(graph, most, plan)
    assert info.out_bytes == sum(graph.storages[copy.storage].bytes for copy in plan.swap_outs) > 0
    assert info.in_bytes == sum(graph.storages[copy.storage].bytes for copy in plan.swap_ins) > 0
    assert len({(swap.source, swap.target) for swap in info.swaps}) == len(info.swaps)
    for swap in info.swaps:
        assert swap.source >= 0, "every storage that is moved belongs to a module or to the batch"
        assert swap.target < 0 or not info.boxes[swap.target].opened


@pytest.mark.parametrize("spec", SPECS)
def test_what_comes_back_comes_to_the_module_of_its_next_use(spec: str) -> None:
    """RecordedMessages apart by modules alone, as the graph has them, without any box."""
    graph, plan = real(spec)[1], real_plan(spec, "60%")
    info = get_module_graph(graph, 60, plan)
    expected: dict[str, int] = {}
    for copy in plan.swap_ins:
        if copy.use < len(plan.order):
            module = graph.ops[plan.order[copy.use]].module
            expected[module] = expected.get(module, 0) + graph.storages[copy.storage].bytes
    for number, box in enumerate(info.boxes):
        if box.paths and not box.opened and number < len(info.boxes) - 1:
            inside = [m for m in expected if any(m == path or m.startswith(f"{path}.") for path in box.paths)]
            alike = [n for n, other in enumerate(info.boxes) if other.paths == box.paths]
            told = sum(swap.in_bytes for swap in info.swaps if swap.target in alike)
            assert told == sum(expected[module] for module in inside), box.paths


def test_the_drawing_says_of_every_box_what_it_moves() -> None:
    graph, plan = real(SPECS[1])[1], real_plan(SPECS[1], "60%")
    info = get_module_graph(graph, 20, plan)
    root = ElementTree.fromstring(widgets.module_graph(graph, plan, most_boxes=20).text)
    said = [element.text or "" for element in root.iter("div") if element.get("class") == "moves"]
    assert len(said) == len(info.boxes)
    moving = {swap.source for swap in info.swaps if swap.out_bytes} | {s.target for s in info.swaps if s.in_bytes}
    assert sum(map(bool, said)) == len({box for box in moving if box >= 0 and not info.boxes[box].opened}) > 3
    assert "copied to the host" in "".join(root.itertext())
    assert "copied to the host" not in widgets.module_graph(graph, most_boxes=20).text


def test_a_plan_for_another_graph_is_refused() -> None:
    with pytest.raises(StowageError, match="this plan is not for by hand"):
        get_module_graph(by_hand(), plan=real_plan(SPECS[1], "60%"))
