# SPDX-License-Identifier: MIT
"""Each block of code links to its file, and the file's page is the file, its tasks folded."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest
from browsing import MODES, Browser
from building import Site, build_site
from test_pages import wrong_on

import clone
from course_tool import sections
from course_tool.chapters import all_chapters
from course_tool.errors import CourseError
from course_tool.markdown import includes
from course_tool.marks import starter_text
from course_tool.paths import DOCS, ROOT

TITLE = re.compile(r'<span class="filename">(.*?)</span>')
LINK = re.compile(r'(?:edit )?<a href="(?:\.\./)*source/([^"#]+)\.html(?:#([\w-]+))?">([^<]+)</a>')
LINE = re.compile(r'<span class="line" data-line="(\d+)">(.*?)\n</span>', re.DOTALL)
A_FILE = "source/solutions/07-awaitable-io/io_queue.hpp.html"


def code_of(html: str) -> str:
    return "".join(unescape(re.sub(r"<[^>]+>", "", line)) + "\n" for _, line in LINE.findall(html))


def test_each_block_links_to_its_file_and_section(site: Site) -> None:
    pages = [*DOCS.glob("*.md"), *DOCS.glob("chapters/*.md")]
    for page in pages:
        shown = [
            (each.path, each.section)
            for each in includes(page.read_text(encoding="utf-8").split("\n"))
            if not each.path.startswith("docs/")
        ]
        name = page.relative_to(DOCS).with_suffix("")
        built = site.folder / ("index.html" if str(name) == "index" else name / "index.html")
        titles = TITLE.findall(built.read_text(encoding="utf-8"))
        links = [LINK.fullmatch(title) for title in titles]
        assert all(links), f"{page.name} has blocks without a link: {titles}"
        found = [(link[1], link[2] or "") for link in links if link and link[1] == link[3]]
        assert len(found) == len(titles), f"a link of {page.name} says another file than it opens"
        wanted = [each for each in found if not each[0].startswith("chapters/")]
        assert wanted == shown, f"{page.name} shows {shown}, and links to {wanted}"


def test_the_page_of_a_file_has_its_lines_and_numbers(site: Site) -> None:
    files = sorted((site.folder / "source").rglob("*.html"))
    assert files, "no page of a file was built"
    for file in files:
        path = file.relative_to(site.folder / "source").as_posix().removesuffix(".html")
        if path.startswith("chapters/"):
            solution = ROOT / path.replace("chapters/", "solutions/", 1)
            text = starter_text(solution.read_text(encoding="utf-8"))
        else:
            text = (ROOT / path).read_text(encoding="utf-8")
        html = file.read_text(encoding="utf-8")
        numbers = [int(number) for number, _ in LINE.findall(html)]
        assert numbers == list(range(1, len(text.splitlines()) + 1)), f"{path}: {numbers}"
        assert code_of(html) == text, f"the page of {path} is not that file"


def test_what_a_task_asks_for_is_folded(site: Site) -> None:
    """Else a look at the file around a block gives the solution away."""
    checked = 0
    for file in (site.folder / "source" / "solutions").rglob("*.html"):
        path = file.relative_to(site.folder / "source").as_posix().removesuffix(".html")
        html = file.read_text(encoding="utf-8")
        open_part = re.sub(r"<details class=\"part\".*?</details>", "", html, flags=re.DOTALL)
        seen = {int(number) for number, _ in LINE.findall(open_part)}
        for section in sections.scan((ROOT / path).read_text(encoding="utf-8"))[0]:
            if section.task:
                checked += 1
                inside = seen & set(range(section.first_line, section.last_line + 1))
                assert not inside, f"{path} shows lines {sorted(inside)} of task {section.task}"
    assert checked >= len(all_chapters(ROOT)), f"only {checked} tasks lie in files that are shown"


@pytest.mark.parametrize("page", [A_FILE, A_FILE.replace("solutions", "chapters")])
def test_the_page_of_a_file_works_on_every_screen(browser: Browser, page: str) -> None:
    problems = [f"{mode.name}: {each}" for mode in MODES for each in wrong_on(browser, page, mode)]
    assert not problems, "\n".join(problems)


def test_a_click_on_the_title_shows_the_lines_in_their_file(browser: Browser) -> None:
    with browser.visit("chapters/07-awaitable-io/") as visit:
        visit.page.locator(".filename a", has_text="solutions/07-awaitable-io").first.click()
        visit.page.wait_for_url("**/io_queue.hpp.html#deliver")
        marked = visit.page.locator(".part:target .line")
        assert "[start:deliver]" in marked.first.inner_text()
        assert marked.first.evaluate("line => line.getBoundingClientRect().top") < 800


def test_the_link_works_from_a_folder_without_a_server(site: Site, chromium: object) -> None:
    page = chromium.new_page()  # type: ignore[attr-defined]
    try:
        page.goto((site.folder / "chapters" / "07-awaitable-io" / "index.html").as_uri())
        page.locator(".filename a", has_text="io_queue.hpp").first.click()
        page.wait_for_url("file://**/io_queue.hpp.html#*")
        assert page.locator(".source .line").count() > 100
    finally:
        page.close()


def test_without_an_address_the_pages_say_whom_to_ask(site: Site) -> None:
    for name in ("index.html", "setup/index.html"):
        assert "git clone" not in (site.folder / name).read_text(encoding="utf-8")
    setup = (site.folder / "setup" / "index.html").read_text(encoding="utf-8")
    assert "the people who sent you here" in setup


@pytest.mark.parametrize("url", ["https://host/a.git", "git@host:a/b.git", "ssh://git@host/a"])
def test_an_address_is_cloned_from_first(url: str) -> None:
    commands = clone.begin({"clone_url": url}).split("\n")
    assert commands[1:3] == [f"git clone {url} ring-by-ring", "cd ring-by-ring"]


@pytest.mark.parametrize("url", ["/srv/course", "../course", "https://a b", "course"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(CourseError, match="no address to clone from"):
        clone.begin({"clone_url": url})


def test_properdocs_builds_the_same_site(site: Site, tmp_path: Path) -> None:
    """MkDocs 1.x has no maintainer. ProperDocs goes on with it, and reads the same files."""
    other = build_site(ROOT, tmp_path / "site", cwd=tmp_path, builder="properdocs")
    assert not other.problems, "\n".join(other.problems)
    ours, theirs = (
        {file.relative_to(each.folder).as_posix(): file for file in each.folder.rglob("*.html")}
        for each in (site, other)
    )
    assert set(ours) == set(theirs)
    for name, file in ours.items():
        texts = [without_builder(each.read_text("utf-8")) for each in (file, theirs[name])]
        assert texts[0] == texts[1], f"{name} differs between MkDocs and ProperDocs"


def without_builder(html: str) -> str:
    return re.sub(r'<meta name="generator"[^>]*>|<!--.*?-->', "", html, flags=re.DOTALL)
