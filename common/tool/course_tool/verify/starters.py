# SPDX-License-Identifier: MIT
"""The starters: they compile without a warning, and every task's tests are red by its TODO.

prove_starters() takes them as the student finds them, all tasks open. prove_tasks() opens one task
at a time in otherwise solved chapters: its tests must then be red by that task's TODO and by no
other, and the tests of the tasks before it must stay green, for that is the order of work.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from course_tool import builds, marks
from course_tool.chapters import Chapter, Task, all_chapters
from course_tool.ctests import TestResult, run_tests
from course_tool.errors import CourseError
from course_tool.paths import ROOT
from course_tool.processes import run
from course_tool.sections import MARK
from course_tool.verify.cases import Case, programs_of, task_of_test
from course_tool.verify.memory import Memory, of_chapter, remember_tests
from course_tool.verify.outcome import Context, Outcome, check_all
from course_tool.verify.solutions import NOTHING_SKIPPED, file_name
from course_tool.verify.trees import (
    TEST_TIMEOUT_S,
    BuildFolder,
    Tree,
    cores,
    solution_texts,
    student_build,
)
from course_tool.verify.variants import Variant, origin

RED_WITHIN_S = TEST_TIMEOUT_S / 4  # alone it takes none; a busy machine may make it wait
SYNTAX_TIMEOUT_S = 120


def starter_texts(chapter: Chapter) -> dict[str, str]:
    return {name: data.decode("utf-8") for name, data in marks.starter_files(chapter).items()}


def with_one_task_open(chapter: Chapter, task: Task) -> dict[str, str]:
    """The solution, but for one task, which is as in the starter."""
    texts = solution_texts(chapter)
    return {
        name: marks.starter_text(_only_marks_of(task, text)) if _has_marks(name) else text
        for name, text in texts.items()
    }


def _has_marks(name: str) -> bool:
    return Path(name).suffix in marks.CPP_SUFFIXES


def _only_marks_of(task: Task, text: str) -> str:
    """Without the marks of all other tasks their bodies are plain code, and stay."""
    kept = []
    for line in text.splitlines(keepends=True):
        mark = MARK.match(line)
        if mark is None or not mark["name"].startswith("task-") or mark["name"] in task.sections:
            kept.append(line)
    return "".join(kept)


def tasks_without_test(chapters: Sequence[Chapter], results: Sequence[TestResult]) -> list[str]:
    tested = {task_of_test(result.name) for result in results}
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


def order_problem(result: TestResult, open_task: str) -> str | None:
    """What is wrong with an earlier task's test while a later task is open."""
    if result.status == "passed":
        return None
    return (
        f"“{result.name}” is red while task {open_task} is open, which comes later; a student who "
        "works in order cannot turn it green. Test less in it, or name it after the later task."
    )


def foreign_chapters(commands: Sequence[dict[str, str]], chapters_folder: Path) -> Iterator[str]:
    """Compile commands of one chapter's targets that see another chapter's starter."""
    for command in commands:
        owner = _owner(command)
        if owner is None:
            continue
        for seen in re.findall(
            rf"{re.escape(str(chapters_folder))}/((\d\d)-[\w-]+)", _includes(command)
        ):
            if seen[1] != owner:
                yield (
                    f"{Path(command['file']).name} of chapter {owner} is compiled with the "
                    f"starter chapters/{seen[0]}: link chapter-{seen[1]}-base instead."
                )


def _owner(command: dict[str, str]) -> str | None:
    """The chapter whose target this is, by the folder of its object file."""
    found = re.search(r" -o \S*/CMakeFiles/(\d\d)-", command["command"])
    return found[1] if found else None


def _includes(command: dict[str, str]) -> str:
    words = shlex.split(command["command"])
    return "\n".join(word for word in words if word.startswith(("-I", "-isystem")))


def prove_starters(context: Context) -> Outcome:
    outcome = Outcome("tests")
    with_clang = context.options.thorough
    memory = Memory(context, "starters", str(with_clang))
    chapters = [each for each in all_chapters() if not memory.holds(of_chapter(each))]
    memory.tell(outcome)
    if not chapters:
        return outcome
    tree, folder = student_build({each: starter_texts(each) for each in all_chapters()})
    programs = (name for each in chapters for name in programs_of(each))
    built = folder.build([*programs, *(f"{each.number}-cases" for each in chapters)])
    problem = starter_build_problem(built.returncode, built.stdout + built.stderr)
    if problem:
        folder.forget()  # what is compiled already would not warn again
        log = context.write_log("starters-build", built.stdout + built.stderr)
        outcome.failures.append(f"{problem} (see {log})")
        return outcome
    outcome.fail_all(dict.fromkeys(foreign_chapters(folder.commands(), tree.chapters)))
    if with_clang:
        _check_with_clang(context, outcome, tree)
    else:
        outcome.notes.append("Clang's warnings are asked for with --all")
    numbers = "|".join(chapter.number for chapter in chapters)
    results = run_tests(folder.preset, name_regex=f"^({numbers})[.]", env=NOTHING_SKIPPED)
    outcome.fail_all(tasks_without_test(chapters, results))
    problems = {result.name: _red_problem(context, result, None) for result in results}
    for problem in problems.values():
        outcome.check(problem)
    if outcome.holds:
        remember_tests(memory, chapters, problems)
    return outcome


