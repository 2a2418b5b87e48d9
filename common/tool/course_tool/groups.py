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
from course_tool.verify.cases import files_of_cases, programs_of_cases

Result = Literal["green", "red", "todo", "skipped"]
CONTRACT_TITLE = "The echo contract"
WHOLE_TITLE = "The chapter as a whole"


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


def whole_of(chapter: Chapter) -> tuple[str, str] | None:
    """The key and the title of what is tried once the tasks are done: the echo contract; in a
    chapter without one, its tests that belong to no task. None if it has neither."""
    if has_contract(chapter):
        return contract_key(chapter), CONTRACT_TITLE
    if any(files_of_cases(chapter, lambda case: case.title.startswith(f"{chapter.number} "))):
        return f"{chapter.number} whole", WHOLE_TITLE
    return None


def targets_of(chapter: Chapter, only: Task | None = None) -> list[str]:
    """What has to be built before the tests of a chapter, or of one task, can run."""
    if only:
        run = programs_of_cases(chapter, lambda case: case.task == only.id)
        return [f"{chapter.number}-cases", *run]
    programs = [f"{chapter.number}-{program.name}" for program in chapter.programs]
    contract = ["echo-contract"] if has_contract(chapter) else []
    return [f"{chapter.number}-tests", *programs, *contract]


def graded_targets(chapter: Chapter) -> list[str]:
    """The same for the tests that make points: in a chapter with a contract, those of no task are
    left to ./course test, and so are the programs that they run."""
    if not has_contract(chapter):
        return targets_of(chapter)
    run = programs_of_cases(chapter, lambda case: case.task is not None)
    run += [f"{chapter.number}-{each.name}" for each in chapter.programs if each.contract]
    return [f"{chapter.number}-cases", *dict.fromkeys(run), "echo-contract"]


def run_tasks(
    preset: str, tasks: Sequence[Task], env: Mapping[str, str] | None = None
) -> list[Group]:
    """Runs the tests of the tasks, all at once."""
    names = "|".join(re.escape(task.id) for task in tasks)
    results = ctests.run_tests(preset, name_regex=f"^({names}) ", env=env)
    return [_group(task.id, task.title, results) for task in tasks]


def run_whole(
    preset: str, chapter: Chapter, env: Mapping[str, str] | None = None
) -> list[Group]:
    """Runs the tests that belong to no task: they try all that the tasks have made together."""
    results = ctests.run_tests(preset, name_regex=f"^{chapter.number} ", env=env)
    contract = _group(contract_key(chapter), CONTRACT_TITLE, results)
    others = tuple(result for result in results if result not in contract.tests)
    groups = (Group(f"{chapter.number} whole", WHOLE_TITLE, others), contract)
    return [group for group in groups if group.tests]


def run_others(preset: str, chapter: Chapter, env: Mapping[str, str] | None = None) -> Group:
    """Those of run_whole() that are not of the contract, where a chapter has no server of it."""
    name = f"^{chapter.number} "
    results = ctests.run_tests(preset, name_regex=name, without_label="contract", env=env)
    return Group(f"{chapter.number} whole", WHOLE_TITLE, tuple(results))


def run_contract(preset: str, chapter: Chapter, env: Mapping[str, str] | None = None) -> Group:
    """The contract as it is graded: what fails is tried once more, since it measures processor time
    and has deadlines, and whoever came so far shall not pay for a busy machine."""
    key = contract_key(chapter)
    results = ctests.run_tests(preset, name_regex=f"^{key}", tries=2, env=env)
    return _group(key, CONTRACT_TITLE, results)


def _group(key: str, title: str, results: Sequence[TestResult]) -> Group:
    own = (result for result in results if re.match(rf"{re.escape(key)}\b", result.name))
    return Group(key, title, tuple(own))
