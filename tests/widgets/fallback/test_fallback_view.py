"""A still picture says the three answers and draws the plan, in few bytes, without script, whatever the state is."""

from __future__ import annotations

import base64
import re
import struct
import zlib
from collections.abc import Callable
from xml.etree import ElementTree as Xml

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

import widgets
from planner.graph import GraphBuilder, Kind
from planner.memory import lifetimes
from tests.widgets.fallback.test_saved_page import LARGE, NASTY, SMALL
from widgets.fallback import fallback_html, fallback_text, fallback_view
from widgets.fallback.header_summary import get_answers
from widgets.fallback.raster import blended, coverage, png
from widgets.info import get_address_map, get_fit, unswapped_peak
from widgets.messages.state_messages import budget_message, loading_message, refused_message
from widgets.session import Session

MOST_BYTES = 150_000
Planned = Callable[..., Session]


def drawing(html: str) -> Xml.Element:
    found = re.search(r"data:image/svg\+xml;base64,([^\"]+)", html)
    assert found is not None
    return Xml.fromstring(base64.b64decode(found[1]).decode())


@pytest.mark.parametrize("spec", [SMALL, LARGE])
def test_it_is_small_has_no_script_and_says_what_the_workbench_says(planned: Planned, spec: str) -> None:
    session = planned(spec)
    shown = fallback_view(session.messages())
    assert len(shown["text/html"].encode()) < MOST_BYTES
    assert not re.search(r"<script|<style|\bon\w+=|https?:", shown["text/html"])
    summary = get_address_map(session.graph, session.plan).summary
    for text in (re.sub("<[^>]+>", " ", shown["text/html"]), shown["text/plain"]):
        assert "Does it fit?" in text
        assert "Needs a plan" in text
        assert summary in text


def test_the_drawing_has_lanes_axes_and_the_budget(planned: Planned) -> None:
    words = [
        each.text
        for each in drawing(fallback_view(planned(SMALL).messages())["text/html"]).iter(
            "{http://www.w3.org/2000/svg}text"
        )
    ]
    for word in ("Addresses over time", "compute", "swap out", "swap in", "waiting", "0 ms", "parameters"):
        assert word in words
    assert any(str(word).startswith("budget 9.79") for word in words)


def test_the_unswapped_peak_that_is_blamed_is_the_peak_of_the_step(planned: Planned) -> None:
    for spec in (SMALL, LARGE):
        session = planned(spec)
        _, held = unswapped_peak(session.graph)
        live = lifetimes(session.graph).live_bytes  # the batch goes after its last use, and here it stays
        batch = sum(storage.bytes for storage in session.graph.storages if storage.kind is Kind.INPUT)
        assert live.max() <= held.sum() <= live.max() + batch


@pytest.mark.parametrize("budget", ["100%", 2**20])
def test_a_step_that_fits_and_one_that_cannot(planned: Planned, budget: str | int) -> None:
    session = planned(SMALL, budget)
    known = {each.kind: each for each in session.messages()}
    heads = [answer.head for answer in get_answers(known)]
    if budget == "100%":
        assert heads[0] == "Fits"
        assert heads[1].endswith("per step")
        assert heads[2].startswith("Activations hold ")
    else:
        assert heads == ["Cannot fit", "\N{EN DASH}", "One op is too large"]
    assert len(drawing(fallback_html(session.messages()))) > 5


def test_before_there_is_a_graph_or_a_plan_it_says_so(planned: Planned) -> None:
    loading = [loading_message("gpt", "capturing the step", 0.5, 10, 1.0)]
    assert "gpt · being captured" in fallback_text(loading)
    refused = [refused_message("This model cannot be captured", "An op depends on <data>.")]
    assert "An op depends on <data>." in fallback_text(refused)
    assert "An op depends on &lt;data&gt;." in fallback_html(refused)
    assert "no step yet" in fallback_text([])
    told = [each for each in planned(SMALL).messages() if each.kind != "plan"]
    size = next(each for each in told if each.kind == "budget").content["budget_bytes"]
    told = [each for each in told if each.kind != "budget"]
    none = budget_message(size, "swap", "none", "", "No valid plan was found yet.")
    assert "No valid plan was found yet." in fallback_text([*told, none])
    assert "<img" not in fallback_html([*told, none])


