# SPDX-License-Identifier: MIT
"""Recorded runs in a browser: every step is what was drawn, whichever way leads to it."""

from __future__ import annotations

import gzip
import re
from collections.abc import Sequence
from typing import Any

import pytest
from browsing import HALVES, Browser, Mode
from building import Site
from playwright.sync_api import Page
from seen import Seen

from course_tool.paths import DOCS
from course_tool.trace import events, figure
from course_tool.trace.drawing import Drawing

KIB_MAX = 300  # of a page, with all that it loads
PING_PONG = "07-ping-pong"
# A drawing as a list of elements: tag, attributes, words of its own.
SEEN = """(svg) => [...svg.querySelectorAll("[id]")].map((each) => [
  each.tagName,
  Object.fromEntries([...each.attributes].map((one) => [one.name, one.value])),
  each.children.length ? "" : each.textContent,
])"""
PARSED = 'new DOMParser().parseFromString(markup, "image/svg+xml").documentElement'
# Words that lie on each other, or out of their drawing.
MESSY = """(svg) => {
  const frame = svg.getBoundingClientRect();
  const boxes = [...svg.querySelectorAll("text")]
    .filter((text) => text.checkVisibility() && text.textContent)
    .map((text) => ({ words: text.textContent, box: text.getBoundingClientRect() }));
  const out = boxes.filter(({ box }) => box.left < frame.left - 1 || box.right > frame.right + 1);
  const over = boxes.filter((one, i) => boxes.some((other, j) => i < j &&
    one.box.left < other.box.right - 1 && other.box.left < one.box.right - 1 &&
    one.box.top < other.box.bottom - 2 && other.box.top < one.box.bottom - 2));
  return [...out, ...over].map((each) => each.words);
}"""


def page_of(name: str) -> str:
    """The address of the page that shows a figure."""
    for page in sorted((DOCS / "chapters").glob("*.md")):
        if f'{{{{ trace("{name}") }}}}' in page.read_text(encoding="utf-8"):
            return f"chapters/{page.stem}/"
    raise AssertionError(f"no page shows docs/traces/{name}.toml")


def made(name: str) -> Drawing:
    chosen = figure.load(name)
    return figure.make(chosen, events.read(chosen.recording))


def built(page: Page, of: Drawing, step: int) -> Any:
    return page.evaluate(f"(markup) => ({SEEN})({PARSED})", of.svg(step))


def shown(page: Page, name: str, as_: str = SEEN) -> Any:
    return page.locator(f"#figure-{name} > svg").evaluate(as_)


def go(page: Page, name: str, step: int) -> None:
    page.locator(f"#figure-{name} input").evaluate(
        "(slider, step) => { slider.value = step; slider.dispatchEvent(new Event('input')); }", step
    )


@pytest.mark.parametrize("name", figure.names())
def test_every_step_is_what_was_drawn_forward_back_and_by_jump(
    browser: Browser, seen: Seen, name: str
) -> None:
    seen.look(f"steps of {name}", page_of(name), lambda: wrong_steps(browser, name))


