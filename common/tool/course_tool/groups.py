# SPDX-License-Identifier: MIT
"""A chapter's tests, sorted by the task they belong to, and how each task stands."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from course_tool import ctests
from course_tool.chapters import Chapter, Task
from course_tool.ctests import TestResult
from course_tool.diagnosis import Diagnosis, Todo, diagnose

Result = Literal["green", "red", "todo", "skipped"]


@dataclass(frozen=True)
class Group:
    """The tests of one task, or of the echo contract."""

    key: str  # "01.2" or "01 contract"
    title: str
    tests: tuple[TestResult, ...]

    @cached_property
    def red(self) -> list[tuple[TestResult, Diagnosis]]:
        """The tests that are not green, and what they say."""
        return [
            (test, diagnose(test.output))
            for test in self.tests
            if test.status not in ("passed", "skipped")
        ]

    @property
    def green_count(self) -> int:
        return sum(test.status == "passed" for test in self.tests)

    @property
    def todos(self) -> dict[str, Todo]:
        """The unwritten tasks that these tests ran into, by id."""
        return {each.todo.task: each.todo for _, each in self.red if each.todo}

    @property
    def only_todos(self) -> bool:
        """True if every red test is red because of something that nobody has written yet."""
        return bool(self.red) and all(each.todo for _, each in self.red)

    @property
    def result(self) -> Result:
        if self.key in self.todos:
            return "todo"
        if self.red or not self.tests:
            return "red"
        return "green" if self.green_count else "skipped"


def has_contract(chapter: Chapter) -> bool:
    return any(program.contract for program in chapter.programs)


def contract_key(chapter: Chapter) -> str:
    """How the tests of a chapter's echo contract start, and how its result is remembered."""
    return f"{chapter.number} contract"


def targets_of(chapter: Chapter) -> list[str]:
    """What has to be built before the tests of a chapter can run."""
    programs = [f"{chapter.number}-{program.name}" for program in chapter.programs]
    contract = ["echo-contract"] if has_contract(chapter) else []
    return [f"{chapter.number}-tests", *programs, *contract]


def run_tasks(
    preset: str, tasks: Sequence[Task], env: Mapping[str, str] | None = None
) -> list[Group]:
    """Runs the tests of the tasks, all at once."""
    names = "|".join(re.escape(task.id) for task in tasks)
    results = ctests.run_tests(preset, name_regex=f"^({names}) ", env=env)
    return [_group(task.id, task.title, results) for task in tasks]


def run_contract(preset: str, chapter: Chapter, env: Mapping[str, str] | None = None) -> Group:
    key = contract_key(chapter)
    results = ctests.run_tests(preset, name_regex=f"^{key}", env=env)
    return _group(key, "The echo contract", results)


def _group(key: str, title: str, results: Sequence[TestResult]) -> Group:
    own = (result for result in results if re.match(rf"{re.escape(key)}\b", result.name))
    return Group(key, title, tuple(own))
