"""The dataflow graph: which ops hand how many bytes to which, and what Graphviz makes of it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import widgets
from planner.errors import StowageError
from planner.graph import Graph, GraphBuilder, Kind, Phase
from tests.widgets.steps import MIB, by_hand, real
from widgets.figures import _dataflow_layout
from widgets.figures.theme import DARK, LIGHT
from widgets.info import Dataflow, End, get_dataflow

GPT = "gpt:optimizer=adam"
NOTEBOOK = Path(__file__).parents[2] / "notebooks/02_the_schedule_matters.ipynb"
HOSTILE = [
    '<b onmouseover="alert(1)">x</b> & y', "<table><tr><td>cell</td></tr></table>", "{a|<f0> b}|c", "a\\nb\\N\\\\G",
    'quote " and \\" and \\', "&lt;entity&gt; &#65;", "<>", "]]>--><!--", "a -> b; digraph {", "\\", "%s $x$",
]  # fmt: skip


def five_ops() -> Graph:
    """The five ops of SwapAdvisor's first figure, as the notebook on schedules makes them."""
    build, tensor = GraphBuilder("five ops"), {}
    for name in ("A0", "A1", "A2", "A3", "A4", "A5", "W1", "W2", "W3", "W4"):
        kind = Kind.PARAMETER if name[0] == "W" else Kind.INPUT if name == "A0" else Kind.ACTIVATION
        tensor[name] = build.add_tensor(name, build.add_storage(name, MIB * (1 + (name in ("A2", "A5"))), kind), (1,))
    for line in ("Conv1 A0 W1 A1", "Conv2 A0 W2 A2", "Conv3 A2 W3 A3", "Conv4 A3 W4 A4", "Concat A1 A4 A5"):
        op, *reads, writes = line.split()
        build.add_op(op, op, [tensor[name] for name in reads], [tensor[writes]])
    return build.build([tensor["A5"]])


def flows(info: Dataflow) -> set[tuple[str, str, float]]:
    return {(info.nodes[f.source].label, info.nodes[f.target].label, f.bytes / MIB) for f in info.flows}


def drawn(graph: Graph, module: str = "", **options: Any) -> ElementTree.Element:
    return ElementTree.fromstring(widgets.dataflow(graph, module, **options)._repr_html_())


def groups(root: ElementTree.Element, kind: str) -> Iterator[list[str]]:
    """The texts of everything that is drawn of one kind."""
    for group in root.iter("g"):
        if group.get("class") == kind:
            yield [text.text or "" for text in group.findall("text")]


def test_the_five_ops_hand_on_what_the_paper_says() -> None:
    info = get_dataflow(five_ops())
    assert flows(info) == {
        ("A0", "Conv1", 1), ("A0", "Conv2", 1), ("W1", "Conv1", 1), ("W2", "Conv2", 1), ("W3", "Conv3", 1),
        ("W4", "Conv4", 1), ("Conv1", "Concat", 1), ("Conv2", "Conv3", 2), ("Conv3", "Conv4", 1),
        ("Conv4", "Concat", 1), ("Concat", "A5", 2),
    }  # fmt: skip
    assert [(end.label, end.group.value) for end in info.ends if end.leaves] == [("A5", "activations")]
    root = drawn(five_ops())
    assert sorted(groups(root, "op")) == [["Concat"], ["Conv1"], ["Conv2"], ["Conv3"], ["Conv4"]]
    assert sorted(filter(None, groups(root, "flow"))) == [
        ["A1", "1 MiB"], ["A2", "2 MiB"], ["A3", "1 MiB"], ["A4", "1 MiB"],
    ]  # fmt: skip
    assert sorted(groups(root, "end"))[0] == ["A0", "1 MiB"]
    (summary,) = (part.text for part in root if part.get("class") == "summary")
    assert summary == "5 ops; the most that one hands to another is 2.00\N{NO-BREAK SPACE}MiB, from Conv2 to Conv3."


