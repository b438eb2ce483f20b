"""The page writes amounts as Python does: one must not say 36.0 MiB where the other says 36 MiB of the same budget."""

import random
import re
from itertools import product
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from planner.units import bytes_label, exact_bytes_label, format_percent, format_seconds, several
from widgets.page import bundle

UNITS = (Path(bundle.__file__).parent / "js/core/units.js").read_text()
CALL = """async ([source, name, values]) => {
  const units = await import('data:text/javascript;charset=utf-8,' + encodeURIComponent(source));
  return values.map(value => units[name](...[value].flat()));
}"""
#: Amounts at which the unit or the number of digits changes, and others.
EDGES = [0, 1, 999, 1000, 1023, 1024, 1152, 4224, 10_234, 10_235, 102_348, 102_349, 225_792, 1_023_487, 1_023_488]
BYTES = [
    *(sign * edge * 2**power for edge, power, sign in product(EDGES, (0, 10, 20, 30), (1, -1))),
    *(int(2 ** random.Random(seed).uniform(0, 45)) for seed in range(2000)),
]
_SECONDS = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0}


def in_page(browser: Browser, name: str, values: list[object]) -> list[str]:
    """What a function of the page's returns for each value."""
    page = browser.new_page()
    try:
        found: list[str] = page.evaluate(CALL, [UNITS, name, values])
    finally:
        page.close()
    return found


@pytest.mark.parametrize(("script", "python"), [("bytesText", bytes_label), ("exactBytes", exact_bytes_label)])
def test_bytes_are_written_alike(browser: Browser, script: str, python: object) -> None:
    assert callable(python)
    assert dict(zip(BYTES, in_page(browser, script, BYTES), strict=True)) == {size: python(size) for size in BYTES}


def test_counts_are_written_alike(browser: Browser) -> None:
    counts = [0, 1, 2, 999, 1000, 1500, 1_234_567]
    assert in_page(browser, "plural", [[n, "op"] for n in counts]) == [several(n, "op") for n in counts]


def test_seconds_and_shares_agree_up_to_the_digits_that_the_page_keeps(browser: Browser) -> None:
    """The page has as many decimals for every amount, so that a number that changes keeps its width."""
    seconds = [0.0, *(10 ** random.Random(seed).uniform(-6, 3) for seed in range(1000))]
    for one, shown in zip(seconds, in_page(browser, "secondsText", seconds), strict=True):
        assert amount(shown) == pytest.approx(amount(format_seconds(one)), rel=0.06)
    shares = [0.0, 1.0, *(random.Random(seed).uniform(0, 1.2) for seed in range(1000))]
    for one, shown in zip(shares, in_page(browser, "percentText", shares), strict=True):
        assert float(shown.removesuffix(" %")) == pytest.approx(float(format_percent(one).removesuffix(" %")), abs=0.56)


def amount(text: str) -> float:
    """The seconds that a text names."""
    found = re.fullmatch(r"(-?[\d.]+) (\S+)", text)
    assert found is not None, text
    return float(found[1]) * _SECONDS[found[2]]
