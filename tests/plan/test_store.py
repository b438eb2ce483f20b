import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import StowageError
from planner.json_fields import checksum
from planner.plan import (
    Lane,
    MemorySamples,
    SwapOut,
    load_plan,
    plan_from_json,
    plan_to_json,
    save_plan,
    validate,
)
from tests.memory.graphs import random_graph, random_order
from tests.plan.by_hand import plan, step
from tests.plan.changing import replace
from tests.plan.plans import random_plan


def test_a_plan_comes_back_as_it_was(tmp_path):
    save_plan(plan(), tmp_path / "plan.json")
    loaded = load_plan(tmp_path / "plan.json")
    assert validate(loaded, step()) == []
    assert plan_to_json(loaded) == plan_to_json(plan())
    assert loaded == plan()
    assert hash(loaded) == hash(plan())
    for name in ("graph", "queues", "order", "workspaces", "residencies", "host_residencies", "swap_outs", "swap_ins"):
        assert getattr(loaded, name) == getattr(plan(), name)
    assert (loaded.predicted.compute == plan().predicted.compute).all()
    assert loaded.predicted.sample_bytes.dtype == np.int64


def test_plans_that_differ_in_anything_are_not_equal():
    one, times = plan(), plan().predicted
    later = replace(one, predicted=replace(times, spans={lane: spans + 1 for lane, spans in times.spans.items()}))
    fewer = replace(one, predicted=replace(times, memory={}))
    more = MemorySamples(times.sample_seconds, times.sample_bytes + 1)
    others = later, fewer, replace(one, predicted=replace(times, memory={0: more})), replace(one, method="another")
    assert all(other != one for other in (*others, replace(one, peak_bytes=one.peak_bytes + 1), None))
    assert one.predicted == plan().predicted != later.predicted


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6))
def test_any_plan_comes_back_as_it_was(seed):
    graph = random_graph(seed, ops=6)
    made = random_plan(graph, random_order(graph, seed), seed)
    made = replace(made, predicted=replace(made.predicted, seconds=made.predicted.seconds * np.pi / 3))
    loaded = plan_from_json(plan_to_json(made))
    assert plan_to_json(loaded) == plan_to_json(made)
    assert loaded.predicted.seconds == made.predicted.seconds
    assert loaded.residencies == made.residencies


def test_the_lanes_of_another_device_are_only_data():
    """A queue and its times for a second device, or for a second copy engine, come back as any other."""
    more = {Lane(1, "compute", 0): (3, 1), Lane(0, "swap_out", 1): (SwapOut(5, 0, 2),)}
    spans = {lane: np.arange(2.0 * len(rows)).reshape(-1, 2) for lane, rows in more.items()}
    old = plan().predicted
    memory = {**old.memory, 1: MemorySamples(np.array([0.0, 2.0]), np.array([64, 0]))}
    predicted = replace(old, spans={**old.spans, **spans}, memory=memory)
    made = replace(plan(), queues={**plan().queues, **more}, predicted=predicted)
    loaded = plan_from_json(plan_to_json(made))
    assert loaded.queues == made.queues
    assert plan_to_json(loaded) == plan_to_json(made)
    assert loaded.predicted.memory[1].bytes.tolist() == [64, 0]
    for lane, rows in spans.items():
        assert (loaded.predicted.spans[lane] == rows).all()


def refused(text):
    with pytest.raises(StowageError) as error:
        plan_from_json(text)
    assert "\n" not in str(error.value)
    assert str(error.value).startswith("this ")
    return str(error.value)


def test_a_plan_cut_off_anywhere_is_refused():
    text = plan_to_json(plan())
    for length in range(len(text)):
        assert refused(text[:length])


def test_any_changed_digit_or_letter_is_noticed():
    text = plan_to_json(plan())
    for place, letter in enumerate(text):
        if letter.isalnum():
            other = "7" if letter != "7" else "3"
            assert refused(text[:place] + other + text[place + 1 :])


def leaves(data, path=()):
    """Where every value of parsed JSON is, lists and tables included."""
    if path:
        yield path
    for key in data if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else ():
        yield from leaves(data[key], (*path, key))


def at(data, path):
    for key in path:
        data = data[key]
    return data


SUBSTITUTES = [None, True, 1.5, 0, -1, "7", [], {}, [[0, 0]], 2**70]


def same(a, b):
    return type(a) is type(b) and a == b


def test_every_value_replaced_by_any_other_is_noticed():
    saved = plan_to_json(plan())
    for path in leaves(json.loads(saved)):
        for value in SUBSTITUTES:
            data = json.loads(saved)
            if not same(at(data, path), value):
                at(data, path[:-1])[path[-1]] = value
                assert refused(json.dumps(data))


def test_every_value_of_another_type_is_refused_even_with_a_right_checksum():
    """A stranger can compute checksums; then types are all that stands between the file and the validator."""
    saved = plan_to_json(plan())
    for path in leaves(json.loads(saved)):
        if path[0] in ("checksum", "format", "version"):
            continue
        old = at(json.loads(saved), path)
        for value in SUBSTITUTES:
            optional = path == ("host_budget_bytes",) and value is None
            if not optional and (type(value) is not type(old) or value == 2**70):
                data = json.loads(saved)
                at(data, path[:-1])[path[-1]] = value
                resigned(data)
                assert refused(json.dumps(data))