def test_the_first_branch_is_left_of_the_second_and_what_comes_later_is_below() -> None:
    place = {}
    for group in drawn(five_ops()).iter("g"):
        if group.get("class") == "op":
            (name,), box = group.findall("text"), group.findall("rect")[0]
            place[name.text] = float(box.get("x", "")), float(box.get("y", ""))
    assert place["Conv1"][0] < place["Conv2"][0]
    assert "Conv1 is the left branch, Conv2 to Conv4 the right one." in NOTEBOOK.read_text(encoding="utf-8")
    assert place["Conv2"][1] < place["Conv3"][1] < place["Conv4"][1] < place["Concat"][1]


def test_a_module_is_drawn_with_all_its_phases_and_what_crosses_its_border() -> None:
    info = get_dataflow(by_hand(), "b")
    assert [(op.op, op.label, op.phase) for op in info.ops] == [
        (1, "mm", Phase.FORWARD), (3, "gradient", Phase.BACKWARD), (4, "update", Phase.OPTIMIZER),
    ]  # fmt: skip
    assert [op.details for op in info.ops] == [(), ("mm",), ("sub",)]
    assert flows(info) == {
        ("a/mm", "mm", 8), ("weight", "mm", 2), ("a/mm", "gradient", 8), ("gradient", "update", 2),
        ("weight", "update", 2), ("mm", "mm", 3), ("update", "weight", 2),
    }  # fmt: skip
    assert "5.00 MiB of temporary memory" in info.ops[0].description
    assert info.summary == (
        "3 ops (1 forward, 1 backward, 1 optimizer); the most that one hands to another is 2.00 MiB, "
        "from gradient to update."
    )
    assert info.phases == tuple(Phase)


@pytest.mark.parametrize("module", ["", "blocks.0", "blocks.1.attention"])
def test_every_read_of_a_drawn_op_is_in_one_flow(module: str) -> None:
    graph = real(GPT)[1]
    info = get_dataflow(graph, module, 10_000)
    inside = {op.id for op in graph.ops if not module or op.module == module or op.module.startswith(f"{module}.")}
    assert {op.op for op in info.ops} == inside
    reads = [(op, storage) for op in inside for storage in graph.reads[op]]
    into = [(info.ops[f.target].op, storage) for f in info.flows if f.target < len(info.ops) for storage in f.storages]
    assert sorted(into) == sorted(reads)
    for flow in info.flows:
        assert flow.bytes == sum(graph.storages[storage].bytes for storage in flow.storages)
        ends = [node for node in (info.nodes[flow.source], info.nodes[flow.target]) if isinstance(node, End)]
        assert [end.leaves for end in ends] in ([], [flow.target >= len(info.ops)])
    outside = {storage for op in graph.ops if op.id not in inside for storage in graph.reads[op.id]}
    for end in info.ends:
        for storage in end.storages:
            held = graph.storages[storage].live_in or storage in graph.output_storages
            assert held or storage in outside or not end.leaves


@pytest.mark.parametrize("theme", ["auto", "light", "dark"])
def test_the_picture_has_every_op_flow_phase_and_kind(theme: Any) -> None:
    graph = real("gpt")[1]
    info = get_dataflow(graph, "blocks.0", 60)
    text = widgets.dataflow(graph, "blocks.0", most_ops=60, theme=theme).text
    root = ElementTree.fromstring(text)
    assert root.get("aria-label") == info.summary
    assert len(list(groups(root, "op"))) == len(info.ops)
    assert len(list(groups(root, "end"))) == len(info.ends)
    assert len(list(groups(root, "flow"))) == len(info.flows)
    assert [f"fill:var(--phase{number})" in text for number in range(3)] == [True] * 3
    assert ("data-jp-theme-light" in text) == (theme == "auto")
    palette = DARK if theme == "dark" else LIGHT
    assert (f"--phase1:{palette.phases[Phase.BACKWARD]}" in root.get("style", "")) == (theme != "auto")
    widths = {
        (g.findtext("title"), float(path.get("stroke-width", "")))
        for g in root.iter("g") if g.get("class") == "flow" for path in g.findall("path")
    }  # fmt: skip
    assert max(width for _, width in widths) == 5
    assert {width for title, width in widths if title == "blocks.0.expand/addmm: 2.00 MiB"} == {5}
    assert {width for title, width in widths if title == "blocks.0.attention.to_qkv/addmm: 1.50 MiB"} == {3.75}


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_shown_as_they_are(name: str) -> None:
    build = GraphBuilder(name)
    path = name.replace(".", "")
    build.modules |= {"": name, path: name}
    weight = build.add_tensor(name, build.add_storage(name, 4, Kind.PARAMETER), (1,))
    first = build.add_tensor(name, build.add_storage(name, 4, Kind.ACTIVATION), (1,))
    last = build.add_tensor(name, build.add_storage(name, 4, Kind.OUTPUT), (1,))
    build.add_op("made", f"{name}.", [weight], [first], module=path)
    build.add_op(f"f/{name.replace('/', '')}", "", [first], [last])
    root = drawn(build.build([last]))
    shown = {text for kind in ("op", "end", "flow") for texts in groups(root, kind) for text in texts}

    def is_shown(text: str) -> bool:
        if len(text) <= 18:
            return text.strip() in shown
        return any(each[:8] == text[:8] and each[-7:].strip() == text[-7:].strip() for each in shown)

    assert is_shown(name.replace("/", ""))
    assert is_shown(name)
    assert is_shown(path)
    titles = [title.text or "" for title in root.iter("title")]
    assert sum(name in title for title in titles) >= 4
    assert {element.tag for element in root.iter()} <= {
        "div", "span", "i", "style", "svg", "g", "title", "rect", "path", "polygon", "text",
    }  # fmt: skip


