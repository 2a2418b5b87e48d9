# SPDX-License-Identifier: MIT
"""Every page in a real browser: on a phone and on a laptop, in light and in dark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from browsing import HALVES, PHONE, Browser, Mode
from seen import Seen

from course_tool.chapters import all_chapters
from course_tool.paths import DOCS, ROOT

PAGES = sorted(
    file.relative_to(DOCS).as_posix()
    for file in DOCS.rglob("*.md")
    if not file.relative_to(DOCS).parts[0].startswith("_")
)
# At these sizes a drawing's smallest words still read.
DRAWING_TEXT_PX_MIN = 9.5
LINE_CHARACTERS_MAX = 85


def address_of(page: str) -> str:
    """setup.md is at setup/, index.md at the top."""
    path = Path(page).with_suffix("")
    return "" if page == "index.md" else f"{path.as_posix()}/"


@pytest.mark.parametrize("page", PAGES)
def test_a_page_works_on_every_screen(browser: Browser, seen: Seen, page: str) -> None:
    modes = HALVES[PAGES.index(page) % 2]

    def problems() -> list[str]:
        return [
            f"docs/{page} ({mode.name}): {each}"
            for mode in modes
            for each in wrong_on(browser, address_of(page), mode)
        ]

    seen.look(f"screens of {modes}", address_of(page), problems)


def wrong_on(browser: Browser, address: str, mode: Mode) -> list[str]:
    """Sentences about all that is wrong with a page, looked at in one mode."""
    with browser.visit(address, mode) as visit:
        wrong = _wrong(visit.audit(), mode)
        wrong += [f"asks another host for {url}" for url in visit.outside]
        return wrong + [f"the browser complains: {each}" for each in visit.complaints]


def _wrong(found: dict[str, Any], mode: Mode) -> list[str]:
    wrong = [f"too pale: {each}" for each in found["pale"]]
    wrong += [f"wider than the screen: {each}" for each in found["wide"]]
    wrong += [f"code is not clipped to its box: {each}" for each in found["unclipped"]]
    wrong += [f"has no words for those who cannot see it: {each}" for each in found["nameless"]]
    wrong += [f"code without a copy button: {each}" for each in found["uncopied"]]
    wrong += _wrong_headings(found["headings"])
    if found["overflow"] > 0:
        wrong.append(f"the page scrolls sideways, by {found['overflow']} px")
    if found["scheme"] != {"light": "default", "dark": "slate"}[mode.scheme]:
        wrong.append(f"the colors are {found['scheme']}, but the system is {mode.scheme}")
    if found["smallest"] < DRAWING_TEXT_PX_MIN:
        wrong.append(f"a drawing's text is {found['smallest']:.1f} px high")
    if mode.width != PHONE[0]:
        wrong += [f"C++ is wider than its column: {each}" for each in found["scrolling"]]
        if found["lineLength"] > LINE_CHARACTERS_MAX:
            wrong.append(f"lines have {found['lineLength']:.0f} characters")
    return wrong


def _wrong_headings(headings: list[dict[str, Any]]) -> list[str]:
    levels = [heading["level"] for heading in headings]
    wrong = [] if levels.count(1) == 1 else [f"it has {levels.count(1)} titles (h1)"]
    for before, heading in zip(levels, headings[1:], strict=False):
        if heading["level"] > before + 1:
            wrong.append(f"{heading['text']!r} (h{heading['level']}) stands below an h{before}")
    return wrong


def test_the_navigation_numbers_the_chapters_and_says_their_minutes(browser: Browser) -> None:
    with browser.visit("setup/") as visit:
        navigation = visit.page.locator(".md-nav--primary").inner_text()
    said = " ".join(navigation.split())
    for chapter in all_chapters(ROOT):
        wanted = f"{chapter.number} {chapter.title} {chapter.minutes.total} min"
        assert wanted in said, f"the navigation lacks {wanted!r}; it says: {said}"


def test_a_copy_button_copies_the_command(browser: Browser) -> None:
    with browser.visit("setup/") as visit:
        visit.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        visit.page.locator(".highlight").first.hover()
        visit.page.locator(".highlight [data-md-type=copy]").first.click()
        copied = visit.page.evaluate("navigator.clipboard.readText()")
    assert copied.strip() == "./course start\n./course serve"


def test_the_colors_can_be_chosen(browser: Browser) -> None:
    with browser.visit("") as visit:
        label = visit.page.locator("form[data-md-component=palette] label:visible")
        schemes = []
        for _ in range(3):
            label.click()
            schemes.append(visit.page.evaluate("document.body.dataset.mdColorScheme"))
    assert set(schemes) == {"default", "slate"}, f"clicking the switch gave {schemes}"


def test_home_answers_in_one_screen(browser: Browser) -> None:
    assert not home_overflow(browser)


def home_overflow(browser: Browser) -> str:
    """What will I build, for whom, how long, what do I need, show me: without scrolling."""
    with browser.visit("") as visit:
        bottoms = visit.page.evaluate(
            "[...document.querySelectorAll('.home-facts dd, .home-show .highlight')]"
            ".map(each => each.getBoundingClientRect().bottom)"
        )
    if len(bottoms) < 6:
        return "the home page lost its four facts, or what it shows"
    lowest = max(bottoms)
    return f"the first screen ends at 800 px, its content at {lowest}" if lowest > 800 else ""