def resigned(data):
    data.pop("checksum")
    data["checksum"] = checksum(data)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda d: d.update(format="stowage-graph"), 'lacks "format": "stowage-plan"'),
        (lambda d: d.pop("format"), 'lacks "format": "stowage-plan"'),
        (lambda d: d.update(version=1), "has version '1' and this program reads version 2; make it again"),
        (lambda d: d.update(version=3), "has version '3' and this program reads version 2; make it again"),
        (lambda d: d.update(version=True), "has version 'True'"),
        (lambda d: d.pop("version"), "has version 'None'"),
        (lambda d: d.pop("residencies"), "the plan lacks residencies"),
        (lambda d: d.pop("checksum"), "the plan lacks checksum"),
        (lambda d: d.update(more=1), "has a field 'more' that this version does not know"),
        (lambda d: d["predicted"].pop("spans"), "its checksum does not match"),
        (lambda d: d.update(budget_bytes=321), "its checksum does not match"),
    ],
)
def test_what_is_wrong_is_said(change, says):
    data = json.loads(plan_to_json(plan()))
    change(data)
    assert says in refused(json.dumps(data))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda d: d["predicted"].pop("spans"), "predicted lacks spans"),
        (lambda d: d["predicted"]["spans"].pop(), "predicted.spans lacks the lane for swap-in of device 0"),
        (lambda d: d["predicted"]["memory"].pop(), "predicted.memory lacks device 0"),
        (lambda d: d["predicted"]["memory"].extend(d["predicted"]["memory"]), "predicted.memory has device 0 twice"),
        (lambda d: d["queues"].pop(0), "queues lacks the lane for compute of device 0"),
        (lambda d: d["queues"].append(d["queues"][2]), "queues has the lane for swap-in of device 0 twice"),
        (lambda d: d["queues"][0].pop("index"), "queues lacks index"),
        (
            lambda d: d["queues"][0].update(kind="collective"),
            "queues has a lane of kind 'collective', which this version",
        ),
        (lambda d: d.update(queues=[[]]), "queues holds [], which is not an object"),
        (lambda d: d["predicted"].update(more=[]), "predicted has a field 'more'"),
        (lambda d: d["residencies"][0].pop(), "residencies holds [0, 0, 7], which is not a list of 4 numbers"),
        (lambda d: d.update(budget_bytes=True), "budget_bytes holds True, which is not a whole number"),
        (lambda d: d["predicted"].update(seconds=1), "predicted.seconds holds 1, which is not a number with a decimal"),
        (lambda d: d.update(predicted=[]), "predicted is not a timeline"),
        (lambda d: d["queues"][0].update(entries={}), "queues for compute of device 0 is not a list"),
        (
            lambda d: d["queues"][1]["entries"][0].pop(),
            "queues for swap-out of device 0 holds [3, 0], which is not a list",
        ),
        (lambda d: d.update(method=5), "method holds 5, which is not text"),
        (
            lambda d: d.update(machine="x" * 10_000_000),
            "machine holds 10,000,000 characters, and no name has more than",
        ),
    ],
)
def test_a_file_with_a_right_checksum_is_not_believed_either(change, says):
    data = json.loads(plan_to_json(plan()))
    change(data)
    resigned(data)
    assert says in refused(json.dumps(data))


@pytest.mark.parametrize("name", ["machine", "method"])
def test_a_name_that_could_not_be_read_is_not_saved(name):
    assert plan_from_json(plan_to_json(replace(plan(), **{name: "x" * 1000})))
    with pytest.raises(StowageError, match=f"the plan's {name} has a name of 1,001 characters, and 1,000 can be saved"):
        plan_to_json(replace(plan(), **{name: "x" * 1001}))


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_what_is_no_number_is_refused(number):
    assert "damaged" in refused(plan_to_json(plan()).replace("[9.0,10.0]", f"[9.0,{number}]"))


@pytest.mark.parametrize("text", ["", "null", "[]", "7", "{}", '"plan"', "[" * 100_000, "{" * 10, "\x00", "9" * 10_000])
def test_other_json_is_refused(text):
    assert "not a plan" in refused(text)


def test_a_field_given_twice_is_refused():
    text = plan_to_json(plan())
    assert "twice" in refused(text[:-1] + ',"budget_bytes":320}')


def test_layout_does_not_matter():
    pretty = json.dumps(json.loads(plan_to_json(plan())), indent=2, sort_keys=True)
    assert plan_to_json(plan_from_json(pretty)) == plan_to_json(plan())


@pytest.mark.parametrize("seconds", [float("nan"), float("inf")])
def test_a_plan_without_times_is_not_saved_and_the_earlier_file_stays(tmp_path, seconds):
    save_plan(plan(), tmp_path / "plan.json")
    before = (tmp_path / "plan.json").read_bytes()
    with pytest.raises(StowageError, match="no numbers"):
        save_plan(replace(plan(), predicted=replace(plan().predicted, seconds=seconds)), tmp_path / "plan.json")
    assert (tmp_path / "plan.json").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]


def test_a_missing_file_is_a_sentence(tmp_path):
    with pytest.raises(StowageError, match="check the path"):
        load_plan(tmp_path / "none.json")