def wrong_steps(browser: Browser, name: str) -> list[str]:
    """None, or an assertion fails: what comes after a wrong step says nothing."""
    of = made(name)
    last = len(of.captions)
    with browser.visit(page_of(name)) as visit:
        page = visit.page
        forth, back = page.locator(f"#figure-{name} button").all()[::-1]
        drawn = {step: built(page, of, step) for step in range(1, last + 1)}
        for step in range(1, last + 1):
            assert shown(page, name) == drawn[step], f"step {step}, forward"
            if step < last:
                forth.click()
        for step in range(last, 0, -1):
            assert shown(page, name) == drawn[step], f"step {step}, back"
            if step > 1:
                back.click()
        for step in (last, 1, last // 2, last - 1, 2):
            go(page, name, step)
            assert shown(page, name) == drawn[step], f"step {step}, by jump"
        return visit.complaints


@pytest.mark.parametrize("name", figure.names())
def test_every_step_can_be_read_on_every_screen(browser: Browser, seen: Seen, name: str) -> None:
    modes = HALVES[figure.names().index(name) % 2]
    what = f"reading {name} on {modes}"
    seen.look(what, page_of(name), lambda: unreadable_steps(browser, name, modes))


def unreadable_steps(browser: Browser, name: str, modes: Sequence[Mode]) -> list[str]:
    problems = []
    steps = range(1, len(made(name).captions) + 1)
    with browser.visit(page_of(name), modes[0]) as visit:
        for mode in modes:
            visit.page.set_viewport_size({"width": mode.width, "height": mode.height})
            visit.page.emulate_media(reduced_motion="reduce", color_scheme=mode.scheme)
            for step in steps:
                go(visit.page, name, step)
                messy = shown(visit.page, name, as_=MESSY)
                problems += [f"{mode.name}, step {step}: {each!r} is in the way" for each in messy]
                pale = visit.pale_in(f"#figure-{name}")
                problems += [f"{mode.name}, step {step}: {each}" for each in pale]
    return problems


def test_the_keyboard_is_enough_and_a_link_leads_to_a_step(browser: Browser) -> None:
    with browser.visit(f"{page_of(PING_PONG)}#{PING_PONG}.4") as visit:
        page = visit.page
        slider = page.locator(f"#figure-{PING_PONG} input")
        say = page.locator(f"#figure-{PING_PONG} .trace-say")
        assert slider.input_value() == "4" and say.inner_text().startswith("4 of ")
        slider.focus()
        page.keyboard.press("ArrowRight")
        assert slider.get_attribute("aria-valuetext") == f"step 5 of {slider.get_attribute('max')}"
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        assert say.inner_text().startswith("6 of ")
        assert page.locator("[aria-live]:visible").count() == 1, "the caption alone is announced"
        page.evaluate(f"location.hash = '{PING_PONG}.2'")
        page.wait_for_function(f"document.querySelector('#figure-{PING_PONG} input').value === '2'")


def test_who_wants_no_motion_gets_none(browser: Browser) -> None:
    took = f"getComputedStyle(document.querySelector('#figure-{PING_PONG} g')).transitionDuration"
    with browser.visit(page_of(PING_PONG)) as visit:
        assert visit.page.evaluate(took) != "0s"
        visit.page.emulate_media(reduced_motion="reduce")
        assert visit.page.evaluate(took) == "0s"


def test_without_a_script_one_step_and_all_captions_are_there(
    chromium: Any, address: str, site: Site
) -> None:
    of = made(PING_PONG)
    with chromium.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(address + page_of(PING_PONG))
        assert captions_and_buttons(page) == (len(of.captions), 0)
    html = (site.folder / page_of(PING_PONG) / "index.html").read_text(encoding="utf-8")
    still = of.svg(of.still)
    assert still in html, "the page holds another step than the one chosen for it"


def captions_and_buttons(page: Page) -> tuple[int, int]:
    """How many of both are visible."""
    there = page.locator(f"#figure-{PING_PONG}")
    captions = there.locator(".trace-steps > li:visible").count()
    return captions, there.locator("button:visible").count()


def test_on_paper_the_chosen_step_stands_above_all_captions(browser: Browser) -> None:
    of = made(PING_PONG)
    with browser.visit(page_of(PING_PONG)) as visit:
        page = visit.page
        go(page, PING_PONG, 3)
        page.emulate_media(media="print")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert shown(page, PING_PONG) == built(page, of, of.still)
        assert captions_and_buttons(page) == (len(of.captions), 0)
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert shown(page, PING_PONG) == built(page, of, 3)


def test_from_a_file_it_plays_as_well(chromium: Any, site: Site) -> None:
    with chromium.new_page() as page:
        page.goto((site.folder / page_of(PING_PONG) / "index.html").as_uri())
        page.locator(f"#figure-{PING_PONG} button").last.click()
        assert page.locator(f"#figure-{PING_PONG} .trace-say").inner_text().startswith("2 of ")


def test_a_page_with_a_figure_loads_within_its_limit(site: Site) -> None:
    """As a host sends it: compressed."""
    for name in {page_of(name) for name in figure.names()}:
        page = site.folder / name / "index.html"
        html = page.read_text(encoding="utf-8")
        loads = re.findall(r'<(?:script|link)[^>]*(?:src|href)="([^"#]+\.(?:js|css))"', html)
        files = [page, *(page.parent / each for each in loads)]
        size = sum(len(gzip.compress(each.read_bytes())) for each in files) / 1024
        assert size < KIB_MAX, f"{name} loads {size:.0f} KiB: {[each.name for each in files]}"
