# SPDX-License-Identifier: MIT
"""The search finds what a reader in trouble types: error codes and the tool's own messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from browsing import Browser

CODES = ("EPERM", "ENOSYS", "ENOMEM", "EINVAL", "ENOBUFS", "EMFILE", "EADDRINUSE")
WORDS = {
    "seccomp": "troubleshooting/#containers",
    "WSL": "troubleshooting/#wsl",
    "ptrace": "troubleshooting/#ptrace",
    "io_uring_disabled": "troubleshooting/#eperm",
    "memlock": "troubleshooting/#enomem",
    "There is no chapter": "reference/messages/#chapters",
    "There is no chapter 99. Try 01 to 14.": "reference/messages/#chapters",
    "COURSE_TODO": "how-a-chapter-works/",
}


Search = Callable[[str], list[str]]


@pytest.fixture(scope="module")
def search(browser: Browser) -> Iterator[Search]:
    """Types words into the search field; gives the addresses it offers, best first."""
    with browser.visit("setup/") as visit:
        field = visit.page.locator(".md-search__input")
        field.click()

        def typed(words: str) -> list[str]:
            field.fill("")
            field.press("End")  # the search runs when a key is released
            visit.page.locator(".md-search-result__meta", has_text="Type to start").wait_for()
            field.fill(words)
            field.press("End")
            visit.page.locator(".md-search-result__meta", has_text="matching").wait_for()
            links = visit.page.locator(".md-search-result__link").evaluate_all(
                "links => links.map(link => link.pathname.slice(1) + link.hash)"
            )
            return [link for link in links if link]

        yield typed


@pytest.mark.parametrize("code", CODES)
def test_an_error_code_leads_to_what_to_do(search: Search, code: str) -> None:
    found = search(code)
    wanted = f"troubleshooting/#{code.lower()}"
    assert wanted in found[:3], f"{code} finds {found[:5]}, and not {wanted} among the first three"


@pytest.mark.parametrize(("words", "wanted"), WORDS.items())
def test_words_of_a_symptom_lead_to_their_page(search: Search, words: str, wanted: str) -> None:
    found = search(words)
    assert any(each.startswith(wanted) for each in found), f"{words!r} finds {found}, not {wanted}"
