"""Words are whole and beside each other: at the ends of axes, in titles and pickers, in boxes, in a picture."""

import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.widgets.browser.page import Shown
from tests.widgets.browser.recorded_messages import DEEP, RecordedMessages, planned, trained

Show = Callable[..., Shown]

#: What a plot writes: text, left, right, middle of each.
WRITTEN = """async host => {
  const { plot } = host;
  const found = [];
  const g = plot.data.getContext('2d');
  g.fillText = function (text, x, y) {
    const { width } = this.measureText(text);
    const left = this.textAlign === 'right' ? x - width : this.textAlign === 'center' ? x - width / 2 : x;
    found.push([text, left, left + width, y]);
  };
  plot.draw();
  await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
  delete g.fillText;
  plot.draw();
  return [found, plot.width, plot.height];
}"""
#: Left and right of every number that a time axis has, from the whole step to a thousandth of it in its middle.
NUMBERS = """({ plot }) => {
  const { axis } = plot;
  const g = plot.data.getContext('2d');
  const all = [];
  let found = [];
  g.fillText = (text, x) => found.push([x, x + g.measureText(text).width]);
  for (let k = 0; k < 500; k++) {
    found = [];
    const span = axis.end * 10 ** (-k / 166);
    axis.view((axis.end - span) / 2.3, (axis.end - span) / 2.3 + span);
    axis.paint(g, {}, 0, 10);
    all.push(found);
  }
  delete g.fillText;
  return all;
}"""
CURVE, FRONT = "search-tab .sw-col:nth-child(1)", "search-tab .sw-col:nth-child(2)"


def written(page: Shown, panel: str) -> tuple[list[list[Any]], float, float]:
    found, width, height = page.plot(panel).evaluate(WRITTEN)
    return found, width, height


def open_at(show: Show, recorded: RecordedMessages, **options: Any) -> Shown:
    page = show(**options)
    page.publish(recorded.messages)
    return page


@pytest.mark.parametrize("width", [700, 1000, 1240, 1440])
def test_no_two_numbers_of_an_axis_touch_at_any_zoom(show: Show, width: int) -> None:
    page = open_at(show, trained(), width=width)
    recorded = trained()
    for numbers in page.plot("memory").evaluate(NUMBERS):
        assert all(left[1] + 4 <= right[0] for left, right in pairwise(sorted(numbers)))
    for end in (1.0, 0.81, 0.4, 0.07):
        page.plot("memory").evaluate(
            "({ plot: { axis } }, end) => axis.view(axis.end * (1 - end) / 3, axis.end * end)", end
        )
        for panel in ("memory", "streams"):
            found, whole, _ = written(page, panel)
            axis = [one for one in found if one[0].endswith("s") and one[0][0].isdigit()]
            for left, right in pairwise(sorted(one for one in axis if one[3] == axis[0][3])):
                assert abs(left[1] - right[1]) < 0.1 or min(left[2], right[2]) + 4 <= max(left[1], right[1])
            assert max(one[2] for one in axis) <= whole
    for share in (0.5, 0.7, 0.93, 1.2, 1.9):
        machine = recorded["machine"]
        page.publish(recorded.having("machine", near_bytes=int(machine["near_bytes"] * share)).messages)
        found, whole, height = written(page, FRONT)
        row = sorted((one for one in found if one[3] > height - 20), key=lambda one: one[1])
        assert all(one[2] + 4 <= other[1] for one, other in pairwise(row))
        assert row[-1][2] <= whole


@pytest.mark.parametrize("width", [861, 1000, 1100, 1440])
def test_titles_notes_and_the_machines_name_are_whole_or_left_out(show: Show, width: int) -> None:
    recorded = trained()
    page = open_at(show, recorded.having("search", state="idle", history=[]), width=width)
    for tab in ("Search", "Plans", "Partition", "Run"):
        page.find(f"[role=tab]:text-is('{tab}')").click()
        page.settle()
        page.picture(f"whole-{tab}-{width}")
        cut = page.find(".sw-col h3").evaluate_all("""heads => heads.flatMap(head => {
          const words = document.createRange();
          words.selectNodeContents(head);
          const [box, note] = [head.getBoundingClientRect(), head.querySelector('.sw-note')];
          const at = note.getBoundingClientRect();
          const shown = at.width && at.top < box.bottom - 2;
          return shown && at.right > box.right + 0.5 ? [note.textContent] : [];
        })""")
        assert cut == []
    room = """select => {
      const [g, style] = [document.createElement('canvas').getContext('2d'), getComputedStyle(select)];
      g.font = style.font;
      return select.clientWidth - g.measureText(select.selectedOptions[0].textContent).width; }"""
    assert page.find(".sw-machine").evaluate(room) >= 24
    page.find("[role=tab]:text-is('Run')").click()
    page.settle()
    assert "prediction" in page.text(".sw-run-tab .sw-col:nth-child(2) h3")


