# SPDX-License-Identifier: MIT
"""The checks themselves: each defect of a broken copy is named with its page and its target."""

from __future__ import annotations

import shutil
from typing import Any

import pytest
from browsing import MODES, PHONE, Browser, Mode
from building import Site, build_site, serve
from test_links import dead_links
from test_pages import home_overflow, wrong_on

from conftest import ROOT
from course_tool.verify.rules_pages import outside_requests

CHAPTER = "chapters/01-blocking-echo.md"
CLONE_URL = "https://git.example.com/ring-by-ring.git"
# What is written into the copy's page "broken.md", and what the build has to say about it.
BROKEN_PAGE = """# A broken page

[a page](nowhere.md) and [an anchor](setup.md#nowhere)

```cpp
--8<-- "solutions/01-blocking-echo/nowhere.hpp"
```

```cpp
--8<-- "solutions/01-blocking-echo/echo.hpp:nowhere"
```

```cpp title="echo.hpp"
--8<-- "solutions/01-blocking-echo/echo.hpp:task-01-2"
```

{{ nonsense }}

{{ figure("nowhere") }}

{{ hints("01.1") }}

Words beside {{ ladder }}
"""
SENTENCES = (
    ("broken.md", "nowhere.md", "not found"),
    ("broken.md", "setup.md#nowhere", "anchor"),
    ("docs/broken.md", "solutions/01-blocking-echo/nowhere.hpp", "no such file"),
    ("docs/broken.md", "solutions/01-blocking-echo/echo.hpp:nowhere", "[start:nowhere]"),
    ("docs/broken.md", "{{ nonsense }}", "no such marker"),
    ("docs/broken.md", "line 13", 'title="solutions/01-blocking-echo/echo.hpp"'),
    ("docs/broken.md", "line 23", "stands alone"),
    ("docs/broken.md", "nowhere.svg", "there is no"),
    ("docs/broken.md", 'hints("01.1")', "only a chapter's page"),
    (f"docs/{CHAPTER}", "`## Further`", "lacks the section"),
    (f"docs/{CHAPTER}", "`## Teaching notes`", "is empty"),
    (f"docs/{CHAPTER}", "Task 01.2: Send some of it", "chapter.toml has"),
    (f"docs/{CHAPTER}", '{{ hints("01.3") }}', "lacks"),
)
UGLY_PAGE = """# An ugly page

<h1>A second title</h1>

<h4>A heading two levels down</h4>

<p style="color: #aaa">Pale words.</p>

<div style="width: 2000px">A wide box.</div>

<img src="https://example.com/tracker.png">

<figure><svg class="fig" viewBox="0 0 720 20"><text y="20" style="font-size: 9px">tiny</text></svg>
</figure>

```cpp
// LONG
```

=== "Shown"

    Words.

=== "Hidden until it is chosen"

    <p style="color: #bbb">Pale in a tab.</p>

    ``` { .sh .no-copy }
    echo "in a tab"
    ```
""".replace("LONG", "a line of code that is wider than any column of ours " * 3)
UGLINESS = (
    "2 titles",
    "stands below an h1",
    'too pale: "Pale words."',
    'wider than the screen: <div> "A wide box."',
    "https://example.com/tracker.png",
    "no words for those who cannot see it: <img",
    "no words for those who cannot see it: <svg>",
    "a drawing's text is",
    "C++ is wider than its column",
    'too pale: "Pale in a tab."',
    'code without a copy button: "echo "in a tab""',
)


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A copy of what the site is made from, with every defect at once."""
    copy = tmp_path_factory.mktemp("broken")
    shutil.copy(ROOT / "mkdocs.yml", copy)
    for folder in ("docs", "solutions", "common/tool", "tests"):
        shutil.copytree(
            ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__", "cli")
        )
    docs = copy / "docs"
    (docs / "broken.md").write_text(BROKEN_PAGE, encoding="utf-8")
    (docs / "ugly.md").write_text(UGLY_PAGE, encoding="utf-8")
    chapter = (docs / CHAPTER).read_text(encoding="utf-8")
    for old, new in (
        ("\n## Further\n", "\n"),
        ("Task 01.2: Send all of it", "Task 01.2: Send some of it"),
        ('\n{{ hints("01.3") }}\n', "\n"),
    ):
        assert chapter.count(old) == 1, f"{CHAPTER} no longer holds {old!r} once"
        chapter = chapter.replace(old, new)
    chapter = chapter.partition("\n## Teaching notes\n")[0] + "\n## Teaching notes\n\n"
    (docs / CHAPTER).write_text(chapter, encoding="utf-8")
    return build_site(copy, copy / "site", cwd=copy, clone_url=CLONE_URL)


@pytest.mark.parametrize("sentence", SENTENCES, ids=lambda words: words[1])
def test_the_build_names_page_and_target(broken: Site, sentence: tuple[str, ...]) -> None:
    said = "\n".join(broken.problems)
    assert any(all(words in line for words in sentence) for line in broken.problems), said


def test_the_address_to_clone_from_is_shown_where_one_begins(broken: Site, chromium: Any) -> None:
    with serve(broken.folder) as address:
        browser = Browser(chromium, address)
        for page in ("", "setup/"):
            with browser.visit(page) as visit:
                commands = visit.page.locator(".highlight").first.inner_text()
            assert commands.split("\n")[0] == f"git clone {CLONE_URL} ring-by-ring"
        assert not home_overflow(browser)


def test_a_dead_link_in_the_built_page_is_named(broken: Site) -> None:
    dead = [each for each in dead_links(broken) if each.startswith("broken/")]
    assert any("setup/#nowhere" in each and "no such anchor" in each for each in dead), dead


def test_an_image_of_another_host_is_named(broken: Site) -> None:
    html = (broken.folder / "ugly" / "index.html").read_text(encoding="utf-8")
    assert [url for _, url in outside_requests(html)] == ["https://example.com/tracker.png"]


@pytest.fixture(scope="module")
def ugly(broken: Site, chromium: Any) -> dict[Mode, list[str]]:
    with serve(broken.folder) as address:
        browser = Browser(chromium, address)
        return {mode: wrong_on(browser, "ugly/", mode) for mode in MODES}


@pytest.mark.parametrize("words", UGLINESS)
def test_the_browser_sees_what_is_ugly(ugly: dict[Mode, list[str]], words: str) -> None:
    seen = [line for mode, lines in ugly.items() if mode.width != PHONE[0] for line in lines]
    assert any(words in line for line in seen), f"{words!r} is not among {seen}"
