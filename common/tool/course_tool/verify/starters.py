# SPDX-License-Identifier: MIT
"""The starters: they compile without a warning, and every task's tests are red by its TODO.

prove_starters() takes them as the student finds them, all tasks open. prove_tasks() opens one task
at a time in otherwise solved chapters: its tests must then be red by that task's TODO and by no
other. And for each task it opens all tasks that come later: its tests must be green, for that is
the order of work.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from course_tool import builds, marks
from course_tool.chapters import Chapter, Task, all_chapters
from course_tool.ctests import TestResult
from course_tool.sections import MARK
from course_tool.verify.cases import Case, cases_in, programs_of, task_of_test
from course_tool.verify.dependencies import Part, of_cases, parts_of
from course_tool.verify.memory import Memory
from course_tool.verify.outcome import Context, Outcome, check_all
from course_tool.verify.solutions import (
    NOTHING_SKIPPED,
    file_name,
    remember_parts,
    run_parts,
)
from course_tool.verify.starter_builds import (
    as_solution,
    check_with_clang,
    foreign_chapters,
    starter_texts,
)
from course_tool.verify.trees import (
    TEST_TIMEOUT_S,
    solution_texts,
    student_build,
)
from course_tool.verify.variants import Variant, origin

BEFORE = "-before-the-rest"  # in a variant's name: what comes after the task is open
RED_WITHIN_S = TEST_TIMEOUT_S / 4  # alone it takes none; a busy machine may make it wait


def with_open(chapter: Chapter, tasks: Sequence[Task]) -> dict[str, str]:
    """The solution, but for these tasks, which are as in the starter."""
    sections = {section for task in tasks for section in task.sections}
    return {
        name: marks.starter_text(_only_marks_of(sections, text)) if _has_marks(name) else text
        for name, text in solution_texts(chapter).items()
    }


def _has_marks(name: str) -> bool:
    return Path(name).suffix in marks.CPP_SUFFIXES


def _only_marks_of(sections: Collection[str], text: str) -> str:
    """Without the marks of all other sections of tasks their bodies are plain code, and stay."""
    kept = []
    for line in text.splitlines(keepends=True):
        mark = MARK.match(line)
        if mark is None or not mark["name"].startswith("task-") or mark["name"] in sections:
            kept.append(line)
    return "".join(kept)


def tasks_without_test(chapters: Sequence[Chapter]) -> list[str]:
    files = (file for chapter in chapters for file in chapter.tests.glob("*_test.cpp"))
    tested = {case.task for file in files for case in cases_in(file.read_text(encoding="utf-8"))}
    return [
        f"task {task.id} has no test: no case in tests/{chapter.folder}/ starts with “{task.id} ”."
        for chapter in chapters
        for task in chapter.tasks
        if task.id not in tested
    ]


def red_problem(result: TestResult, todo: str | None) -> str | None:
    """What is wrong with a test that should be red by a task's TODO; None stands for any task."""
    state = f"with task {todo} open" if todo else "on the starter"
    name = f"“{result.name}”"
    if result.status == "passed":
        return (
            f"{name} passes {state}, so it proves nothing about its task: "
            "let it check what only the task's code can do."
        )
    if result.status == "skipped":
        return f"{name} was skipped {state}, so nothing is proved: {result.output}"
    if result.status == "timeout":
        return f"{name} hangs {state}; a student would wait for its timeout instead of reading it."
    if result.seconds > RED_WITHIN_S:
        return (
            f"{name} takes {result.seconds:.0f} s to be red {state}; "
            f"{RED_WITHIN_S:.0f} s is the limit. Give its steps shorter deadlines."
        )
    wanted = f"TODO {todo}: " if todo else "TODO "
    if wanted not in result.output:
        found = re.search(r"TODO (\d\d\.\d+): ", result.output)
        instead = f"it names task {found[1]} instead" if found else "it names no task"
        return (
            f"{name} is red {state}, but not by its TODO: {instead}. "
            "A student reads the output and must find the task there."
        )
    return None


def order_problem(result: TestResult, task: str) -> str | None:
    """What is wrong with a task's test while the tasks that come later are open."""
    if result.status == "passed":
        return None
    return (
        f"“{result.name}” is red while the tasks after {task} are open; a student who works in "
        "order cannot turn it green. Test less in it, or name it after a later task."
    )


