# SPDX-License-Identifier: MIT
"""The rules for pages: length, links between files, and no request that leaves the machine.

What a chapter's page must contain is checked while the site is built (docs/_hooks/chapter_page.py).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

from course_tool.markdown import without_fences
from course_tool.verify.sources import Rule, Source

WORDS_MIN = 1300
WORDS_MAX = 2300
KEEP_IT_HERE = "the site works offline. Keep the file in docs/assets/."

_NOT_PROSE = re.compile(
    r"<!--.*?-->|<[^>]+>|\{\{.*?\}\}|\{[^}\n]*\}|\]\([^)]*\)|^--8<--.*$", re.DOTALL
)
_MARKUP = re.compile(r"(?:\?\?\?|!!!)\+? \w+")


def words_of_prose(text: str) -> int:
    """What a reader reads as text: no code, no marks, no addresses."""
    prose = _MARKUP.sub(" ", _NOT_PROSE.sub(" ", without_fences(text)))
    return len(re.findall(r"[^\W_][\w'’.-]*", prose))


def length(source: Source) -> Iterator[str]:
    words = words_of_prose(source.text)
    if not WORDS_MIN <= words <= WORDS_MAX:
        what = "say more" if words < WORDS_MIN else "more means two ideas"
        yield source.at(
            1, f"the page has {words} words; a chapter has {WORDS_MIN} to {WORDS_MAX}: {what}."
        )


_BOX = re.compile(r"\s*(?:\?{3}\+?|!!!) ")
_BOX_TITLE = re.compile(r"\s*(?:\?{3}\+?|!!!) [a-z]+(?: \".+\")?")


def box_titles(source: Source) -> Iterator[str]:
    """Markdown takes a box's title on one line only; a broken one is text, and folds nothing."""
    for number, line in enumerate(without_fences(source.text).splitlines(), start=1):
        if _BOX.match(line) and not _BOX_TITLE.fullmatch(line):
            yield source.at(
                number, 'a box is not closed by " on its line; its title stands on one line.'
            )


_LINK = re.compile(r"(?<!`)\]\((?P<target>[^)\s]+)(?:\s+\"[^\"]*\")?\)")


def dead_links(root: Path, source: Source) -> Iterator[str]:
    """Links from a Markdown file to a file of the clone; addresses of the web are not fetched."""
    text = without_fences(source.text)
    for match in _LINK.finditer(text):
        target = match["target"].partition("#")[0]
        if not target or re.match(r"[a-z][a-z0-9+.-]*:", target):
            continue
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source.path), target))
        if not (root / path).exists():
            line = text.count("\n", 0, match.start()) + 1
            yield source.at(line, f"the link to {match['target']} is dead: there is no {path}.")


_OUTSIDE = r"[\"'`]?\s*(?P<url>(?:(?:https?|wss?):)?//[^\s\"'`)>]+)"
# Elements, properties and calls that make a browser fetch; a plain <a href> is only a link.
_FETCHES = tuple(
    re.compile(before + _OUTSIDE, re.IGNORECASE)
    for before in (
        r"<(?:script|img|iframe|source|video|audio|embed|track|input)\b[^>]*?\s(?:src|srcset)=",
        r"<video\b[^>]*?\sposter=",
        r"<(?:image|use)\b[^>]*?\s(?:xlink:)?href=",
        r"<object\b[^>]*?\sdata=",
        r"\burl\(\s*",
        r"@import\s+",
        r"!\[[^\]]*\]\(",
        r"\b(?:fetch|import|importScripts|EventSource|WebSocket)\(\s*",
    )
)
_LINK_ELEMENT = re.compile(r"<link\b[^>]*>", re.IGNORECASE)
_HREF = re.compile(r"\shref=" + _OUTSIDE, re.IGNORECASE)
# These name where a page is at home; a browser fetches nothing for them.
_NAMES_ONLY = re.compile(
    r"\brel=[\"']?(?:canonical|license|author|next|prev|edit)\b", re.IGNORECASE
)


def outside_requests(text: str) -> Iterator[tuple[int, str]]:
    """Where a file makes a browser ask another host, and for what."""
    for pattern in _FETCHES:
        for match in pattern.finditer(text):
            yield match.start(), match["url"]
    for element in _LINK_ELEMENT.finditer(text):
        href = _HREF.search(element.group())
        if href and not _NAMES_ONLY.search(element.group()):
            yield element.start(), href["url"]


def source_requests(source: Source) -> Iterator[str]:
    text = without_fences(source.text) if source.matches("*.md") else source.text
    for offset, url in sorted(outside_requests(text)):
        yield source.at(source.line_of(offset), f"asks another host for {url}; {KEEP_IT_HERE}")


def configured_requests(source: Source) -> Iterator[str]:
    """extra_css and extra_javascript of mkdocs.yml."""
    for number, line in enumerate(source.lines, start=1):
        if re.match(r"\s*-\s+[\"']?(?:https?:)?//", line):
            url = line.strip(" -\"'")
            yield source.at(number, f"asks another host for {url}; {KEEP_IT_HERE}")


RULES = (
    Rule("length of pages", ("docs/chapters/*.md",), length),
    Rule("titles of boxes", ("docs/*.md",), box_titles),
    Rule(
        "requests",
        ("docs/*.md", "docs/*.css", "docs/*.js", "docs/*.svg", "docs/*.html", "README.md"),
        source_requests,
    ),
    Rule("requests", ("mkdocs.yml",), configured_requests),
)
