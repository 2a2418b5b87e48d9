# SPDX-License-Identifier: MIT
"""The test cases as the sources hold them: in which file one is, and which programs it runs.

So that verify compiles the file that holds a case, and of that file what the case needs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from course_tool.chapters import Chapter

_STRINGS = r'((?:"(?:[^"\\]|\\.)*"\s*)+)'
_CASE = re.compile(rf"^TEST_CASE\(\s*{_STRINGS}(?:,\s*{_STRINGS})?\)", re.MULTILINE)
_LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')
_CASE_END = re.compile(r"^\}", re.MULTILINE)
_TASK = re.compile(r"(\d\d\.\d+) ")
_RUN = re.compile(r'\bprogram\((?:"([^"]*)"\))?')


@dataclass(frozen=True)
class Case:
    title: str
    tags: str  # all of them, as they stand there
    line: int
    text: str  # from its TEST_CASE to the brace at the start of a line

    @property
    def task(self) -> str | None:
        return task_of_test(self.title)


def task_of_test(name: str) -> str | None:
    """A test's name starts with its task."""
    found = _TASK.match(name)
    return found[1] if found else None


def cases_in(text: str) -> Iterator[Case]:
    for match in _CASE.finditer(text):
        end = _CASE_END.search(text, match.end())
        yield Case(
            title=_joined(match[1]),
            tags=match[2] or "",
            line=text.count("\n", 0, match.start()) + 1,
            text=text[match.start() : end.end() if end else len(text)],
        )


def _joined(strings: str) -> str:
    """C++ joins literals that follow one another."""
    return re.sub(r"\\(.)", r"\1", "".join(_LITERAL.findall(strings)))


def with_cases(text: str, wanted: Callable[[Case], bool]) -> str:
    """The same file, with blank lines for the other cases: they are half of a compiler's work."""
    for case in cases_in(text):
        if not wanted(case):
            text = text.replace(case.text, "\n" * case.text.count("\n"))
    return text


def programs_of_cases(chapter: Chapter, wanted: Callable[[Case], bool]) -> list[str]:
    """The chapter's programs that the wanted cases run."""
    return list(dict.fromkeys(name for _, run in files_of_cases(chapter, wanted) for name in run))


def files_of_cases(
    chapter: Chapter, wanted: Callable[[Case], bool]
) -> Iterator[tuple[Path, list[str]]]:
    """The files that hold wanted cases, each with the programs that those run."""
    for file in sorted(chapter.tests.glob("*_test.cpp")):
        text = file.read_text(encoding="utf-8")
        cases = list(cases_in(text))
        chosen = [case for case in cases if wanted(case)]
        if not chosen:
            continue
        shared = text  # what stands between the cases may be called by any of them
        for case in cases:
            shared = shared.replace(case.text, "")
        yield file, _programs_in(chapter, "".join([shared, *(case.text for case in chosen)]))


def _programs_in(chapter: Chapter, text: str) -> list[str]:
    """Those that the text runs by name, or a header of the tests that it includes; all, if one is
    run that is not named there."""
    for header in sorted(chapter.tests.glob("*.hpp")):
        if f'#include "{header.name}"' in text:
            text += header.read_text(encoding="utf-8")
    run = dict.fromkeys(_RUN.findall(text))  # not programs_of() alone: a test may have its own
    return programs_of(chapter) if "" in run else list(run)


def programs_of(chapter: Chapter) -> list[str]:
    return [f"{chapter.number}-{program.name}" for program in chapter.programs]
