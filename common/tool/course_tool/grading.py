# SPDX-License-Identifier: MIT
"""`./course grade`: a student's chapters against the course's own tests, for teachers and CI.

Only chapters/ is the student's. Everything else (tests/, common/, cmake/, solutions/ and the tool)
comes from a commit, HEAD unless --course says otherwise, into a temporary copy; so does the
CMakeLists.txt of each chapter. Name a commit of your own where students can commit too. What is
graded is C++ that runs with your rights: grade strangers' code in a container.

A task is worth TASK_POINTS, and so is a chapter's echo contract (in one without, the tests that
belong to no task): in proportion to the tests that passed, rounded down. A skipped test counts as
failed (COURSE_REQUIRE_FEATURES=1). The contract runs once all tasks are whole. A chapter that does
not compile has 0 points, and the others are graded.

The exit code is 0 if everything was graded, whatever the points, and 1 if it could not be.

result.json, schema 1; keys never vary, and beside it result.xml holds the same as JUnit:

    {"schema": 1, "commit": "5356849…", "points": 35, "points_max": 50, "seconds": 61.2,
     "chapters": [
       {"number": "01", "slug": "blocking-echo", "title": "…", "points": 35, "points_max": 50,
        "compiled": true, "error": null or "the compiler's first error", "seconds": 61.2,
        "parts": [
          {"id": "01.1" or "01 contract" or "04 whole", "title": "…",
           "points": 10, "points_max": 10,
           "passed": 4, "failed": 0, "seconds": 0.3, "note": "" or "why nothing ran",
           "tests": [
             {"name": "01.1 …", "status": "passed" or failed, skipped, timeout, crashed,
              "seconds": 0.1, "message": "" or "what the test said"}]}]}]}
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tarfile
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from course_tool import builds, console, packages, paths, processes
from course_tool.builds import BuildError
from course_tool.chapters import Chapter, all_chapters, find_chapter
from course_tool.ctests import TestResult
from course_tool.diagnosis import diagnose
from course_tool.errors import CourseError
from course_tool.files import write_whole
from course_tool.foreground import run_on_terminal
from course_tool.groups import (
    Group,
    has_contract,
    run_contract,
    run_tasks,
    run_whole,
    targets_of,
    whole_of,
)

SCHEMA = 1
TASK_POINTS = 10
MESSAGE_CHARACTERS_MAX = 4000
GIT_TIMEOUT_S = 120
PRESET = "student"
REQUIRE_FEATURES = {"COURSE_REQUIRE_FEATURES": "1"}


@dataclass(frozen=True)
class TestGrade:
    __test__ = False  # pytest: this is not a test class

    name: str
    status: str
    seconds: float
    message: str


@dataclass(frozen=True)
class PartGrade:
    """A task, or the echo contract."""

    id: str
    title: str
    points: int
    points_max: int
    passed: int
    failed: int
    seconds: float
    note: str
    tests: tuple[TestGrade, ...]


@dataclass(frozen=True)
class ChapterGrade:
    number: str
    slug: str
    title: str
    points: int
    points_max: int
    compiled: bool
    error: str | None
    seconds: float
    parts: tuple[PartGrade, ...]


# ---- in the student's clone ----


def grade(out: Path, numbers: Sequence[str], commit: str, *, yes: bool) -> int:
    """Writes `out` and, beside it, the same name with .xml; returns the exit code."""
    _require_writable(out)
    hash_ = _find_commit(commit)
    packages.ensure("start", yes)
    with tempfile.TemporaryDirectory(prefix="course-grade-") as folder:
        copy = Path(folder) / "course"
        _copy_course(hash_, copy)
        _take_chapters(copy)
        # The copy's own tool grades: what a student has changed in ours does not count.
        returncode = run_on_terminal(
            [
                sys.executable, "-m", "course_tool", "grade-copy",
                "--out", out.absolute(), "--commit", hash_, *numbers,
            ],
            cwd=copy,
            env={"PYTHONPATH": str(copy / "common" / "tool")},
        )  # fmt: skip
    return returncode if returncode >= 0 else 128 - returncode


def _require_writable(out: Path) -> None:
    if out.is_dir():
        raise CourseError(f"--out {out} is a folder; name a file in it, such as {out}/result.json.")
    try:
        out.absolute().parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CourseError(f"--out {out}: {error.strerror} ({error.filename}).") from error
    if not os.access(out.absolute().parent, os.W_OK):
        raise CourseError(f"--out {out}: its folder may not be written to.")


def _git(*args: str) -> str:
    if not shutil.which("git"):
        raise CourseError("Grading takes the tests from git, and there is no git here. Install it.")
    finished = processes.run(["git", "-C", paths.ROOT, *args], timeout_s=GIT_TIMEOUT_S)
    if finished.returncode != 0:
        said = (finished.stderr.strip().splitlines() or ["it said nothing"])[0]
        raise CourseError(
            f"Grading takes the tests from git, and git {args[0]} failed: {said}. "
            "Grade in a git clone of the course."
        )
    return finished.stdout.strip()


def _find_commit(name: str) -> str:
    top = _git("rev-parse", "--show-toplevel")
    if Path(top).resolve() != paths.ROOT:
        raise CourseError(
            f"Grading takes the tests from git, and this folder is not a git clone of its own: it "
            f"lies in that of {top}. Grade in a git clone of the course."
        )
    return _git("rev-parse", "--verify", "--end-of-options", f"{name}^{{commit}}")


def _copy_course(commit: str, copy: Path) -> None:
    copy.mkdir()
    archive = copy.with_suffix(".tar")
    _git("archive", "--format=tar", f"--output={archive}", commit)
    with tarfile.open(archive) as tar:
        tar.extractall(copy, filter="data")
    archive.unlink()
    if paths.DEPS.is_dir():
        (copy / ".deps").symlink_to(paths.DEPS)  # Catch2, built once


def _take_chapters(copy: Path) -> None:
    shutil.rmtree(copy / "chapters", ignore_errors=True)
    for chapter in all_chapters(copy):
        yours = paths.CHAPTERS / chapter.folder
        chapter.starter.mkdir(parents=True)
        for file in sorted(yours.iterdir()) if yours.is_dir() else []:
            if file.is_file():
                shutil.copyfile(file, chapter.starter / file.name)
        # A broken one would keep CMake from configuring the other chapters too.
        shutil.copyfile(chapter.solution / "CMakeLists.txt", chapter.starter / "CMakeLists.txt")


# ---- in the copy ----


def grade_copy(out: Path, numbers: Sequence[str], commit: str) -> None:
    """Grades the chapters of the tree that this tool belongs to."""
    started = time.monotonic()
    chapters = [find_chapter(number) for number in numbers] or all_chapters()
    grades = [_grade_chapter(chapter) for chapter in chapters]
    result = {
        "schema": SCHEMA,
        "commit": commit,
        "points": sum(each.points for each in grades),
        "points_max": sum(each.points_max for each in grades),
        "seconds": round(time.monotonic() - started, 1),
        "chapters": [asdict(each) for each in grades],
    }
    _write(out, json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    _write(out.with_suffix(".xml"), ElementTree.tostring(junit(grades), encoding="utf-8"))
    _show(grades, out)


def _grade_chapter(chapter: Chapter) -> ChapterGrade:
    started = time.monotonic()
    error = None
    try:
        builds.build(PRESET, targets_of(chapter))
        parts = _graded_parts(chapter)
    except BuildError as failure:
        error = str(failure)
        names = [(task.id, task.title) for task in chapter.tasks]
        names += filter(None, [whole_of(chapter)])
        parts = [_empty_part(*each, "the chapter does not compile") for each in names]
    return ChapterGrade(
        number=chapter.number,
        slug=chapter.slug,
        title=chapter.title,
        points=sum(part.points for part in parts),
        points_max=sum(part.points_max for part in parts),
        compiled=error is None,
        error=error,
        seconds=round(time.monotonic() - started, 1),
        parts=tuple(parts),
    )


def _graded_parts(chapter: Chapter) -> list[PartGrade]:
    parts = [_grade_group(group) for group in run_tasks(PRESET, chapter.tasks, REQUIRE_FEATURES)]
    whole = whole_of(chapter)
    if whole is None:
        return parts
    if any(part.points != part.points_max for part in parts):
        return [*parts, _empty_part(*whole, "it runs once all tasks are whole")]
    if has_contract(chapter):
        return [*parts, _grade_group(run_contract(PRESET, chapter, REQUIRE_FEATURES))]
    return [*parts, _grade_group(run_whole(PRESET, chapter, REQUIRE_FEATURES)[0])]


def _empty_part(key: str, title: str, note: str) -> PartGrade:
    return PartGrade(key, title, 0, TASK_POINTS, 0, 0, 0.0, note, ())


def _grade_group(group: Group) -> PartGrade:
    total = len(group.tests)
    return PartGrade(
        id=group.key,
        title=group.title,
        points=TASK_POINTS * group.green_count // total if total else 0,
        points_max=TASK_POINTS,
        passed=group.green_count,
        failed=total - group.green_count,
        seconds=round(sum(test.seconds for test in group.tests), 2),
        note="" if total else "the course has no such test",
        tests=tuple(_grade_test(test) for test in group.tests),
    )


def _grade_test(test: TestResult) -> TestGrade:
    return TestGrade(test.name, test.status, round(test.seconds, 2), _message(test))


def _message(test: TestResult) -> str:
    """What a student is told: the test's own words where there are any."""
    if test.status == "passed":
        return ""
    if test.status == "skipped":
        return test.output
    diagnosis = diagnose(test.output)
    lines = [f"{test.status}: {diagnosis.signal or ''}".rstrip(": ")] * (test.status != "failed")
    if diagnosis.todo:
        lines.append(f"{diagnosis.todo.task} not written yet: {diagnosis.todo.where}")
    for finding in diagnosis.findings:
        texts = (finding.message, finding.expression, finding.expansion, finding.exception)
        lines += [text for text in texts if text] + [finding.where]
    if not diagnosis.findings:
        lines += diagnosis.tail
    return "\n".join(lines)[:MESSAGE_CHARACTERS_MAX]