@pytest.mark.parametrize("width", [870, 1000, 1440])
def test_the_names_of_policies_stay_in_their_column(show: Show, width: int) -> None:
    recorded = trained()
    page = open_at(show, recorded.having("search", baselines=[["save-on-cpu", 0.4752], ["schedule-first", 0.0152]],
                                     state="idle", history=[], bound_seconds=0.014), width=width)  # fmt: skip
    page.picture(f"policies-{width}")
    found, whole, _ = written(page, CURVE)
    assert any("save-on-cpu" in text for text, *_ in found)
    assert [one for one in found if one[1] < 0 or one[2] > whole] == []


@pytest.mark.parametrize("seconds", [0.0143, 0.1043, 0.3943, 104.3])
def test_the_numbers_of_a_narrow_range_of_step_times_are_whole(show: Show, seconds: float) -> None:
    search = {"baselines": [["known", seconds]], "state": "idle", "history": [], "bound_seconds": seconds * 0.979}
    recorded = trained().having("plan", step_seconds=seconds).having("search", **search)
    found, whole, _ = written(open_at(show, recorded), CURVE)
    assert any(text.endswith("s") and text[0].isdigit() for text, *_ in found)
    assert [one for one in found if one[1] < 0 or one[2] > whole] == []


def test_a_known_plan_that_is_as_fast_as_the_bound_leaves_an_axis_to_read(show: Show) -> None:
    recorded = trained()
    cost = recorded["plan"]["step_seconds"]
    search = {"state": "idle", "history": [], "bound_seconds": cost * 0.9999, "ideal_seconds": cost * 0.9999}
    page = open_at(show, recorded.having("search", baselines=[["lru-prefetch", 1.4 * cost]], **search))
    page.picture("known-at-bound")
    found, _, height = written(page, CURVE)
    labels = {text.rpartition(" ")[0].rpartition(" ")[0]: y for text, _, _, y in found}
    assert 5 < labels["lru-prefetch"] < labels["known plan"] < labels["lower bound"] < height
    assert labels["known plan"] > height / 2
    assert len([text for text, left, _, _ in found if left < 50 and text.endswith("s")]) >= 3


@pytest.mark.parametrize("width", [356, 700, 1440])
def test_the_bounds_name_stands_at_its_line_and_no_two_names_touch(show: Show, width: int) -> None:
    recorded = trained()
    bound = recorded["search"]["history"][-1][2] * 0.9999
    near = [["lru-prefetch", bound * 1.0008], ["tflms", bound * 1.0012], ["on-demand", bound * 1.2]]
    page = open_at(show, recorded.having("search", baselines=near, bound_seconds=bound), width=width)
    page.picture(f"crowded-{width}")
    found, _, height = written(page, CURVE)
    names = sorted((one for one in found if re.search(r"tflms|lru|bound|best|seconds searched|on-demand", one[0])),
                   key=lambda one: one[3])  # fmt: skip
    assert len(names) == 6
    assert all(one[3] + 14 <= other[3] for one, other in pairwise(names)), names
    line = page.plot(CURVE).evaluate("({ plot }) => plot.scaled.y(plot.store.search.bound_seconds)")
    (shown,) = (one[3] for one in names if one[0].startswith("lower bound"))
    assert abs(shown - line) < 2
    assert names[0][3] > 4
    assert names[-1][3] < height


