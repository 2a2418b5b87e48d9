# SPDX-License-Identifier: MIT
"""`./course grade`: a student's chapters against the course's own tests, for teachers and CI.

Only chapters/ is the student's. Everything else (tests/, common/, cmake/, solutions/ and the tool)
comes from a commit, HEAD unless --course says otherwise, into a temporary copy; so does the
CMakeLists.txt of each chapter. Name a commit of your own where students can commit too. What is
graded is C++ that runs with your permissions: grade strangers' code in a virtual machine.

A task is worth TASK_POINTS, and so is a chapter's echo contract (in one without, the tests that
belong to no task): in proportion to the tests that passed, rounded down. A skipped test counts as
failed. The contract runs once all tasks are whole, and what fails of it is tried once more. A
chapter that does not compile, or whose tests cannot be listed, has 0 points, and the others are
graded.

The exit code is 0 if everything was graded, whatever the points, and 1 if it could not be.

class_grading.py does the same for many clones.

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
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from course_tool import builds, console, packages, paths, processes
from course_tool.chapters import Chapter, all_chapters, find_chapter
from course_tool.ctests import CPU_LIMIT, TestResult
from course_tool.diagnosis import diagnose
from course_tool.errors import CourseError
from course_tool.files import fill, locked, write_whole
from course_tool.foreground import run_on_terminal
from course_tool.groups import (
    Group,
    graded_targets,
    has_contract,
    run_contract,
    run_others,
    run_tasks,
    whole_of,
)
from course_tool.marks import CPP_SUFFIXES, starter_files

SCHEMA = 1
TASK_POINTS = 10
MESSAGE_CHARACTERS_MAX = 4000
FILE_BYTES_MAX = 1024 * 1024  # a core dump is no source
GIT_TIMEOUT_S = 120
PRESET = "grade"
# A machine that grades is busy, and takes its time; a loop without end may take no more of it.
CONDITIONS = {"COURSE_REQUIRE_FEATURES": "1", "COURSE_PATIENCE": "3", CPU_LIMIT: "20"}
COMPILER_CPU_S = 300  # for one file; the longest takes a few seconds


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
        for chapter in all_chapters(copy):
            files, left_out = files_of(paths.ROOT, chapter)
            fill(chapter.starter, files)
            if left_out:
                console.err.print(f"chapters/{chapter.folder}: {left_out}")
        return _run_in(copy, "--out", out.absolute(), "--commit", hash_, *numbers)


def grade_class(
    students: Path, out: Path, numbers: Sequence[str], commit: str, *, yes: bool
) -> int:
    """The same for a folder of clones, in a copy that is kept: the next run goes on where this one
    was stopped."""
    _require_writable(out)
    if not out.suffix:
        raise CourseError(f"--out {out}: with --class it takes a name such as {out}.csv.")
    hash_ = _find_commit(commit)
    packages.ensure("start", yes)
    kept = paths.BUILD / "class"
    copy, stamp = kept / "course", kept / "commit"
    with locked(kept / "lock", lambda: console.err.print("Waiting for another ./course grade …")):
        if not stamp.is_file() or stamp.read_text() != hash_:
            stamp.unlink(missing_ok=True)
            shutil.rmtree(copy, ignore_errors=True)
            _copy_course(hash_, copy)
            stamp.write_text(hash_)
        where = ("--class", students.absolute(), "--out", out.absolute())
        return _run_in(copy, *where, "--commit", hash_, *numbers)


def _run_in(copy: Path, *args: str | Path) -> int:
    """The copy's own tool grades: what a student has changed in ours does not count."""
    returncode = run_on_terminal(
        [sys.executable, "-m", "course_tool", "grade-copy", *args],
        cwd=copy,
        env={"PYTHONPATH": str(copy / "common" / "tool")},
    )
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


