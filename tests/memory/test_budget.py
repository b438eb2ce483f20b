import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import StowageError
from planner.memory import parse_budget
from planner.units import bytes_label, format_apart, format_bytes

GIB = 2**30


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("8GiB", 8 * GIB), ("8 gib", 8 * GIB), ("8GB", 8 * 10**9), ("512MiB", 512 * 2**20), ("1.5KiB", 1536),
        ("8e9", 8 * 10**9), ("4096", 4096), (" 7B ", 7), (".5GiB", GIB // 2), (4096, 4096), (8e9, 8 * 10**9),
        (np.int64(4096), 4096), ("2TB", 2 * 10**12), ("1TiB", 2**40),
    ],
)  # fmt: skip
def test_amounts_are_read_in_bytes(text, expected):
    assert parse_budget(text, 1) == expected


@pytest.mark.parametrize(("text", "expected"), [("50%", 500), ("100%", 1001), ("12.5 %", 125), ("200%", 2002)])
def test_a_percentage_is_of_the_steps_own_peak_and_rounds_down(text, expected):
    assert parse_budget(text, 1001) == expected


@pytest.mark.parametrize(
    "nonsense",
    [
        0, -1, "0", "-1", "-8GiB", "0%", "0.5", "lots", "8 bananas", "8G", "", "%", "nan", "inf", "1e999", "--8", "8 8",
        "1_000", "0x10", "8GB GB", "9" * 5000, math.nan, math.inf, 0.5, True, False, None, b"8GiB", [8], 10**30,
    ],
)  # fmt: skip
def test_nonsense_is_refused_in_one_sentence_that_says_what_to_write(nonsense):
    with pytest.raises(StowageError) as error:
        parse_budget(nonsense, 1000)
    assert '"8GiB"' in str(error.value)
    assert "\n" not in str(error.value)


def test_a_percentage_is_of_the_arena_and_what_lies_outside_of_it_comes_on_top():
    assert parse_budget("50%", 1000, outside_bytes=600) == 600 + 200
    assert parse_budget("100%", 1000, outside_bytes=600) == 1000
    assert parse_budget("500", 1000, outside_bytes=600) == 500
    with pytest.raises(StowageError, match="leaves no memory at all"):
        parse_budget("0%", 1000, outside_bytes=600)


def test_a_percentage_of_nothing_is_refused():
    with pytest.raises(StowageError, match="no memory"):
        parse_budget("50%", 1)


@given(st.integers(1, 2**62))
def test_a_whole_number_means_the_same_as_its_digits(amount):
    assert parse_budget(amount, 5) == parse_budget(str(amount), 5) == parse_budget(f"{amount}B", 5) == amount


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (0, "0 B"), (1, "1 B"), (1023, "1023 B"), (1024, "1 KiB"), (1536, "1.5 KiB"), (2**20 - 1, "1 MiB"),
        (1000 * 2**10, "0.98 MiB"), (999 * 2**20, "999 MiB"), (1009 * 2**20, "0.99 GiB"),
        (8 * GIB, "8 GiB"), (8 * 10**9, "7.45 GiB"), (100 * GIB, "100 GiB"), (3 * 2**40, "3 TiB"), (-2048, "-2 KiB"),
    ],
)  # fmt: skip
def test_amounts_are_written_for_people(amount, text):
    assert format_bytes(amount) == text


@given(st.integers(1, 2**50))
def test_what_is_written_can_be_read_back_to_three_digits(amount):
    assert parse_budget(format_bytes(amount), 1) == pytest.approx(amount, rel=0.006, abs=0.5)


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (308779008, "295 MiB"), (294 * 2**20, "294 MiB"), (294 * 2**20 + 1, "295 MiB"), (1023, "1023 B"),
        (1025, "1.01 KiB"), (999 * 2**10 + 1, "0.98 MiB"), (9999 * 2**30 // 1000, "10 GiB"),
    ],
)  # fmt: skip
def test_the_least_that_is_enough_is_rounded_up(amount, text):
    assert format_bytes(amount, round_up=True) == text


@given(st.integers(1, 2**50))
def test_an_amount_that_was_rounded_up_is_enough_where_it_is_typed_back(amount):
    for text in (format_bytes(amount, round_up=True), bytes_label(amount, round_up=True)):
        typed = parse_budget(text, 1)
        assert typed >= amount
        assert typed == pytest.approx(amount, rel=0.021, abs=0.5)


@given(st.lists(st.integers(0, 2**62), min_size=2, max_size=4))
def test_amounts_beside_each_other_differ_in_writing_where_they_differ(amounts):
    texts = dict(zip(amounts, format_apart(*amounts), strict=True))
    assert len(set(texts.values())) == len(set(amounts))


def test_digits_are_added_only_where_they_are_needed():
    assert format_apart(20 * 2**20, 20972672, 2**30) == ["20 MiB", "20.001 MiB", "1 GiB"]
    assert format_apart(2**62, 2**62 - 1) == [f"{2**62} B", f"{2**62 - 1} B"]
    assert format_apart(20 * 2**20, 20 * 2**20) == ["20 MiB", "20 MiB"]
