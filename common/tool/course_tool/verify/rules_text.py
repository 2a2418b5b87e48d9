# SPDX-License-Identifier: MIT
"""The rules that every text file keeps: width, spelling, words, and no trace of one machine."""

from __future__ import annotations

import re
from collections.abc import Iterator

from course_tool.markdown import without_fences
from course_tool.verify.sources import QUOTES_THE_RULES, Rule, Source
from course_tool.verify.words import banned_in_prose, banned_in_solution

COLUMNS_MAX = 100

CPP = ("*.cpp", "*.hpp")
PYTHON = ("*.py",)
CMAKE = ("*CMakeLists.txt", "*.cmake")
SHELL = ("course", ".ci/run", "*.sh")
MARKDOWN = ("*.md",)
CODE = CPP + PYTHON + CMAKE + SHELL
TEXT = CODE + MARKDOWN + ("*.toml", "*.json", "*.yml", "*.css", "*.js", "*.svg", "*.inc", "*.txt")

# What a student reads: the pages, and the titles, questions and hints of chapter.toml.
PROSE = MARKDOWN + ("solutions/*/chapter.toml",)

_UNBREAKABLE = re.compile(r"^\s*(\||<|--8<--|#|\?\?\?|!!!|===|\[[^\]]+\]:\s|!\[)|https?://\S{40,}")


def width(source: Source) -> Iterator[str]:
    for number, line in enumerate(source.lines, start=1):
        if len(line) > COLUMNS_MAX:
            yield source.at(
                number, f"the line has {len(line)} columns; {COLUMNS_MAX} is the limit. Break it."
            )


def width_of_prose(source: Source) -> Iterator[str]:
    """As width(), but for what Markdown cannot break: tables, titles, includes, addresses."""
    for number, line in enumerate(without_fences(source.text).splitlines(), start=1):
        if len(line) > COLUMNS_MAX and not _UNBREAKABLE.search(line):
            yield source.at(
                number, f"the line has {len(line)} columns; {COLUMNS_MAX} is the limit. Break it."
            )


def line_ends(source: Source) -> Iterator[str]:
    if "\r" in source.text:
        yield source.at(1, "the file has carriage returns; lines end with a line feed alone.")
    for number, line in enumerate(source.lines, start=1):
        if line != line.rstrip():
            yield source.at(number, "blanks at the end of the line; remove them.")
    if source.text and not source.text.endswith("\n"):
        yield source.at(len(source.lines), "the last line has no line feed; add one.")


def prose_words(source: Source) -> Iterator[str]:
    for offset, word in banned_in_prose(source.text):
        yield source.at(
            source.line_of(offset),
            f"{' '.join(word.split())!r} tells a reader who is stuck that they should not be; "
            "say it without.",
        )


def solution_words(source: Source) -> Iterator[str]:
    for offset, word in banned_in_solution(source.text):
        yield source.at(
            source.line_of(offset),
            f"{word!r} leaves something open; in a solution a doubt becomes an assert or a test.",
        )


def spdx(source: Source) -> Iterator[str]:
    lines = source.lines
    first = 1 if lines and lines[0].startswith("#!") else 0
    comment = "//" if source.matches(*CPP) else "#"
    wanted = f"{comment} SPDX-License-Identifier: MIT"
    if source.text and lines[first : first + 1] != [wanted]:
        yield source.at(first + 1, f"the file has to start with the line `{wanted}`.")


_HOME = re.compile(r"(?<![\w.~/$}:-])/(?:home|Users|root|work|farm|opt/hosted\w*)/[\w.-]+")
_MIRROR = re.compile(
    r"deb\.debian\.org|archive\.ubuntu\.com|(?<![\w.-])mirrors?(?:\.[a-z0-9-]+){2}"
)


def machine_traces(source: Source) -> Iterator[str]:
    if source.matches(*QUOTES_THE_RULES):
        return
    for match in _HOME.finditer(source.text):
        yield source.at(
            source.line_of(match.start()),
            f"{match.group()!r} is a folder of one machine; name it from the clone's root.",
        )
    for match in _MIRROR.finditer(source.text):
        yield source.at(
            source.line_of(match.start()),
            f"{match.group()!r} is the host of a package mirror; use what the machine has set up.",
        )


RULES = (
    Rule("width", CODE, width),
    Rule("width of prose", MARKDOWN, width_of_prose),
    Rule("line ends", TEXT, line_ends),
    Rule("words in prose", PROSE, prose_words),
    Rule("words in solutions", ("solutions/*.cpp", "solutions/*.hpp"), solution_words),
    Rule("SPDX line", CPP + PYTHON + SHELL, spdx),
    Rule("traces of a machine", TEXT, machine_traces),
)
