# SPDX-License-Identifier: MIT
"""A real browser loads pages from chapter 14's server: a small one, and the course's whole site."""

from __future__ import annotations

import http.client
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from browsing import DEADLINE_MS, Browser
from building import Site

from course_tool import builds, processes

SMALL = Path(__file__).parents[1] / "14-http-server" / "site"


@pytest.fixture(scope="module")
def program() -> Path:
    builds.build("release", ["14-server"])
    return builds.program("release", "14-server")


@contextmanager
def serving(program: Path, root: Path) -> Iterator[str]:
    with processes.Server([program, "--port", "0", "--root", root]) as server:
        yield f"http://{server.host}:{server.port}/"


def counters(address: str) -> dict[str, int]:
    with urllib.request.urlopen(address + "-/counters", timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    return {name: int(value) for name, value in (line.split() for line in lines)}


def test_a_page_comes_with_its_style_script_and_picture(program: Path, chromium: Any) -> None:
    with serving(program, SMALL) as address, Browser(chromium, address).visit("") as visit:
        page = visit.page
        page.wait_for_function("/^[0-9]+$/.test(document.querySelector('#requests').textContent)")
        assert page.evaluate("document.querySelector('img').naturalWidth") > 0
        assert page.evaluate("getComputedStyle(document.body).maxWidth") != "none"
        page.click("text=A page in a folder")
        page.wait_for_url("**/docs/")
        assert page.evaluate("getComputedStyle(document.body).maxWidth") != "none"
        assert visit.complaints == []


def test_a_reload_is_answered_with_304(program: Path, chromium: Any, site: Site) -> None:
    with serving(program, site.folder) as address:
        context = chromium.new_context()  # a Browser's visit looks at each request: no cache then
        try:
            page = context.new_page()
            page.set_default_timeout(DEADLINE_MS)
            page.goto(address, wait_until="load")
            before = counters(address)
            page.reload(wait_until="load")
            after = counters(address)
            assert after["answers_3xx"] > before["answers_3xx"]
            assert after["answers_4xx"] == 0
        finally:
            context.close()


def test_every_file_of_the_course_comes_whole_over_one_connection(
    program: Path, site: Site
) -> None:
    files = [file for file in sorted(site.folder.rglob("*")) if file.is_file()]
    with serving(program, site.folder) as address:
        connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=30)
        for file in files:
            name = file.relative_to(site.folder).as_posix()
            connection.request("GET", "/" + quote(name))
            answer = connection.getresponse()
            assert (answer.status, name) == (200, name)
            assert answer.read() == file.read_bytes(), name
        connection.close()
        assert counters(address)["requests"] >= len(files)


def test_the_course_is_served_by_its_own_last_server(
    program: Path, chromium: Any, site: Site
) -> None:
    names = [page.name.removesuffix("index.html") for page in site.pages()]
    read = [name for name in names if name.count("/") < 2 or name.startswith("chapters/")]
    assert "" in read and "chapters/14-http-server/" in read
    with serving(program, site.folder) as address:
        browser = Browser(chromium, address)
        for name in read:
            with browser.visit(name) as visit:
                assert visit.complaints == [], name
                assert visit.outside == [], name
        counted = counters(address)
        assert counted["answers_4xx"] == 0
        assert counted["answers_5xx"] == 0
        assert counted["refused_requests"] == 0


def test_search_and_ranges_work_from_it(program: Path, chromium: Any, site: Site) -> None:
    with (
        serving(program, site.folder) as address,
        Browser(chromium, address).visit("setup/") as visit,
    ):
        page = visit.page
        field = page.locator(".md-search__input")
        field.click()
        field.fill("ENOBUFS")
        field.press("End")  # the search runs when a key is released
        page.locator(".md-search-result__meta", has_text="matching").wait_for()
        part = page.evaluate(
            """async () => {
              const answer = await fetch("../search/search_index.json",
                                         {headers: {Range: "bytes=10-19"}});
              return [answer.status, await answer.text()];
            }"""
        )
        whole = (site.folder / "search" / "search_index.json").read_text(encoding="utf-8")
        assert part == [206, whole.encode()[10:20].decode()]
        assert visit.complaints == []