def test_the_answers_are_whole_in_a_low_window(show: Show) -> None:
    page = open_at(show, planned(DEEP, "25%"), width=1000, height=700)
    page.picture("low")
    over = page.find(".sw-sentence").evaluate_all("""all => all.map(sentence => {
      const face = sentence.closest('.sw-face').getBoundingClientRect();
      return [face.bottom - sentence.getBoundingClientRect().bottom, sentence.scrollHeight - sentence.clientHeight];
    })""")
    assert all(below >= 4 and hidden <= 0 for below, hidden in over), over


#: Of each answer: whether it and its question are one line, what is hidden, and whether all is within the panel and
#: its parts below each other or side by side.
ANSWERS = """all => all.map(box => {
  const parts = ['.sw-question', '.sw-answer', '.sw-sentence'].map(name => box.querySelector(name));
  const boxes = parts.map(part => part.getBoundingClientRect());
  const [face, panel] = [box.getBoundingClientRect(), box.closest('.sw').getBoundingClientRect()];
  const apart = (a, b) => a.bottom <= b.top + 0.5 || b.bottom <= a.top + 0.5 || a.right <= b.left || b.right <= a.left;
  return {
    hidden: parts.map(part => Math.max(part.scrollHeight - part.clientHeight, part.scrollWidth - part.clientWidth)),
    within: boxes.every(part => part.top >= face.top && part.bottom <= face.bottom && part.right <= face.right),
    apart: apart(boxes[0], boxes[1]) && apart(boxes[1], boxes[2]) && apart(boxes[0], boxes[2]),
    lines: [boxes[0].height / 16, boxes[1].height / 24].map(Math.round),
    left: face.left - panel.left, top: face.top,
  };
})"""