def test_letters_that_no_page_can_show_are_replaced() -> None:
    build = GraphBuilder("control")
    out = build.add_tensor("y", build.add_storage("y\x00\x1b", 4, Kind.OUTPUT), (1,))
    build.add_op("line\nbreak\x07", "", [], [out], module="\x01")
    root = drawn(build.build([out]))
    assert ["line break\N{REPLACEMENT CHARACTER}", "\N{REPLACEMENT CHARACTER}"] in list(groups(root, "op"))


def test_too_many_ops_are_refused_with_a_module_that_fits() -> None:
    graph = real(GPT)[1]
    with pytest.raises(StowageError) as refused:
        widgets.dataflow(graph)
    told = str(refused.value)
    assert told.startswith(f"gpt:optimizer=adam has {len(graph.ops)} ops, more than 40; choose a module with fewer, ")
    assert told.endswith(", or raise most_ops")
    path, ops = re.findall(r"module='([^']+)' \((\d+) ops\)", told)[0]
    assert len(get_dataflow(graph, path).ops) == int(ops) <= 40
    inside = r"^module 'blocks.0' has \d+ ops, more than 30; choose .* module='blocks\.0\.[\w.]+' "
    with pytest.raises(StowageError, match=inside):
        widgets.dataflow(graph, "blocks.0", most_ops=30)
    with pytest.raises(StowageError, match=r"^five ops has 5 ops, more than 4; raise most_ops$"):
        widgets.dataflow(five_ops(), most_ops=4)


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(StowageError, match=r"^by hand has no module 'c'$"):
        widgets.dataflow(by_hand(), "c")
    with pytest.raises(StowageError, match=r"has no module 'block' \(did you mean blocks\?\)"):
        widgets.dataflow(real(GPT)[1], "block")
    with pytest.raises(StowageError, match=r"^most_ops must be 1 or more, got 0$"):
        widgets.dataflow(by_hand(), most_ops=0)
    with pytest.raises(StowageError, match=r"^empty runs no ops"):
        widgets.dataflow(GraphBuilder("empty").build())
    build = GraphBuilder("idle")
    build.modules |= {"": "Net", "drop": "Dropout"}
    with pytest.raises(StowageError, match=r"^module 'drop' runs no ops"):
        widgets.dataflow(build.build(), "drop")
    with pytest.raises(StowageError, match='choose "auto", "light" or "dark"'):
        widgets.dataflow(by_hand(), theme="sepia")


def test_a_picture_that_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_dataflow_layout, "_SECONDS", 0.0)
    with pytest.raises(StowageError, match="dot has not laid out 5 ops within 0 s; choose a module with fewer ops"):
        widgets.dataflow(five_ops())


def test_without_the_program_dot_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(StowageError, match=r"need the program dot, which is missing: install graphviz \(apt install"):
        widgets.dataflow(five_ops())