def files_of(clone: Path, chapter: Chapter) -> tuple[dict[str, bytes], str]:
    """A student's files of a chapter, as the course takes them; and a sentence on what it leaves
    out, or "".

    A link is followed inside of the clone: beyond it is somebody else's work. What is missing says
    so when it is compiled: CMake would not configure the other chapters, either.
    """
    mine = os.path.realpath(clone)
    starter = starter_files(chapter)
    files = {
        name: f'#error "chapters/{chapter.folder}/{name} is missing"\n'.encode()
        for name in starter
        if Path(name).suffix in CPP_SUFFIXES
    }
    left_out = 0
    for file in _entries(clone / "chapters" / chapter.folder):
        real = Path(os.path.realpath(file))
        if not real.is_file():
            continue
        if real.is_relative_to(mine) and real.stat().st_size <= FILE_BYTES_MAX:
            files[file.name] = real.read_bytes()
        else:
            left_out += 1
    # A broken one would keep CMake from configuring the other chapters too.
    files["CMakeLists.txt"] = starter["CMakeLists.txt"]
    why = "links that lead out of the clone, or larger than 1 MiB"
    return files, f"left out {left_out} of its files: {why}." if left_out else ""


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:  # it is gone, or no folder
        return []


# ---- in the copy ----


def grade_copy(out: Path, numbers: Sequence[str], commit: str) -> None:
    """Grades the chapters of the tree that this tool belongs to."""
    grades = []
    for chapter in chapters_named(numbers):
        started = time.monotonic()
        error = build_error(chapter)
        grades.append(grade_chapter(chapter, error, started))
    write_result(out, grades, commit)
    _show(grades, out)


def chapters_named(numbers: Sequence[str]) -> list[Chapter]:
    return [find_chapter(number) for number in numbers] or all_chapters()


def build_error(chapter: Chapter) -> str | None:
    """Builds a chapter with its tests; the compiler's first error, if there is one."""
    try:
        builds.build(PRESET, graded_targets(chapter), COMPILER_CPU_S)
    except CourseError as failure:
        return str(failure).partition("\n  The full log: ")[0]  # it goes with the copy
    return None


def grade_chapter(
    chapter: Chapter,
    error: str | None,
    started: float,
    preset: str = PRESET,
    env: Mapping[str, str] = CONDITIONS,
) -> ChapterGrade:
    """Tests a chapter that was built, unless `error` says that it was not."""
    compiled = error is None
    parts, why = None, "the chapter does not compile"
    if compiled:
        try:
            parts = _graded_parts(chapter, preset, env)
        except CourseError as failure:  # the program of its tests does not even name them
            error, why = str(failure), "its tests could not be run"
    if parts is None:
        parts = [_empty_part(*each, why) for each in parts_of(chapter)]
    return ChapterGrade(
        number=chapter.number,
        slug=chapter.slug,
        title=chapter.title,
        points=sum(part.points for part in parts),
        points_max=sum(part.points_max for part in parts),
        compiled=compiled,
        error=error,
        seconds=round(time.monotonic() - started, 1),
        parts=tuple(parts),
    )


def parts_of(chapter: Chapter) -> list[tuple[str, str]]:
    """Id and title of what makes points in a chapter."""
    names = [(task.id, task.title) for task in chapter.tasks]
    return names + list(filter(None, [whole_of(chapter)]))


def _graded_parts(chapter: Chapter, preset: str, env: Mapping[str, str]) -> list[PartGrade]:
    parts = [_grade_group(group) for group in run_tasks(preset, chapter.tasks, env)]
    whole = whole_of(chapter)
    if whole is None:
        return parts
    if any(part.points != part.points_max for part in parts):
        return [*parts, _empty_part(*whole, "it runs once all tasks are whole")]
    if has_contract(chapter):
        return [*parts, _grade_group(run_contract(preset, chapter, env))]
    return [*parts, _grade_group(run_others(preset, chapter, env))]


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


def write_result(out: Path, grades: Sequence[ChapterGrade], commit: str) -> None:
    """The JSON, and the XML beside it."""
    result = {
        "schema": SCHEMA,
        "commit": commit,
        "points": sum(each.points for each in grades),
        "points_max": sum(each.points_max for each in grades),
        "seconds": round(sum(each.seconds for each in grades), 1),
        "chapters": [asdict(each) for each in grades],
    }
    write_file(out, json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    write_file(out.with_suffix(".xml"), ElementTree.tostring(junit(grades), encoding="utf-8"))


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


def write_file(file: Path, content: str | bytes) -> None:
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
            what = "could not be tested" if each.compiled else "does not compile"
            console.out.print(f"Chapter {each.number} {what}:\n{each.error}")
    points = sum(each.points for each in grades)
    points_max = sum(each.points_max for each in grades)
    console.out.print(f"{points} of {points_max} points: {out}, {out.with_suffix('.xml').name}")
