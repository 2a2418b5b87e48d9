# SPDX-License-Identifier: MIT
"""The pages say what there is: chapters, commands, flags, messages, drawings, outputs."""

from __future__ import annotations

import re
import tomllib
from html import unescape
from pathlib import Path

import pytest
from building import Site

import chapter_page
import stubs
from course_tool.bench import claims
from course_tool.chapters import Chapter, all_chapters, find_task
from course_tool.marks import starter_text
from course_tool.paths import DOCS, ROOT

SECTIONS = [
    "outcomes",
    "start",
    "where",
    "predict",
    "background",
    "tasks",
    "checkpoint",
    "wrong",
    "questions",
    "further",
    "changed",
    "teaching",
]
TODO_LINES = re.compile(r"(\d\d\.\d).* write it at chapters/(\S+?):(\d+(?:, \d+)*)")
FLAG = re.compile(r'\.?add(?:_option)?\("(--[a-z-]+)"')


def html_of(site: Site, page: str) -> str:
    return (site.folder / page / "index.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("chapter", all_chapters(ROOT), ids=lambda chapter: chapter.folder)
def test_a_chapter_page_has_all_its_parts(site: Site, chapter: Chapter) -> None:
    html = html_of(site, f"chapters/{chapter.folder}")
    places = [html.find(f'<h2 id="{section}"') for section in SECTIONS]
    missing = [name for name, place in zip(SECTIONS, places, strict=True) if place < 0]
    assert not missing, f"{chapter.page_name} lacks the sections {missing}"
    assert places == sorted(places), f"{chapter.page_name} has its sections in another order"
    text = unescape(re.sub(r"<[^>]+>", "", html))
    for task in chapter.tasks:
        assert f'id="task-{task.id.replace(".", "-")}"' in html, f"no heading for {task.id}"
        assert f'COURSE_TODO("{task.id}")' in text, f"the stub of {task.id} is not shown"
    assert html.count('<details class="hint">') == 3 * len(chapter.tasks), "three hints a task"
    assert "is-lit" in html, "the map has no lit part"


def test_the_home_page_names_every_chapter(site: Site) -> None:
    html = (site.folder / "index.html").read_text(encoding="utf-8")
    planned = tomllib.loads((DOCS / "plan.toml").read_text(encoding="utf-8"))["chapters"]
    assert [each["number"] for each in planned] == [f"{n:02}" for n in range(1, 15)]
    for chapter in all_chapters(ROOT):
        assert f'href="chapters/{chapter.folder}/"' in html, f"no link to {chapter.folder}"
    assert html.count('class="rung coming"') == len(planned) - len(all_chapters(ROOT))


def test_the_readme_names_every_chapter() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    built = {chapter.number: chapter for chapter in all_chapters(ROOT)}
    for planned in tomllib.loads((DOCS / "plan.toml").read_text(encoding="utf-8"))["chapters"]:
        chapter = built.get(planned["number"])
        title = f"[{chapter.title}]({chapter.page_name})" if chapter else planned["title"]
        idea, state = (chapter.idea, "ready") if chapter else (planned["idea"], "coming")
        wanted = f"| {planned['number']} | {title} | {idea} | {state} |"
        assert wanted in lines, f"README.md has no line {wanted}"


def test_the_servers_page_names_every_flag_and_no_other(site: Site) -> None:
    sources = [*(ROOT / "solutions").rglob("*.[ch]pp")]
    sources += (ROOT / "common" / "runtime").glob("*.cpp")
    sources += (ROOT / "common" / "loadgen").glob("*.cpp")
    flags = {flag for source in sources for flag in FLAG.findall(source.read_text("utf-8"))}
    assert flags, "no flag was found in the sources: does FLAG still match how they are added?"
    text = (DOCS / "reference" / "servers.md").read_text(encoding="utf-8")
    described = set(re.findall(r"^\| `(--[a-z-]+)`", text, re.MULTILINE)) - {"--help"}
    assert flags - described == set(), "servers.md does not describe these flags"
    assert described - flags == set(), "servers.md describes flags that no program has"


def test_the_tool_page_has_every_command(site: Site) -> None:
    from course_tool.cli import app

    ids = {page.name: page.ids for page in site.pages()}["reference/tool/index.html"]
    for command in app.registered_commands:
        name = command.name or command.callback.__name__
        assert command.hidden or name in ids, f"reference/tool.md has no heading for {name}"


def test_lines_of_code_are_counted_and_not_typed(site: Site) -> None:
    text = "// why\n\nint a;\n  // --8<-- [start:x]\n  f();  // said behind\n#include <a>\n"
    assert chapter_page.code_lines(text) == 3
    page = unescape(re.sub(r"<[^>]+>", "", html_of(site, "chapters/04-raw-ring")))
    for name in ("cat_readv.cpp", "cat_raw.cpp", "cat_uring.cpp"):
        source = (ROOT / "solutions" / "04-raw-ring" / name).read_text(encoding="utf-8")
        whole = chapter_page.code_lines(source)
        heart = source.split("[start:read]")[1].split("// --8<-- [end:read]")[0]
        counted = rf"{name}\s+{chapter_page.code_lines(heart)}\s+{whole}\s"
        assert re.search(counted, page), f"the page has other line counts for {name}"
    assert re.search(r"cat_readv.cpp\s+\d+\s+\d+\s+none", page)
    assert re.search(r"cat_raw.cpp\s+\d+\s+\d+\s+\d+: mmap_region.hpp, raw_ring.hpp", page)


def test_the_claims_page_has_every_claim_as_it_was_last_measured(site: Site) -> None:
    """Else: ./course bench --claims --json docs/claims.json"""
    stated, found = claims.load().claims, claims.read()
    assert not found.quick
    assert [each.id for each in found.findings] == [each.id for each in stated]
    page = html_of(site, "claims")
    for claim, finding in zip(stated, found.findings, strict=True):
        said = (finding.says, finding.source, finding.command)
        assert said == (claim.says, claim.source, claim.command)
        judged = [claim, *claim.counts] if claim.experiment else claim.counts
        bounds = {(each.at_least, each.at_most) for each in finding.figures}
        wanted = {(each.at_least, each.at_most) for each in judged}
        assert wanted <= bounds, f"{claim.id} predicts something else by now"
        assert f'id="{claim.id}"' in page and claim.command in page, f"no box for {claim.id}"


def test_every_output_says_how_it_was_made() -> None:
    folder = DOCS / "outputs"
    entries = tomllib.loads((folder / "outputs.toml").read_text(encoding="utf-8"))["outputs"]
    listed = {entry["file"] for entry in entries}
    there = {file.name for file in folder.iterdir()} - {"outputs.toml"}
    assert listed == there, "docs/outputs/ and its outputs.toml differ"


@pytest.mark.parametrize(
    "file", sorted((DOCS / "outputs").glob("*.txt")), ids=lambda file: file.name
)
def test_an_output_names_lines_and_tests_as_they_are_now(file: Path) -> None:
    """Else: .venv/bin/python docs/_hooks/outputs.py NAME"""
    wrong = []
    output = file.read_text(encoding="utf-8")
    for task, name, said in TODO_LINES.findall(output):
        starter = starter_text((ROOT / "solutions" / name).read_text(encoding="utf-8"))
        lines = enumerate(starter.splitlines(), start=1)
        todos = ", ".join(str(line) for line, text in lines if f'COURSE_TODO("{task}")' in text)
        if said != todos:
            wrong.append(f"{task} is at chapters/{name}:{todos}, not at {said}")
    for task, count in re.findall(r"│ (\d\d\.\d) │.*│ *\d+ of +(\d+) │", output):
        chapter, _ = find_task(task, ROOT)
        tests = len(stubs.test_names(chapter.tests, task))
        if tests != int(count):
            wrong.append(f"{task} has {tests} tests, not {count}")
    assert not wrong, f"docs/outputs/{file.name} is out of date: {'; '.join(wrong)}"


def test_every_drawing_keeps_the_style() -> None:
    wrong = []
    for file in sorted((DOCS / "figures").glob("*.svg")):
        wrong += [f"docs/figures/{file.name} {each}" for each in _wrong_in_drawing(file)]
    assert not wrong, "\n".join(wrong)


def _wrong_in_drawing(file: Path) -> list[str]:
    svg = file.read_text(encoding="utf-8")
    wrong = []
    if not re.search(r'<svg [^>]*viewBox="0 0 720 \d+"', svg):
        wrong.append("is not 720 units wide")
    for forbidden in ("style=", "<style", 'fill="#', 'stroke="#', "font-family", "<image", "http"):
        if forbidden in svg.replace("http://www.w3.org/2000/svg", ""):
            wrong.append(f"holds {forbidden}; colors and fonts come from figures.css")
    for element in ("title", "desc"):
        if not re.search(rf'<{element} id="{element}">\s*\S', svg):
            wrong.append(f"has no <{element}> with words")
    steps = [int(number) for number in re.findall(r'id="step-(\d+)"', svg)]
    if steps != list(range(1, len(steps) + 1)):
        wrong.append(f"numbers its steps {steps}")
    return wrong


def test_ids_are_unique_on_every_page(site: Site) -> None:
    for page in site.pages():
        html = (site.folder / page.name).read_text(encoding="utf-8")
        ids = re.findall(r'\sid="([^"]+)"', html)
        twice = sorted({each for each in ids if ids.count(each) > 1})
        assert not twice, f"{page.name} has these ids twice: {twice}"