def prove_starters(context: Context) -> Outcome:
    outcome = Outcome("tests")
    outcome.fail_all(tasks_without_test(all_chapters()))
    if context.options.thorough:
        check_with_clang(context, outcome)
    else:
        outcome.notes.append("Clang's warnings are asked for with --all")
    memory = Memory(context, "starters")
    unknown = {
        chapter: [part for part in _tasks_parts(chapter) if not memory.holds(part.content)]
        for chapter in all_chapters()
    }
    memory.tell(outcome)
    chapters = [chapter for chapter, parts in unknown.items() if parts]
    if not chapters:
        return outcome
    tree, folder = student_build(
        {each: (starter_texts if each in chapters else solution_texts)(each) for each in unknown}
    )
    programs = (name for each in chapters for name in programs_of(each))
    built = folder.build([*programs, *(f"{each.number}-cases" for each in chapters)])
    if built.returncode != 0:
        said = built.stdout + built.stderr
        log = context.write_log("starters-build", said)
        outcome.failures.append(
            f"The starters do not compile without a warning: {builds.build_failure(said)} "
            f"(see {log})"
        )
        return outcome
    outcome.fail_all(dict.fromkeys(foreign_chapters(folder.commands(), tree.chapters)))
    parts = [part for each in unknown.values() for part in each]
    results = run_parts(folder, parts, env=NOTHING_SKIPPED)
    problems = {result.name: _red_problem(context, result, None) for result in results}
    for problem in problems.values():
        outcome.check(problem)
    if outcome.holds:
        remember_parts(memory, parts, problems)
    return outcome


def _tasks_parts(chapter: Chapter) -> list[Part]:
    """As the starter makes them; of tests that belong to no task, such as the echo contract, it is
    enough that they compile."""
    return [
        replace(part, holds=partial(_is_of_a_task, part))
        for part in parts_of(chapter, as_solution(chapter, starter_texts(chapter)))
    ]


def _is_of_a_task(part: Part, name: str) -> bool:
    return task_of_test(name) is not None and part.holds(name)


def _red_problem(context: Context, result: TestResult, todo: str | None) -> str | None:
    problem = red_problem(result, todo)
    if problem is None:
        return None
    log = context.write_log(f"open-{todo or 'all'}-{file_name(result.name)}", result.output)
    return f"{problem} (see {log})"


def _is_of(task: Task, case: Case) -> bool:
    return case.task == task.id


def variants_of(chapter: Chapter) -> Iterator[Variant]:
    """By its own name each task is open; those that come after it are, by a longer one."""
    for number, task in enumerate(chapter.tasks, start=1):
        wanted = partial(_is_of, task)
        yield Variant(task.id, chapter, with_open(chapter, [task]), wanted)
        later = chapter.tasks[number:]
        if later:
            yield Variant(f"{task.id}{BEFORE}", chapter, with_open(chapter, later), wanted)


def prove_tasks(context: Context) -> Outcome:
    outcome = Outcome("states of a chapter")
    memory = Memory(context, "tasks")
    variants = [
        variant
        for chapter in all_chapters()
        for variant in variants_of(chapter)
        if not memory.holds(variant.name, of_cases(chapter, variant.wanted))
    ]
    memory.tell(outcome)
    if not variants:
        return outcome
    beside = origin()
    beside.build_shared(variants)

    def problem(variant: Variant) -> str | None:
        task, before, _ = variant.name.partition(BEFORE)
        failed = beside.make(variant)
        if failed:
            said = builds.build_failure(failed.stdout + failed.stderr)
            what = f"the tasks after {task}" if before else f"task {task}"
            return f"With {what} open its chapter does not compile: {said}"
        results = variant.run(is_green=lambda case: bool(before))
        judged = (
            order_problem(each, task) if before else _red_problem(context, each, task)
            for each in results
        )
        found = "\n".join(filter(None, judged))
        shutil.rmtree(variant.folder)
        if not found:
            memory.remember(variant.name, of_cases(variant.chapter, variant.wanted))
        return found or None

    check_all(outcome, "Opening tasks", variants, problem)
    return outcome
