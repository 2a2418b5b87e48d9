# SPDX-License-Identifier: MIT
"""A real browser, without a window, that may talk to the site's own server and to nobody else."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--metrics-recording-only",
)
DEADLINE_MS = 120_000
AUDIT = (Path(__file__).parent / "audit.js").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Mode:
    """How a reader looks at a page."""

    name: str
    width: int
    height: int
    scheme: str  # light or dark, as the reader's system says


PHONE, DESKTOP = (360, 740), (1280, 800)
MODES = (
    Mode("phone, light", *PHONE, "light"),
    Mode("phone, dark", *PHONE, "dark"),
    Mode("desktop, light", *DESKTOP, "light"),
    Mode("desktop, dark", *DESKTOP, "dark"),
)
# Either has both screens and both colors: where a thing stands depends on the screen alone, and how
# pale it is on the colors. Pages that are looked at by turns in one and the other show in all four
# modes what is common to them.
HALVES = (MODES[1:3], MODES[::3])


@dataclass
class Visit:
    """One page, looked at in one mode."""

    page: Page
    outside: list[str] = field(default_factory=list)  # addresses it wanted from another host
    complaints: list[str] = field(default_factory=list)  # errors in the browser's console

    def audit(self) -> dict[str, Any]:
        """What audit.js measures, with every folded box open and every tab shown."""
        return self.page.evaluate(AUDIT)

    def pale_in(self, selector: str) -> list[str]:
        """The words of one element that are hard to read; much quicker than all of audit()."""
        return self.page.evaluate(AUDIT, selector)["pale"]


class Browser:
    def __init__(self, chromium: Any, address: str) -> None:
        self._chromium = chromium
        self.address = address

    @contextmanager
    def visit(self, name: str, mode: Mode = MODES[2]) -> Iterator[Visit]:
        """Opens a page of the site, such as "setup/"; a request to another host fails."""
        context = self._chromium.new_context(
            viewport={"width": mode.width, "height": mode.height}, color_scheme=mode.scheme
        )
        context.set_default_timeout(DEADLINE_MS)
        visit = Visit(context.new_page())

        def answer(route: Route) -> None:
            url = route.request.url
            if url.startswith((self.address, "data:", "blob:")):
                route.continue_()
            else:
                visit.outside.append(url)
                route.abort()

        context.route("**/*", answer)
        visit.page.on("console", lambda said: _note_error(visit, said))
        visit.page.on("pageerror", lambda error: visit.complaints.append(str(error)))
        try:
            visit.page.goto(self.address + name, wait_until="load")
            yield visit
        finally:
            context.close()


def _note_error(visit: Visit, said: Any) -> None:
    if said.type in {"error", "warning"} and "net::ERR_FAILED" not in said.text:
        visit.complaints.append(said.text)


@contextmanager
def open_chromium() -> Iterator[Any]:
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.fail(f"no browser on PATH (tried {', '.join(NAMES)}): apt install chromium")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        try:
            yield chromium
        finally:
            chromium.close()
