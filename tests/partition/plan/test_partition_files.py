"""Partition plans as files: read back as they were, and refused in a sentence when they are anything else."""

import json

import pytest

from planner.capture import capture
from planner.errors import StowageError
from planner.json_fields import checksum
from planner.partition import (
    AxisDivision,
    LinearDivision,
    Partial,
    PartitionPlan,
    Reduction,
    Replicated,
    Split,
    coarsen,
    load_partition,
    partition_from_json,
    partition_to_json,
    recurse,
    save_partition,
)
from planner.zoo import load


@pytest.fixture(scope="module")
def plan():
    return PartitionPlan.of(recurse(coarsen(capture(load("mlp:batch=12,hidden=24"))), 6), method="recursion", seed=3)


def test_a_plan_is_read_back_as_it_was(plan, tmp_path):
    save_partition(plan, tmp_path / "parts.json")
    assert load_partition(tmp_path / "parts.json") == plan


def test_a_file_that_is_no_partition_is_named(tmp_path):
    other = tmp_path / "other.json"
    other.write_text("{}")
    with pytest.raises(StowageError, match=rf"^{other}: this is not a partition plan"):
        load_partition(other)


def test_every_kind_of_state_and_division_is_read_back():
    plan = PartitionPlan(
        "of a graph", (2,),
        ((Split(0, 1, 4, 2),), (Split(1, 1, 8, 1, halo=True),), (Replicated(),), (Partial(Reduction.SUM),), (None,)),
        ((AxisDivision("n", 2, 4, 1),), (LinearDivision((0, 1)),), (None,)),
        (2.5,), "joint", None, 1.0, 0.25,
    )  # fmt: skip
    assert partition_from_json(partition_to_json(plan)) == plan


def test_a_plan_without_levels_is_read_back():
    plan = PartitionPlan.of(recurse(coarsen(capture(load("mlp:batch=4,hidden=8"))), 1))
    assert plan.workers == 1
    assert partition_from_json(partition_to_json(plan)) == plan


def test_states_that_tensors_share_are_written_once(plan):
    data = json.loads(partition_to_json(plan))
    assert len(data["states"]) < len(plan.tensors) / 2
    assert len(data["tensors"]) == len(plan.tensors)


def test_a_text_that_breaks_off_anywhere_is_refused(plan):
    text = partition_to_json(plan)
    for length in (*range(0, len(text) - 1, 97), len(text) - 1):
        with pytest.raises(StowageError, match="breaks off"):
            partition_from_json(text[:length])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "breaks off"), ("[" * 100_000, "breaks off"), ("[]", "lacks"), ("3", "lacks"), ("{}", "lacks"),
        ('{"format": "stowage-plan"}', "lacks"), ('{"format": "stowage-partition"}', "version"),
        ('{"format": "stowage-partition", "version": 2}', "version 1"),
        ('{"format": "stowage-partition", "version": true}', "version"),
        ('{"format": "stowage-partition", "version": 1}', "lacks"), ('{"mesh": [], "mesh": []}', "twice"),
        ('{"format": NaN}', "NaN"), ("9" * 5000, "breaks off"),
    ],
)  # fmt: skip
def test_what_is_no_partition_plan_is_refused(text, sentence):
    with pytest.raises(StowageError, match=sentence):
        partition_from_json(text)


def test_a_plan_that_was_edited_is_refused(plan):
    for change in ({"seed": 4}, {"mesh": [2, 3]}, {"method": "other"}, {"checksum": "0"}):
        data = json.loads(partition_to_json(plan)) | change
        with pytest.raises(StowageError, match="checksum"):
            partition_from_json(json.dumps(data))


@pytest.mark.parametrize(
    "change",
    [
        {"mesh": [3, 1]}, {"mesh": [3, -2]}, {"mesh": [3, 2.0]}, {"mesh": [3, 2**40]}, {"mesh": [2] * 100_000},
        {"mesh": "32"}, {"mesh": [3]}, {"mesh": [3, True]}, {"fingerprint": 1}, {"fingerprint": "f" * 5000},
        {"method": None}, {"seed": 1.5}, {"bound": "low"}, {"bound": -1}, {"gap": -0.1}, {"bytes_per_level": [1]},
        {"bytes_per_level": [1, -1]}, {"bytes_per_level": [1, 2**80]}, {"bytes_per_level": [1, "2"]},
        {"bytes_per_level": {}}, {"tensors": [10**9]}, {"tensors": [-1]}, {"tensors": [0.0]}, {"tensors": 0},
        {"state_vectors": [[0]]}, {"state_vectors": [[0, 10**6]]}, {"state_vectors": [0]},
        {"states": [["split", 0, 1, 4]]}, {"states": [["split", 0, 1, 4, 0]]}, {"states": [["split", -1, 1, 4, 1]]},
        {"states": [["split", 0, 1, 4, 1, "ring"]]}, {"states": [["split", 0, 1, "4", 1]]},
        {"states": [["partial", "mean"]]}, {"states": [["partial"]]}, {"states": [["partial", []]]},
        {"states": [["somewhere"]]}, {"states": [[]]}, {"states": ["replicated"]}, {"states": [["replicated", 1]]},
        {"divisions": [["axis", "n", 1, 4]]}, {"divisions": [["axis", 0, 1, 4, 1]]},
        {"divisions": [["axis", "n", 1, 0, 1]]}, {"divisions": [["linear", -1]]}, {"divisions": [["linear", "0"]]},
        {"divisions": [["halves"]]}, {"ops": [10**9]}, {"division_vectors": [[]]}, {"extra": 1},
    ],
)  # fmt: skip
def test_impossible_fields_are_refused_even_with_the_right_checksum(plan, change):
    data = json.loads(partition_to_json(plan)) | change
    del data["checksum"]
    with pytest.raises(StowageError, match=r"damaged: .+; make it again"):
        partition_from_json(json.dumps(data | {"checksum": checksum(data)}))


def test_a_missing_field_is_named(plan):
    for name in json.loads(partition_to_json(plan)):
        data = json.loads(partition_to_json(plan))
        del data[name]
        with pytest.raises(StowageError, match=r"lacks|version"):
            partition_from_json(json.dumps(data))


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(StowageError, match="nothing"):
        load_partition(tmp_path / "nothing.json")
