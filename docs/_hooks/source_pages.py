# SPDX-License-Identifier: MIT
"""The files that the pages show parts of, as pages of the site: each block links to its own.

They lie under source/ in the built site, so that a link to them leaves no machine and needs no
server. What a task asks for is folded: a look at a file does not give its solution away.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_for_filename
from pygments.util import ClassNotFound

import stubs
from course_tool import sections
from course_tool.chapters import all_chapters
from course_tool.markdown import includes

FOLDER = "source"
PLACE = '<div class="source-place"></div>'
# A page's title of a block, while it is Markdown: the file, and behind the # what of it is shown.
TITLE = re.compile(
    r'<span class="filename">(?P<before>(?:edit )?)(?P<path>[\w./-]+)#(?P<part>[\w-]*)</span>'
)


@dataclass(frozen=True)
class Part:
    """Some lines of a file that a link leads to."""

    name: str  # its id: that of the section, or task-NN-K in a starter
    first: int  # lines, counted from 1
    last: int
    task: str = ""  # "01.2" where the lines are what the task asks for


@dataclass
class Shown:
    """A file of the clone that is a page of the site."""

    path: str  # from the clone's root
    text: str
    parts: list[Part]
    starter: bool
    pages: list[tuple[str, str]] = field(default_factory=list)  # (source, title) that link here


class SourcePages:
    """Filled when MkDocs collects its files, asked while it renders the pages."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._shown: dict[str, Shown] = {}  # by the address of the page in docs/
        self._files: dict[str, File] = {}  # by the path in the clone

    def add_to(self, files: Any, config: Any) -> None:
        """One page for each file that a page includes, and for each starter."""
        self._shown, self._files = {}, {}
        for shown in _all_shown(self._root, files.documentation_pages()):
            page = f"{FOLDER}/{shown.path}.md"
            file = File.generated(config, page, content=_markdown(shown))
            file.dest_uri = f"{FOLDER}/{shown.path}.html"  # with a suffix: file:// opens no folder
            files.append(file)
            self._shown[page] = shown
            self._files[shown.path] = file

    def fill(self, html: str, page: str) -> str:
        """Puts the code into a page of ours; others stay as they are."""
        shown = self._shown.get(page)
        return html.replace(PLACE, _listing(shown)) if shown else html

    def link(self, html: str, url: str) -> str:
        """Turns the title of each block into a link; a page at `url` holds it."""

        def linked(title: re.Match[str]) -> str:
            path, before = title["path"], title["before"]
            file = self._files.get(path)
            if file is None:
                return f'<span class="filename">{before}{path}</span>'
            anchor = f"#{title['part']}" if title["part"] else ""
            folder = posixpath.dirname(url) or "."
            target = posixpath.relpath(file.url, folder) + anchor
            return f'<span class="filename">{before}<a href="{escape(target)}">{path}</a></span>'

        return TITLE.sub(linked, html)


def name_sections(markdown: str, problems: list[str]) -> str:
    """Writes the section behind each title, for link(); a title that names no file is a problem."""
    lines = markdown.split("\n")
    for each in includes(lines):
        if each.path.startswith("docs/"):
            continue
        title = f'title="{each.path}"'
        if title not in lines[each.line - 2]:
            problems.append(f"line {each.line - 1}: the block lacks its file, {title}.")
            continue
        named = f'title="{each.path}#{each.section}"'
        lines[each.line - 2] = lines[each.line - 2].replace(title, named)
    return "\n".join(lines)


def stub_title(path: str, task: str) -> str:
    """The title of a task's stub, in the same form."""
    return f"edit {path}#{_task_id(task)}"


def _task_id(task: str, place: int = 0) -> str:
    return "task-" + task.replace(".", "-") + ("" if place == 0 else chr(ord("a") + place))