def starter_build_problem(code: int, output: str) -> str | None:
    """The starters share a build with the mistakes, some of which are worth a warning: so a
    warning is no error there, and is looked for here."""
    if code != 0:
        return f"The starters do not compile: {builds.build_failure(output)}"
    warning = re.search(r"^(\S[^:\n]*:\d+):\d+: warning: (.*)$", output, re.MULTILINE)
    if warning is None:
        return None
    where = re.sub(r"^.*/(?=chapters/)", "", warning[1]).replace(f"{ROOT}/", "")
    return f"The starters do not compile without a warning: {where}: {warning[2]}"


def _red_problem(context: Context, result: TestResult, todo: str | None) -> str | None:
    problem = red_problem(result, todo)
    if problem is None:
        return None
    log = context.write_log(f"open-{todo or 'all'}-{file_name(result.name)}", result.output)
    return f"{problem} (see {log})"


def _check_with_clang(context: Context, outcome: Outcome, tree: Tree) -> None:
    """The starters again, by Clang's warnings; the tests are built by both compilers elsewhere."""
    clang = builds.newest_clang()
    if clang is None:
        outcome.notes.append("no Clang here, so its warnings were not asked for")
        return
    context.step(f"warnings of {Path(clang).name}")
    folder = BuildFolder("starters-clang")  # for its flags: nothing is built in it
    folder.configure(
        "student",
        tree.root,
        COURSE_WERROR="ON",
        CMAKE_CXX_COMPILER=clang,
        CMAKE_DISABLE_PRECOMPILE_HEADERS="ON",
    )
    checks = list(starter_checks(folder.commands(), tree.chapters))
    if not checks:
        raise CourseError(f"{folder.path} has no compile command of a chapter.")
    with ThreadPoolExecutor(cores()) as pool:
        outcome.fail_all(problem for problem in pool.map(_syntax_problem, checks) if problem)


def starter_checks(commands: Sequence[dict[str, str]], chapters: Path) -> Iterator[list[str]]:
    """Compilers' calls that see all of the starters: each program; then each chapter's headers
    with the flags of its tests, which may use everything that the chapter builds on."""
    flags_of: dict[str, list[str]] = {}
    for command in commands:
        words = shlex.split(command["command"])
        flags = words[: words.index("-o")]
        owner, file = _owner(command), Path(command["file"])
        if file.is_relative_to(chapters):
            yield [*flags, "-fsyntax-only", command["file"]]
        elif owner is not None and file.parent.name.startswith(owner):  # not another chapter's
            flags_of.setdefault(owner, flags)
    for owner, flags in flags_of.items():
        headers = sorted(chapters.glob(f"{owner}-*/*.hpp"))
        included = [word for header in headers for word in ("-include", str(header))]
        yield [*flags, "-fsyntax-only", "-x", "c++", *included, "/dev/null"]


def _syntax_problem(args: list[str]) -> str | None:
    finished = run(args, timeout_s=SYNTAX_TIMEOUT_S, env=builds.PLAIN_ENV)
    if finished.returncode == 0:
        return None
    return f"A starter has a warning of Clang: {builds.build_failure(finished.stderr)}"


def up_to(chapter: Chapter, task: Task, case: Case) -> bool:
    """Whether a case is one of this task, or of those before it."""
    return case.task in [each.id for each in chapter.tasks[: chapter.tasks.index(task) + 1]]


def prove_tasks(context: Context) -> Outcome:
    outcome = Outcome("tasks")
    memory = Memory(context, "tasks")
    variants = [
        Variant(task.id, chapter, with_one_task_open(chapter, task), partial(up_to, chapter, task))
        for chapter in all_chapters()
        for task in chapter.tasks
        if not memory.holds(task.id, of_chapter(chapter))
    ]
    memory.tell(outcome)
    if not variants:
        return outcome
    beside = origin()
    beside.build_shared(variants)

    def problem(variant: Variant) -> str | None:
        failed = beside.make(variant)
        if failed:
            said = builds.build_failure(failed.stdout + failed.stderr)
            return f"With task {variant.name} open its chapter does not compile: {said}"
        results = variant.run(is_green=lambda case: case.task != variant.name)
        found = "\n".join(_task_problems(context, variant.name, results))
        shutil.rmtree(variant.folder)
        if not found:
            memory.remember(variant.name, of_chapter(variant.chapter))
        return found or None

    check_all(outcome, "Opening tasks", variants, problem)
    return outcome


def _task_problems(context: Context, task: str, results: Sequence[TestResult]) -> Iterator[str]:
    """What is wrong with the tests of an open task, and of those before it."""
    for result in results:
        problem = (
            _red_problem(context, result, task)
            if task_of_test(result.name) == task
            else order_problem(result, task)
        )
        if problem:
            yield problem
