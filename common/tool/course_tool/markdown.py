# SPDX-License-Identifier: MIT
"""What the pages' Markdown holds besides prose: fences, and the files that they include."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_FENCE = re.compile(r"\s*(`{3,}|~{3,})\s*(.*)")
_LANGUAGE = re.compile(r"\{?\s*\.?([\w+]+)")
_SNIPPET = re.compile(r"\s*-+8<-+(?:\s+(.+?))?\s*")
_TARGET = re.compile(r"\s*[\"']?(?P<path>[^\"':]+)(?::(?P<section>[^\"']+))?[\"']?\s*")


@dataclass(frozen=True)
class Fence:
    language: str
    first: int  # the number of the line that opens it
    last: int  # and of the one that closes it, or of the page's last


@dataclass(frozen=True)
class Include:
    """A page's `--8<-- "path:section"`."""

    line: int
    path: str
    section: str  # empty: the whole file


def fences(lines: Sequence[str]) -> Iterator[Fence]:
    """The fences of a page; one that nobody closes goes on to its end."""
    opened, language, first = "", "", 0
    for number, line in enumerate(lines, start=1):
        fence = _FENCE.match(line)
        if fence and not opened:
            found = _LANGUAGE.match(fence[2])
            opened, language, first = fence[1], found[1].lower() if found else "", number
        elif fence and fence[1].startswith(opened) and not fence[2].strip():
            yield Fence(language, first, number)
            opened = ""
    if opened:
        yield Fence(language, first, len(lines))


def without_fences(text: str) -> str:
    """The same lines, but for those of fences, which become empty."""
    lines = text.split("\n")
    for fence in fences(lines):
        lines[fence.first - 1 : fence.last] = [""] * (fence.last - fence.first + 1)
    return "\n".join(lines)


def includes(lines: Sequence[str]) -> Iterator[Include]:
    """pymdownx takes one file in a line, or a list between two lines that are only `--8<--`."""
    in_list = False
    for number, line in enumerate(lines, start=1):
        snippet = _SNIPPET.fullmatch(line)
        if snippet and not snippet[1]:
            in_list = not in_list
        target = _TARGET.fullmatch((snippet[1] or "") if snippet else line)
        if target and (snippet or in_list):
            yield Include(number, target["path"], target["section"] or "")
