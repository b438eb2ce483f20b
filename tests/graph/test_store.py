"""Graphs as JSON: what is written is read back, and what was damaged is refused in one sentence."""

import copy
import json
import pickle
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner import StowageError
from planner.graph import check, fingerprint, from_json, load, save, to_json
from tests.effort import EFFORT
from tests.graph.graphs import graphs
from tests.graph.test_graph import small


@given(graphs())
def test_what_is_written_is_read_back(graph):
    again = from_json(to_json(graph))
    for part in ("name", "ops", "tensors", "storages", "outputs"):
        assert getattr(again, part) == getattr(graph, part)
    assert dict(again.modules) == dict(graph.modules)
    assert fingerprint(again) == fingerprint(graph)


def test_a_program_is_never_written(tmp_path):
    graph = replace(small(), program=object())
    save(graph, tmp_path / "graph.json")
    assert load(tmp_path / "graph.json").program is None


@pytest.mark.parametrize("copied", [lambda graph: pickle.loads(pickle.dumps(graph)), copy.deepcopy])
def test_a_graph_is_pickled_and_copied_as_it_is_written(copied):
    graph = replace(small(), program=lambda: None)
    assert graph.reads
    again = copied(graph)
    assert to_json(again) == to_json(graph)
    assert again.reads == graph.reads
    assert again.program is None


@given(graphs(), st.data())
@settings(max_examples=100 * EFFORT)
def test_every_cut_of_the_text_is_refused(graph, data):
    text = to_json(graph)
    with pytest.raises(StowageError, match="capture it again"):
        from_json(text[: data.draw(st.integers(0, len(text) - 1))])


def spoilt(change):
    data = json.loads(to_json(small()))
    change(data)
    return json.dumps(data)


DAMAGE = {
    "another format": (lambda d: d.update(format="onnx"), 'lacks "format"'),
    "another version": (
        lambda d: d.update(version=1),
        "has version 1 and this program reads version 3; capture it again",
    ),
    "no version": (lambda d: d.pop("version"), "has version None"),
    "no device": (lambda d: d.pop("device"), "is damaged"),
    "a number for the device": (lambda d: d.update(device=0), "is damaged"),
    "no ops": (lambda d: d.pop("ops"), "is damaged"),
    "a short row": (lambda d: d["ops"]["rows"][0].pop(), "is damaged"),
    "other columns": (lambda d: d["ops"]["columns"].reverse(), "Op columns are"),
    "no such kind": (lambda d: d["storages"]["rows"][0].__setitem__(3, "scratch"), "'scratch' is not a valid Kind"),
    "text for a number": (lambda d: d["storages"]["rows"][0].__setitem__(2, "many"), "is damaged"),
    "a contradiction": (lambda d: d["storages"]["rows"][0].__setitem__(0, 5), "storage 0 has id 5"),
    "a list for the whole": (lambda d: d.update(modules=[1]), "is damaged"),
}


@pytest.mark.parametrize(("change", "words"), DAMAGE.values(), ids=DAMAGE)
def test_damage_is_refused_in_one_sentence(change, words):
    with pytest.raises(StowageError, match=words) as caught:
        from_json(spoilt(change))
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith("capture it again")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


@given(st.data())
@settings(max_examples=250 * EFFORT)
def test_any_change_of_one_value_gives_a_sound_graph_or_one_sentence(data):
    whole = json.loads(to_json(small()))
    place = whole
    while True:
        key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        if not (isinstance(place[key], dict | list) and place[key]) or data.draw(st.integers(0, 9)) == 0:
            break
        place = place[key]
    place[key] = data.draw(VALUES)
    try:
        graph = from_json(json.dumps(whole))
    except StowageError:
        return
    assert check(graph) == []
    assert json.loads(to_json(graph)) == whole, "nothing is rounded or mended in silence"


@pytest.mark.parametrize("text", ["", "[]", "3", '"graph"', "null", "{}", "[" * 5000])
def test_text_that_is_no_graph_is_refused(text):
    with pytest.raises(StowageError, match="this is not a graph"):
        from_json(text)


def test_a_fingerprint_tells_graphs_apart_by_what_is_planned():
    graph = small()
    assert fingerprint(graph) == fingerprint(replace(graph, program=object()))
    changed = [
        replace(graph, ops=(replace(graph.ops[0], inputs=()),)),
        replace(graph, ops=(replace(graph.ops[0], first_run_only=graph.writes[0]),)),
        replace(graph, ops=(replace(graph.ops[0], draws_as=0),)),
        replace(graph, storages=(replace(graph.storages[0], bytes=16), *graph.storages[1:])),
    ]
    assert len({fingerprint(graph), *map(fingerprint, changed)}) == 5


def test_a_file_says_whose_numbers_an_op_draws_only_where_one_draws_those_of_another():
    plain = small()
    first = replace(plain.ops[0], random=True)
    again = replace(first, id=1, name="again", workspace=-1)
    for draws_as, written in ((-1, False), (0, True)):
        graph = replace(plain, ops=(first, replace(again, draws_as=draws_as)))
        text = to_json(graph)
        assert ("draws_as" in text) == written
        assert from_json(text).ops == graph.ops
    for number, words in ((-1, "no Op has a draws_as"), (1, "does not come before it")):
        data = json.loads(text)
        data["ops"]["rows"][1][-1] = number
        with pytest.raises(StowageError, match=words):
            from_json(json.dumps(data))


def test_a_failed_write_leaves_the_earlier_file(tmp_path):
    save(small(), tmp_path / "graph.json")
    before = (tmp_path / "graph.json").read_bytes()
    with pytest.raises(StowageError, match="cannot write"):
        save(small(), tmp_path / "missing" / "graph.json")
    with pytest.raises(StowageError, match="cannot read"):
        load(tmp_path / "absent.json")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(StowageError, match="not a text file"):
        load(tmp_path / "binary")
    assert (tmp_path / "graph.json").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_scratch_memory_outside_of_the_arena_is_kept_and_left_out_where_there_is_none():
    graph = small()
    outside = graph.with_scratch_outside({0: 70, 1: 90})
    assert "outside_bytes" not in to_json(graph)
    assert (
        outside.outside_bytes == from_json(to_json(outside)).outside_bytes == copy.deepcopy(outside).outside_bytes == 90
    )
    assert all(op.workspace < 0 for op in outside.ops)
    assert fingerprint(outside) == fingerprint(graph)
    assert outside.with_scratch_outside({0: 80}).outside_bytes == 90  # what was known before is needed still
    assert outside.with_scratch_outside({0: 80}, 20).outside_bytes == 100
    assert outside.with_workspaces({}).outside_bytes == 90  # as a plan that has none is looked at
    with pytest.raises(StowageError, match="-1 bytes of scratch memory outside of the arena"):
        from_json(to_json(replace(graph, outside_bytes=-1)))
