# SPDX-License-Identifier: MIT
"""What the answer of a test can depend on: the files that it, and what it runs, are made of.

The tests of a chapter are taken by file. A part of a chapter's tests are those of one file of its
tests; the last part are those that no such file holds, as the echo contract.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from course_tool.chapters import Chapter, all_chapters
from course_tool.files import digest
from course_tool.paths import ROOT, relative
from course_tool.verify.cases import Case, cases_in, files_of_cases, programs_of
from course_tool.verify.sources import listed_files

Texts = Mapping[str, str]  # of files, by their names in the clone, that are not as they stand there

# What every test stands on; the tool too, which judges them.
_SHARED = ("common/", "cmake/", "tests/support/", "CMakeLists.txt", "CMakePresets.json")
_OF_NO_CHAPTER = "tests/common/"
_INCLUDE = re.compile(r'^\s*#\s*include "([^"]+)"', re.MULTILINE)
_PROGRAM = re.compile(r"^course_program\(\d\d (?P<name>\S+)\s(?P<rest>[^)]*)\)", re.MULTILINE)
_CPP = (".cpp", ".hpp")


@dataclass(frozen=True)
class Part:
    """Some of the tests that a build has."""

    content: str  # of all that could change how they end
    holds: Callable[[str], bool]  # whether a test of this name is one of them


def parts_of(chapter: Chapter, texts: Texts | None = None) -> list[Part]:
    """All tests of a chapter, where its own files are as `texts` say."""
    parts, titles = [], set()
    for file, programs in files_of_cases(chapter, lambda case: True):
        own = frozenset(case.title for case in cases_in(file.read_text(encoding="utf-8")))
        parts.append(Part(of_test_file(chapter, file, programs, texts), own.__contains__))
        titles.update(own)
    content = of_test_file(chapter, None, programs_of(chapter), texts)
    beginnings = (f"{chapter.number}.", f"{chapter.number} ")
    parts.append(Part(content, lambda name: name.startswith(beginnings) and name not in titles))
    return parts


def part_of_no_chapter() -> Part:
    """The tests of what all chapters share."""
    content = _joined([_shared(), *_contents(_listed(_OF_NO_CHAPTER), None)])
    return Part(content, lambda name: not name[0].isdigit())


def of_cases(chapter: Chapter, wanted: Callable[[Case], bool]) -> str:
    """What the cases of a chapter that are wanted depend on."""
    return _joined(of_test_file(chapter, *each) for each in files_of_cases(chapter, wanted))


def of_test_file(
    chapter: Chapter, file: Path | None, programs: Iterable[str], texts: Texts | None = None
) -> str:
    """What a file of a chapter's tests depends on, with the programs that it runs: their sources,
    all that those include, and what has no part in that, but is read or says how to build."""
    names = {name for name in _beside(chapter) if not name.endswith(".cpp")}
    sources = [name for name in _beside(chapter) if name.endswith(".cpp")]
    sources += [relative(file)] if file else []
    for source in (*sources, *(each for name in programs for each in _sources_of(name))):
        names.update(included(source))
    return _joined([_shared(), *_contents(sorted(names), texts)])


def of_program(name: str) -> str:
    """What a program of a chapter does depends on these sources, and on how it is built."""
    names = {each for source in _sources_of(name) for each in included(source)}
    return _joined([_shared(), *_contents(sorted(names), None)])


def of_named(names: Iterable[str]) -> str:
    """What all tests share; and of each name a program of a chapter, or a source with all that it
    includes, or the files that begin so."""
    parts = [_shared()]
    for name in names:
        if re.match(r"\d\d-", name):
            parts.append(of_program(name))
        elif name.endswith(".cpp"):
            parts.append(with_headers(name))
        else:
            parts += _contents(_listed(name), None)
    return _joined(parts)


@functools.cache
def _beside(chapter: Chapter) -> list[str]:
    """The files of a chapter that any of its tests may read, or be linked with."""
    own = [
        name
        for name in _listed(f"tests/{chapter.folder}/", f"solutions/{chapter.folder}/")
        if not name.endswith(_CPP)
    ]
    helpers = [
        name
        for name in _listed(f"tests/{chapter.folder}/")
        if name.endswith(".cpp") and not name.endswith("_test.cpp")
    ]
    return own + helpers


@functools.cache
def _shared() -> str:
    """What all tests depend on: how the chapters are built, too, for they link one another."""
    names = [name for name in _listed("") if name.startswith(_SHARED)]
    names += [name for name in _listed("solutions/", "tests/") if name.endswith("/CMakeLists.txt")]
    return _joined(_contents(names, None))


@functools.cache
def _sources_of(program: str) -> list[str]:
    """Of one that is made in a way which we cannot read, all that could be."""
    number, _, own = program.partition("-")
    folder = next(f"solutions/{each.folder}/" for each in all_chapters() if each.number == number)
    commands = _text(f"{folder}CMakeLists.txt")
    for command in _PROGRAM.finditer(commands):
        if command["name"] == own:
            return [folder + word for word in command["rest"].split() if word.endswith(".cpp")]
    elsewhere = re.findall(r"solutions/[\w/-]+\.cpp", commands)
    return elsewhere + [name for name in _listed(folder) if name.endswith(".cpp")]


@functools.cache
def included(file: str) -> list[str]:
    """The file, and all headers of the course that it includes, by any way."""
    seen = [file]
    for name in seen:  # it grows
        for each in _INCLUDE.findall(_text(name)):
            seen += [header for header in _headers().get(each, []) if header not in seen]
    return sorted(seen)


def with_headers(file: str, texts: Texts | None = None) -> str:
    """The content of a source and of all that it includes."""
    return _joined(_contents(included(file), texts))


@functools.cache
def _headers() -> dict[str, list[str]]:
    """By what an include calls them."""
    found: dict[str, list[str]] = {}
    for name in _listed(""):
        if name.endswith(".hpp") and not name.startswith("chapters/"):
            found.setdefault(name.rpartition("/")[2], []).append(name)
    return found


def _listed(*beginnings: str) -> list[str]:
    return [name for name in _all_listed() if name.startswith(beginnings)]


@functools.cache
def _all_listed() -> list[str]:
    return listed_files(ROOT)


@functools.cache
def _text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8", errors="replace")


@functools.cache
def _content(name: str) -> str:
    return digest((ROOT / name).read_bytes())


def _contents(names: Iterable[str], texts: Texts | None) -> Iterator[str]:
    for name in names:
        changed = texts and texts.get(name)
        yield f"{name}\0{changed or _content(name)}\0"


def _joined(parts: Iterable[str]) -> str:
    return digest("".join(parts).encode())