def junit(grades: Sequence[ChapterGrade]) -> ElementTree.Element:
    """One testsuite a chapter; a part that did not run is one test case that failed."""
    root = ElementTree.Element("testsuites", name="Ring by Ring")
    for grade_ in grades:
        suite = ElementTree.SubElement(root, "testsuite", name=f"{grade_.number}-{grade_.slug}")
        for part in grade_.parts:
            tests = part.tests or (TestGrade(f"{part.id} {part.title}", "failed", 0.0, part.note),)
            for test in tests:
                _junit_case(suite, part, test)
        cases = suite.findall("testcase")
        suite.set("tests", str(len(cases)))
        suite.set("failures", str(len(suite.findall("testcase/failure"))))
        suite.set("time", str(grade_.seconds))
        if grade_.error:
            ElementTree.SubElement(suite, "system-err").text = _xml_text(grade_.error)
    return root


def _junit_case(suite: ElementTree.Element, part: PartGrade, test: TestGrade) -> None:
    case = ElementTree.SubElement(
        suite, "testcase", name=test.name, classname=part.id, time=str(test.seconds)
    )
    if test.status != "passed":
        failure = ElementTree.SubElement(case, "failure", message=test.status)
        failure.text = _xml_text(test.message)


def _xml_text(text: str) -> str:
    """XML 1.0 has no way to write most control characters."""
    return "".join(each if each.isprintable() or each in "\n\t" else "\ufffd" for each in text)


def _write(file: Path, content: str | bytes) -> None:
    try:
        write_whole(file, content)
    except OSError as error:
        raise CourseError(f"Could not write {file}: {error.strerror}.") from error


def _show(grades: Sequence[ChapterGrade], out: Path) -> None:
    rows = [
        (part.id, part.title, f"{part.points} of {part.points_max}", part.note)
        for each in grades
        for part in each.parts
    ]
    console.out.print(console.table("Grades", ("part", "", "points>", ""), rows))
    for each in grades:
        if each.error:
            console.out.print(f"Chapter {each.number} does not compile:\n{each.error}")
    points = sum(each.points for each in grades)
    points_max = sum(each.points_max for each in grades)
    console.out.print(f"{points} of {points_max} points: {out}, {out.with_suffix('.xml').name}")
