"""A saved page is one file of at most 2 MB that shows the workbench in any browser, without kernel or network."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page

import widgets
from planner.errors import StowageError
from planner.graph import GraphBuilder, Kind
from widgets.fallback import page_text
from widgets.fallback.header_summary import get_answers
from widgets.messages.message import Message
from widgets.messages.run_message import RunState, run_message
from widgets.messages.search_message import search_message
from widgets.panels.saving import save_html
from widgets.session import Session

SMALL = "gpt:layers=2,batch=2"
#: A real capture of 10,057 ops.
LARGE = "gpt:layers=80,hidden=64,heads=2,sequence=32,vocabulary=100,batch=2,optimizer=adam"
MOST_BYTES = 2_000_000

Planned = Callable[..., Session]


@contextmanager
def opened(browser: Browser, path: Path, scheme: str = "light", **options: bool) -> Iterator[Page]:
    """A page in a browser; nothing but the file itself may be asked for, and nothing may go wrong."""
    context = browser.new_context(color_scheme=scheme, viewport={"width": 1280, "height": 1000}, **options)
    page = context.new_page()
    page.set_default_timeout(240_000)  # on a busy machine
    wrong: list[str] = []
    asked: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda line: wrong.append(line.text) if line.type in ("error", "warning") else None)
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    if options.get("java_script_enabled", True):
        page.wait_for_selector(".sw[data-state=ready]")
    yield page
    folder = os.environ.get("STOWAGE_PICTURES")
    if folder:
        page.screenshot(path=Path(folder) / f"saved-{path.stem}-{scheme}.png", full_page=True)
    context.close()
    assert wrong == []
    assert {url for url in asked if not url.startswith(("data:", "blob:"))} == {path.as_uri()}


def test_ten_thousand_ops_are_at_most_two_megabytes_and_are_drawn(
    planned: Planned, browser: Browser, tmp_path: Path
) -> None:
    session = planned(LARGE)
    assert len(session.graph.ops) >= 10_000
    path = tmp_path / "large.html"
    save_html(session, path)
    assert path.stat().st_size <= MOST_BYTES
    with opened(browser, path) as page:
        assert page.locator(".sw-header .sw-model").inner_text() == "gpt"
        assert page.evaluate("document.fonts.status") == "loaded"


def test_it_says_what_python_says(planned: Planned, browser: Browser, tmp_path: Path) -> None:
    session = planned(SMALL)
    save_html(session, tmp_path / "small.html")
    answers = get_answers({each.kind: each for each in session.messages()})
    with opened(browser, tmp_path / "small.html") as page:
        text = page.locator(".sw-header").inner_text()
        for answer in answers:
            assert answer.question in text
            assert answer.head.removesuffix(" per step").split(" ")[0] in text
        assert page.locator(".sw-header").get_by_text(answers[2].head).count() == 1


@pytest.mark.parametrize("budget", [2**20, "least", "50%", "75%", "100%", "150%"])
def test_whether_it_fits_and_why_is_said_in_the_words_of_python(
    planned: Planned, browser: Browser, tmp_path: Path, budget: str | int
) -> None:
    if budget == "least":  # one byte less than the least, which rounds to the same amount
        machine = next(each for each in planned(SMALL).messages() if each.kind == "machine")
        budget = int(machine.content["least_bytes"]) - 1
    session = planned(SMALL, budget)
    save_html(session, tmp_path / "small.html")
    latest = {each.kind: each for each in session.messages()}
    fit, _, why = get_answers(latest)
    with opened(browser, tmp_path / "small.html") as page:
        boxes = page.locator(".sw-answer-box")
        for answer, box in ((fit, boxes.nth(0)), (why, boxes.nth(2))):
            assert box.locator(".sw-answer").inner_text().strip() == answer.head
            assert box.locator(".sw-sentence").inner_text().strip() == answer.rest
        if latest["budget"].content["verdict"] == "impossible":
            least = latest["machine"].content["least"]
            raised = f"Raise the budget to {least} or more."
            assert raised in latest["search"].content["sentence"]
            assert raised in page.locator(".sw-bottom").inner_text()
            assert boxes.nth(0).locator(".sw-use").inner_text() == f"Use {least}"


def test_what_needs_a_kernel_says_so_and_the_rest_works(planned: Planned, browser: Browser, tmp_path: Path) -> None:
    save_html(planned(SMALL), tmp_path / "small.html")
    with opened(browser, tmp_path / "small.html") as page:
        for name in ("search", "run"):
            button = page.locator(f".sw-do-{name}")
            assert button.get_attribute("aria-disabled") == "true"
            assert "no kernel" in str(button.get_attribute("title"))
        assert page.locator("input[type=range]").first.is_disabled()
        page.get_by_role("button", name="By kind").click()
        page.get_by_text("Ops", exact=True).click()
        page.get_by_role("button", name="Schedule").click()
        page.wait_for_timeout(4500)  # as long as a kernel is waited for
        assert page.get_by_text("has not answered").count() == 0


def test_colours_follow_the_system_until_one_is_chosen(planned: Planned, browser: Browser, tmp_path: Path) -> None:
    save_html(planned(SMALL), tmp_path / "small.html")
    feasibility = "() => getComputedStyle(document.querySelector('.sw')).backgroundColor"
    settled = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
    with opened(browser, tmp_path / "small.html", "dark") as page:

        def system(scheme: Literal["light", "dark"]) -> str:
            page.emulate_media(color_scheme=scheme)
            page.evaluate(settled)
            return str(page.evaluate(feasibility))

        dark, light = system("dark"), system("light")
        assert dark != light
        assert system("dark") == dark
        page.get_by_role("button", name="Light", exact=True).click()
        assert system("dark") == light
        assert system("light") == light
        page.get_by_role("button", name="Dark", exact=True).click()
        assert system("light") == dark


def test_a_panel_is_saved_alone(planned: Planned, browser: Browser, tmp_path: Path) -> None:
    view = widgets.StreamView(planned(SMALL).graph)
    view.save(tmp_path / "streams.html")
    view.close()
    with opened(browser, tmp_path / "streams.html") as page:
        assert page.locator(".sw-streams").count() == 1
        assert page.locator(".sw-memory, .sw-header").count() == 0


def test_where_no_script_runs_there_is_a_still_picture(planned: Planned, browser: Browser, tmp_path: Path) -> None:
    save_html(planned(SMALL), tmp_path / "small.html")
    with opened(browser, tmp_path / "small.html", java_script_enabled=False) as page:
        assert "Does it fit?" in page.inner_text("main")
        assert page.locator("main img").evaluate("image => image.naturalWidth") > 0


NASTY = "</script><!--<script>window.hurt = 1</script><img src=x onerror=hurt=1>{brace} ☃"


def test_names_are_shown_and_never_read_as_markup(planned: Planned, browser: Browser, tmp_path: Path) -> None:
    build = GraphBuilder(NASTY)
    build.modules |= {"": NASTY, NASTY: NASTY}
    weight = build.add_tensor(NASTY, build.add_storage(NASTY, 2**20, Kind.PARAMETER), (2**18,))
    made = build.add_tensor(NASTY + "'", build.add_storage(NASTY + "'", 2**20, Kind.OUTPUT), (2**18,))
    build.add_op(NASTY, "aten.relu.default", [weight], [made], module=NASTY)
    session = planned(build.build([made]), "100%")
    save_html(session, tmp_path / "nasty.html")
    with opened(browser, tmp_path / "nasty.html") as page:
        assert page.evaluate("window.hurt") is None
        assert page.locator(".sw-header .sw-model").inner_text() == NASTY
        assert page.title() == f"{NASTY} in Stowage"


def replaced(messages: list[Message], *news: Message) -> list[Message]:
    kinds = {each.kind for each in news}
    return [*(each for each in messages if each.kind not in kinds), *news]


def test_what_went_on_when_it_was_saved_goes_on_no_more(planned: Planned, browser: Browser, tmp_path: Path) -> None:
    searching = search_message("running", "auto", "polishing", 0.4, 3.0, 30.0, history=(), sentence="")
    running = run_message(RunState("running", "running", 0.5, 1, 3, step_seconds=[0.1], losses=[1.0]))
    path = tmp_path / "busy.html"
    path.write_text(page_text(replaced(planned(SMALL).messages(), searching, running)))
    with opened(browser, path) as page:
        text = page.inner_text(".sw")
        assert "Cancel" not in text
        assert "polishing" not in text
        page.get_by_role("tab", name="Run").click()
        assert "stopped after 1 of 3 steps" in page.inner_text(".sw")


def test_a_page_of_nothing_is_refused() -> None:
    with pytest.raises(StowageError, match="nothing to save yet"):
        page_text([])


def test_a_page_that_cannot_be_written_is_a_sentence(planned: Planned, tmp_path: Path) -> None:
    with pytest.raises(StowageError, match="cannot write"):
        save_html(planned(SMALL), tmp_path / "gone" / "page.html")