@pytest.mark.parametrize("width", [332, 420, 568, 700, 861, 1008])
@pytest.mark.parametrize("least", ["swap", "device"])
def test_the_three_answers_are_whole_at_any_width(show: Show, width: int, least: str) -> None:
    recorded = planned(DEEP, "25%")
    if least == "device":
        recorded = recorded.having("machine", name="cpu", device_bytes=recorded["machine"]["step_peak_bytes"] // 5)
    page = open_at(show, recorded, width=width + 24)
    page.picture(f"answers-{least}-{width}")
    answers = page.find(".sw-answer-box").evaluate_all(ANSWERS)
    for one in answers:
        assert max(one["hidden"]) <= 0, answers
        assert one["within"], answers
        assert one["apart"], answers
        assert one["lines"][0] == 1, "a question on one line"
    below = [one["top"] for one in answers]
    if width < 600:
        assert {round(one["left"]) for one in answers} == {round(answers[0]["left"])}
        assert below == sorted(set(below)), "one below the other"
    else:
        assert len(set(below)) == 1, "beside each other"


#: What is selected: whether its name is whole, and the facts that are not to be seen, scrolled to where that is needed.
SAID = """line => {
  const name = line.querySelector('.name');
  const panel = line.closest('.sw-selection').getBoundingClientRect();
  const hidden = [...line.querySelectorAll('.name, .facts > span, .why')].filter(part => {
    if (!part.textContent) return false;
    part.scrollIntoView({ block: 'nearest' });
    const [at, box] = [part.getBoundingClientRect(), line.getBoundingClientRect()];
    return !at.width || at.top < box.top - 0.5 || at.bottom > box.bottom + 0.5 || at.right > box.right + 0.5
      || box.bottom > panel.bottom;
  });
  line.scrollTop = 0;
  return [name.scrollWidth <= name.clientWidth, hidden.map(part => part.textContent)];
}"""


@pytest.mark.parametrize("width", [332, 568, 676, 976, 1416])
def test_every_fact_of_what_is_selected_can_be_read(show: Show, width: int) -> None:
    recorded = trained()
    page = open_at(show, recorded, width=width + 24)
    graph, plan = recorded.columns("graph"), recorded.columns("plan")
    once = [storage for storage in set(plan["residency_storage"]) if (plan["residency_storage"] == storage).sum() == 1]
    height = page.find(".sw-selection").evaluate("bar => bar.offsetHeight")
    whys = set()
    for storage in sorted(once, key=lambda one: -graph["storage_bytes"][one])[:12]:
        page.plot("memory").evaluate(
            "({ plot: { store } }, id) => store.set({ selection: { type: 'storage', id } })", int(storage)
        )
        page.settle()
        whole, hidden = page.find(".sw-selection .line").evaluate(SAID)
        assert whole
        assert hidden == []
        assert page.find(".sw-selection").evaluate("bar => bar.offsetHeight") == height
        text = page.selected()
        assert len(re.findall(r"\bstays\b", text)) <= 1, text
        whys |= {why for why in ("kept because",) if why in text}
        page.picture(f"selected-{width}")
    assert whys == {"kept because"}


def test_in_a_notebook_on_a_laptop_all_of_it_is_in_view(show: Show) -> None:
    page = open_at(show, trained(), width=1440, height=900)
    box = page.find(".sw").bounding_box()
    assert box is not None
    assert box["height"] <= 779  # what JupyterLab's own bars leave
    page.find("[role=tab]:text-is('Run')").click()
    page.settle()
    page.picture("laptop-run")
    over = page.find(".sw-run-cols .sw-col").evaluate_all("all => all.map(one => one.scrollHeight - one.clientHeight)")
    assert all(each <= 0 for each in over)


def test_a_box_is_named_with_its_module_or_not_at_all(show: Show) -> None:
    page = open_at(show, planned("mlp:layers=3,optimizer=adam", "60%"))
    seen = []
    for zoom in (1.0, 0.5, 0.2, 0.05):
        page.plot("memory").evaluate("({ plot: { axis } }, to) => axis.view(0, axis.end * to)", zoom)
        seen += [text for text, *_ in written(page, "memory")[0]]
    assert any("." in text and "weight" in text for text in seen)
    alone = [text for before, text in pairwise(seen) if text in {"weight", "grad", "weight.grad"} and "." not in before]
    assert alone == []


def test_a_search_goes_through_names_before_classes_and_marks_what_is_found_in_all_plots(show: Show) -> None:
    recorded = planned("wresnet:depth=50,batch=4,image=64", "100%")
    page = open_at(show, recorded)
    before = [page.pixels(panel) for panel in ("memory", "streams")]
    page.find("input[type=search]").fill("conv2")
    page.settle()
    paths, kinds = recorded["graph"]["module_paths"], recorded["graph"]["module_kinds"]
    places = page.plot("graph").evaluate("host => host.plot.search.places")
    named = [paths[place].rpartition(".")[2] == "conv2" for place in places]
    assert sum(named) > 10
    assert named == sorted(named, reverse=True)
    assert any(kinds[place] == "Conv2d" and "conv2" not in paths[place] for place in places)
    assert "conv2" in page.text(".sw-graph [role=status]").rpartition(": ")[2]
    found = "host => [...host.plot.store.found.ops]"
    marked = page.plot("memory").evaluate(found)
    op_module, op_source = recorded.columns("graph")["op_module"], recorded.columns("graph")["op_source"]
    assert {op for op in range(len(op_module)) if "conv2" in paths[op_module[op]]} <= set(marked)
    assert [page.pixels(panel) != old for panel, old in zip(("memory", "streams"), before, strict=True)] == [True] * 2
    line = recorded["graph"]["sources"][op_source[0]]
    page.find("input[type=search]").fill(line)
    page.settle()
    assert sorted(page.plot("memory").evaluate(found)) == np.flatnonzero(op_source == op_source[0]).tolist()
    page.find("input[type=search]").fill("")
    page.settle()
    assert [page.pixels(panel) for panel in ("memory", "streams")] == before


def test_a_picture_of_the_graph_has_all_of_its_boxes(show: Show, tmp_path: Path) -> None:
    page = open_at(show, planned())
    shown = page.plot("graph").bounding_box()
    whole = page.plot("graph").evaluate("host => host.plot.view.tree.height")
    assert shown is not None
    assert whole > shown["height"]
    page.find(".sw-do-export").click()
    with page.page.expect_download() as waiting:
        page.find(".sw-export [aria-label='Graph, PNG']").click()
    waiting.value.save_as(tmp_path / "graph.png")
    height = int.from_bytes((tmp_path / "graph.png").read_bytes()[20:24])  # where a PNG says it
    assert height / 2 >= whole
    after = page.plot("graph").bounding_box()
    assert after == shown
