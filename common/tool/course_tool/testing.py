# SPDX-License-Identifier: MIT
"""`./course test`: builds a chapter, runs its tests, and says what each red task needs.

The tests of the tasks come first. What tries the chapter as a whole (its programs, and the echo
contract: a finished server, and clients that misbehave) runs once they are all green: before that
it would only repeat what they say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from course_tool import builds, console, reporting, state
from course_tool.chapters import Chapter, Task, all_chapters, find_chapter
from course_tool.errors import CourseError
from course_tool.groups import Group, contract_key, run_tasks, run_whole, targets_of
from course_tool.places import fingerprints


@dataclass(frozen=True)
class Request:
    chapter: Chapter
    preset: str
    only: Task | None = None  # None: all tasks, then the chapter as a whole
    verbose: bool = False

    @property
    def is_students(self) -> bool:
        """Whether the results are the student's own, to be remembered."""
        return self.preset.startswith("student")

    @property
    def sanitizes(self) -> bool:
        return self.preset in builds.SANITIZER_PRESETS


def preset_for(solution: bool, carry: bool, sanitize: bool, sanitize_threads: bool = False) -> str:
    """Which build folder a set of flags means."""
    if sanitize and sanitize_threads:
        raise CourseError(
            "--sanitize and --sanitize-threads do not go together: a program has room for one "
            "sanitizer. Run them one after the other."
        )
    if carry and (solution or sanitize or sanitize_threads):
        other = "--solution" if solution else "--sanitize" if sanitize else "--sanitize-threads"
        raise CourseError(
            f"--carry and {other} do not go together: --carry builds your chapter on your own "
            "earlier ones, without sanitizers. Leave one of them out."
        )
    if carry:
        return "student-carry"
    if sanitize or sanitize_threads:
        return ("" if solution else "student-") + ("asan" if sanitize else "tsan")
    return "reference" if solution else "student"


def find_request(chapter: str, task: str | None, preset: str, verbose: bool) -> Request:
    """A task may be given as 01.2, 1.2 and, since the chapter is known, 2."""
    found = find_chapter(chapter)
    if preset.endswith("tsan") and not found.suits_tsan:
        raise CourseError(
            f"ThreadSanitizer does not see the kernel's side of a ring, and so would report races "
            f"in chapter {found.number} that are none. --sanitize looks at its memory. If the page "
            "has tests for ThreadSanitizer, it shows their command."
        )
    return Request(found, preset, None if task is None else find_task_of(found, task), verbose)


def find_task_of(chapter: Chapter, name: str) -> Task:
    number, dot, position = name.rpartition(".")
    own = not dot or (number.isdecimal() and int(number) == int(chapter.number))
    for task in chapter.tasks:
        if own and position.isdecimal() and task.id == f"{chapter.number}.{int(position)}":
            return task
    have = "\n".join(f"  {task.id}  {task.title}" for task in chapter.tasks)
    raise CourseError(f"Chapter {chapter.number} has no task {name}. It has:\n{have}")


def run_chapter(request: Request) -> int:
    """Builds, runs, shows. 0 if everything that was asked for is green."""
    _require_starter(request)
    chapter = request.chapter
    warnings = builds.build(request.preset, targets_of(chapter, request.only))
    reporting.show_warnings(warnings, request.preset)
    groups = run_tasks(request.preset, [request.only] if request.only else chapter.tasks)
    for group in groups:
        reporting.show_red(group, chapter, request.preset, verbose=request.verbose)
    _remember(request, groups)
    if request.only is None:
        groups += _run_whole_if_due(request, groups)
    reporting.show_table(chapter, groups)
    all_green = all(group.result == "green" for group in groups)
    if all_green:
        reporting.show_next(chapter, request.only, students=request.is_students)
    return 0 if all_green else 1


def _require_starter(request: Request) -> None:
    """Its own, and those of the other chapters: CMake wants to see them all."""
    if not request.is_students:
        return
    for chapter in (request.chapter, *all_chapters()):
        if not chapter.starter.is_dir():
            raise CourseError(
                f"chapters/{chapter.folder}/ is missing. `./course reset {chapter.number}` makes "
                "it again from its starter."
            )


def _run_whole_if_due(request: Request, groups: Sequence[Group]) -> list[Group]:
    if any(group.result not in ("green", "skipped") for group in groups):
        reporting.show_whole_waits()
        return []
    whole = run_whole(request.preset, request.chapter)
    for group in whole:
        reporting.show_red(group, request.chapter, request.preset, verbose=request.verbose)
    # What is remembered of the contract is what holds of the whole chapter.
    red = next((group for group in whole if group.result != "green"), None)
    if whole:
        _remember(request, [replace(red or whole[-1], key=contract_key(request.chapter))])
    return whole


def _remember(request: Request, groups: Sequence[Group]) -> None:
    """What a sanitizer finds is no news of the plain tests; where it finds nothing, they pass."""
    if not request.is_students:
        return
    told = [group for group in groups if group.result == "green" or not request.sanitizes]
    now = fingerprints(request.chapter)
    try:
        with state.changing() as remembered:
            for group in told:
                remembered.records[group.key] = state.Record(group.result, now[group.key])
    except CourseError as error:  # no reason to keep the results from their reader
        console.err.print(f"course: {error} So `./course status` will not know of this run.")