def _all_shown(root: Path, pages: Sequence[File]) -> Iterator[Shown]:
    shown: dict[str, Shown] = {}
    for page in sorted(pages, key=lambda page: page.src_uri):
        text = page.content_string
        found = re.search(r"^# (.+)$", text, re.MULTILINE)
        by = (page.src_uri, found[1] if found else page.name)
        for each in includes(text.split("\n")):
            file = root / each.path
            if each.path.startswith("docs/") or not file.is_file():
                continue
            if each.path not in shown:
                shown[each.path] = _solution(each.path, file.read_text(encoding="utf-8"))
            if by not in shown[each.path].pages:
                shown[each.path].pages.append(by)
    yield from shown.values()
    for chapter in all_chapters(root):
        page_name = chapter.page_name.removeprefix("docs/")
        for name in chapter.files if chapter.page.is_file() else ():
            path = f"chapters/{chapter.folder}/{name}"
            source = (chapter.solution / name).read_text(encoding="utf-8")
            yield _starter(path, sections.starter_text(source), (page_name, chapter.title))


def _solution(path: str, text: str) -> Shown:
    found = sections.scan(text)[0] if Path(path).suffix in sections.CPP_SUFFIXES else []
    parts = [Part(each.name, each.first_line, each.last_line, each.task or "") for each in found]
    return Shown(path, text, parts, starter=False)


def _starter(path: str, text: str, page: tuple[str, str]) -> Shown:
    parts: list[Part] = []
    places: dict[str, int] = {}
    for task, first, last in stubs.places(text):
        place = places[task] = places.get(task, -1) + 1
        if not parts or first > parts[-1].last:  # two places of one function are one part
            parts.append(Part(_task_id(task, place), first, last))
    return Shown(path, text, parts, starter=True, pages=[page])


def _markdown(shown: Shown) -> str:
    """The page around the code; fill() puts that in, so that Markdown does not read it."""
    up = "../" * shown.path.count("/") + "../"
    pages = ", ".join(f"[{title}]({up}{page})" for page, title in shown.pages)
    if shown.starter:
        about = f"This file is `{shown.path}` in your clone, before you write its first task."
    else:
        about = f"This file is `{shown.path}` in your clone."
        if any(part.task for part in shown.parts):
            about += " The lines that a task asks for are folded."
    return (
        f"---\ntitle: {Path(shown.path).name}\nhide: [navigation, toc]\n"
        "search: {exclude: true}\n---\n\n"
        f"# `{Path(shown.path).name}`\n\n{about} It is shown in {pages}.\n\n{PLACE}\n"
    )


def _listing(shown: Shown) -> str:
    lines = _colored(shown.path, shown.text)
    whole = Part("", 1, len(lines))
    return f'<div class="source highlight no-copy">{_within(whole, shown.parts, lines)}</div>'


def _colored(path: str, text: str) -> list[str]:
    """Each line as HTML; a token that spans lines is closed and opened again between them."""
    try:
        lexer = get_lexer_for_filename(path, stripnl=False)
    except ClassNotFound:
        return [escape(line, quote=False) for line in text.splitlines()]
    html: str = highlight(text, lexer, HtmlFormatter(nowrap=True))
    return html.rstrip("\n").split("\n")


def _within(outer: Part, parts: Sequence[Part], lines: Sequence[str]) -> str:
    """The lines of a part; those in it that are parts themselves stand in boxes of their own."""
    inside = [each for each in parts if each != outer and _holds(outer, each)]
    html, at = "", outer.first
    for each in inside:
        if each.first < at:
            continue  # lies in the one before
        html += _code(lines, at, each.first - 1) + _box(each, inside, lines)
        at = each.last + 1
    return html + _code(lines, at, outer.last)


def _holds(outer: Part, inner: Part) -> bool:
    return outer.first <= inner.first and inner.last <= outer.last


def _box(part: Part, parts: Sequence[Part], lines: Sequence[str]) -> str:
    code = _within(part, [each for each in parts if each != part], lines)
    if not part.task:
        return f'<div class="part" id="{part.name}">{code}</div>'
    count = part.last - part.first - 1
    said = f"Task {part.task}: {count} line{'' if count == 1 else 's'} of the solution"
    return f'<details class="part" id="{part.name}"><summary>{said}</summary>{code}</details>'


def _code(lines: Sequence[str], first: int, last: int) -> str:
    if first > last:
        return ""
    numbered = "".join(
        f'<span class="line" data-line="{number}">{lines[number - 1]}\n</span>'
        for number in range(first, last + 1)
    )
    return f"<pre><code>{numbered}</code></pre>"