def test_names_are_text_and_empty_steps_have_a_picture(planned: Planned) -> None:
    build = GraphBuilder(NASTY)
    build.modules |= {"": NASTY, NASTY: NASTY}
    weight = build.add_tensor("w\x00\n" + NASTY, build.add_storage("w\x00\n" + NASTY, 2**20, Kind.PARAMETER), (2**18,))
    shown = fallback_html(planned(build.build([]), 2**21).messages())
    assert "<script" not in shown
    assert len(drawing(shown)) > 5
    made = build.add_tensor("made", build.add_storage("made", 0, Kind.OUTPUT), (0,))
    build.add_op(NASTY, "aten.relu.default", [weight], [made], module=NASTY)
    assert len(drawing(fallback_html(planned(build.build([made]), "100%").messages()))) > 5


def test_a_view_brings_its_picture_into_the_notebook(planned: Planned) -> None:
    view = widgets.MemoryMap(planned(SMALL).graph, machine="v100-16gb", budget="50%")
    assert view.session.plan is not None
    shown = view._repr_mimebundle_()
    assert shown is not None
    assert {"text/html", "text/plain", "application/vnd.jupyter.widget-view+json"} <= set(shown[0])
    assert "Needs a plan" in shown[0]["text/html"]
    assert shown[0]["text/plain"].startswith("gpt · ")
    view.close()


edges = some.floats(0, 1, allow_nan=False)


@settings(deadline=None, max_examples=60)
@given(some.lists(some.tuples(edges, edges, edges, edges), max_size=8))
def test_coverage_is_the_area_of_each_pixel_that_is_covered(corners: list[tuple[float, float, float, float]]) -> None:
    """Boxes side by side, so that none overlap; summed pixel by pixel."""
    width, height = 12, 7
    boxes = np.array(
        [
            (k + min(a, b), k + max(a, b), height * min(c, d), height * max(c, d))
            for k, (a, b, c, d) in enumerate(corners)
        ]
    ).reshape(-1, 4)
    expected = np.zeros((height, width))
    for left, right, top, bottom in boxes:
        for y in range(height):
            for x in range(width):
                across = max(0.0, min(right, x + 1) - max(left, x))
                expected[y, x] += across * max(0.0, min(bottom, y + 1) - max(top, y))
    assert np.allclose(coverage(boxes, width, height), expected)


def test_colours_mix_by_what_they_cover() -> None:
    half, none = np.full((1, 2), 0.6), np.zeros((1, 2))
    assert blended([(half, "#000000"), (none, "#ff0000")], "#ffffff").tolist() == [[[102] * 3, [102] * 3]]


@pytest.mark.parametrize("colours", [3, 400])
def test_an_image_is_a_png_of_its_pixels(colours: int) -> None:
    random = np.random.default_rng(0)
    palette = random.integers(0, 256, (colours, 3)).astype(np.uint8)
    palette[0] = 255
    image = palette[random.integers(0, colours, (30, 50))]
    data = base64.b64decode(png(image, "#ffffff").removeprefix("data:image/png;base64,"))
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(data):
        size, name = struct.unpack(">I4s", data[at : at + 8])
        chunks[name] = data[at + 8 : at + 8 + size]
        assert struct.unpack(">I", data[at + 8 + size : at + 12 + size])[0] == zlib.crc32(name + chunks[name])
        at += 12 + size
    width, height, _, kind = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, -1)
    assert (width, height) == (50, 30)
    assert not lines[:, 0].any()
    if kind == 3:
        table = np.frombuffer(chunks[b"PLTE"], np.uint8).reshape(-1, 3)
        assert (table[lines[:, 1:]] == image).all()
        clear = [tuple(colour) for colour, seen in zip(table.tolist(), chunks[b"tRNS"], strict=True) if not seen]
        assert clear == [(255, 255, 255)]
    else:
        assert (lines[:, 1:].reshape(height, width, 3) == image).all()
        assert chunks[b"tRNS"] == b"\x00\xff\x00\xff\x00\xff"


def test_that_a_plan_is_needed_holds_also_where_nothing_is_swapped() -> None:
    recomputing, swapping = (get_fit("swap", 60, 100, 1000, "1 B", swapped) for swapped in (0, 10))
    assert (recomputing.head, recomputing.rest) == ("Needs a plan", "40 B over")
    assert (swapping.head, swapping.rest) == ("Needs a plan", "40 B over, 10 B swapped")
