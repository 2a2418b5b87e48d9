# SPDX-License-Identifier: MIT
"""`./course grade --class`: many clones, one a student, against one build of the course.

The copy of the course that grading.py has made is built once, with the solutions. They are graded
first: if they do not get all points, the machine is at fault, and nobody is graded. Then one
student's files after the other take the place of the solutions' in chapters/, ninja compiles what
includes them, and the programs are set aside, so that the next student's can be built while these
are tested. A student who hangs holds up nobody else, and one who crashes ends their own tests.

Beside grades.csv stands the folder grades/ with a JSON and an XML file for each student, as
./course grade writes them. What stands there already, of the same files, is not graded again: a run
that was stopped goes on, and only those who handed in anew are graded anew.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from course_tool import builds, console, grading, processes
from course_tool.bench import machine
from course_tool.chapters import Chapter
from course_tool.errors import CourseError
from course_tool.files import digest, fill
from course_tool.grading import CONDITIONS, PRESET, ChapterGrade
from course_tool.marks import starter_files
from course_tool.paths import CHAPTERS
from course_tool.verify.trees import cores

KNOWN = ".graded.json"  # in the folder of the results: of which files each of them is
SPARE_STUDENTS = 2  # tested at once, beyond one for each processor: some of them hang
OTHERS_SHARE_MAX = 0.3  # of the processors; a contract has deadlines
NOTE_CHARACTERS_MAX = 200


@dataclass(frozen=True)
class Student:
    clone: Path
    chapters: tuple[Chapter, ...]

    @property
    def shown(self) -> str:
        """The folder's name, which may hold anything, for a terminal and a CSV."""
        name = os.fsencode(self.clone.name).decode("utf-8", errors="replace")
        return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in name)

    @property
    def result_name(self) -> str:
        """The name of their JSON; of its own, whatever the folder is called."""
        if re.fullmatch(r"\w[\w .@+-]{0,99}", self.clone.name):
            return f"{self.clone.name}.json"
        plain = re.sub(r"[^\w.-]+", "-", self.shown)[:60].lstrip("-.")
        return f"{plain}-{digest(os.fsencode(self.clone.name))[:8]}.json"

    @cached_property
    def files(self) -> list[tuple[dict[str, bytes], str]]:
        return [grading.files_of(self.clone, chapter) for chapter in self.chapters]

    def fingerprint(self, commit: str) -> str:
        folders = (chapter.folder for chapter in self.chapters)
        parts = [f"{commit} {' '.join(folders)}".encode()]
        for files, _ in self.files:
            for name, content in sorted(files.items()):
                parts += [os.fsencode(name), str(len(content)).encode(), content]
        return digest(b"\0".join(parts))


class Results:
    """The folder beside the CSV."""

    def __init__(self, out: Path, commit: str) -> None:
        self._folder = out.with_suffix("")
        self._commit = commit
        self._known: dict[str, str] = {}
        try:
            self._known = dict(json.loads((self._folder / KNOWN).read_text()))
        except (OSError, ValueError):
            pass  # none yet, or nothing that could be read: all are graded

    def of(self, student: Student) -> dict[str, Any] | None:
        """None if they have to be graded."""
        if self._known.get(student.result_name) != student.fingerprint(self._commit):
            return None
        try:
            return json.loads((self._folder / student.result_name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    def keep(self, student: Student, grades: Sequence[ChapterGrade]) -> None:
        grading.write_result(self._folder / student.result_name, grades, self._commit)
        self._known[student.result_name] = student.fingerprint(self._commit)
        grading.write_file(self._folder / KNOWN, json.dumps(self._known, indent=1) + "\n")


class Course:
    """The copy that all students are built in, one at a time."""

    def __init__(self) -> None:
        self._building = threading.Lock()
        self._number = 0

    def grade(self, student: Student) -> list[ChapterGrade]:
        with console.without_progress():
            return [
                self._grade(chapter, files)
                for chapter, (files, _) in zip(student.chapters, student.files, strict=True)
            ]

    def _grade(self, chapter: Chapter, files: dict[str, bytes]) -> ChapterGrade:
        with self._building:
            started = time.monotonic()
            fill(chapter.starter, files)
            error = grading.build_error(chapter)
            self._number += 1
            aside = f"class/{self._number}"
            if error is None:
                _set_aside(chapter, builds.folder(aside))
        try:
            env = {**CONDITIONS, "COURSE_PROGRAM_DIR": str(builds.folder(aside) / "bin")}
            return grading.grade_chapter(chapter, error, started, aside, env)
        finally:
            _clear(builds.folder(aside))

    def grade_solutions(self, chapters: Sequence[Chapter]) -> None:
        """Builds everything, and makes sure that this machine takes no points away."""
        shutil.rmtree(builds.folder("class"), ignore_errors=True)
        for chapter in chapters:
            names = starter_files(chapter)
            grade = self._grade(chapter, {n: (chapter.solution / n).read_bytes() for n in names})
            lacking = [part for part in grade.parts if part.points < part.points_max]
            if lacking:
                red = [test for part in lacking for test in part.tests if test.status != "passed"]
                said = grade.error or "".join(f"\n{each.name}: {each.message}" for each in red[:1])
                raise CourseError(
                    f"Chapter {chapter.number}: on this machine the course's own solution has "
                    f"{grade.points} of {grade.points_max} points, so nobody is graded. "
                    f"`./course doctor` may say why; or try again when it is quiet. {said}"
                )


def _set_aside(chapter: Chapter, aside: Path) -> None:
    """The chapter's programs, its headers and what CTest knows of it, where no build changes them:
    CTest's files name the build folder, and here they name this one."""
    built = builds.folder(PRESET)
    shutil.rmtree(aside, ignore_errors=True)
    (aside / "bin").mkdir(parents=True)
    for file in (built / "bin").iterdir():
        if file.name.startswith((f"{chapter.number}-", "echo-contract")):
            shutil.copy2(file, aside / "bin")
    shutil.copytree(chapter.starter, aside / "chapters" / chapter.folder)
    for file in _files_of_ctest(built):
        text = file.read_text(encoding="utf-8", errors="surrogateescape")
        text = text.replace(str(built), str(aside)).replace(str(CHAPTERS), str(aside / "chapters"))
        copied = aside / file.relative_to(built)
        copied.parent.mkdir(parents=True, exist_ok=True)
        copied.write_text(text, encoding="utf-8", errors="surrogateescape")


def _files_of_ctest(built: Path) -> Iterator[Path]:
    for folder, below, names in os.walk(built):
        below[:] = [name for name in below if name not in ("CMakeFiles", "Testing", "bin")]
        yield from (Path(folder, name) for name in names if name.endswith(".cmake"))


def _clear(aside: Path) -> None:
    """Ends whatever a student's program has left behind, and takes its files away."""
    for link in (*Path("/proc").glob("[0-9]*/exe"), *Path("/proc").glob("[0-9]*/cwd")):
        try:
            if link.readlink().is_relative_to(aside):
                os.kill(int(link.parent.name), signal.SIGKILL)
        except OSError:
            continue  # it ended while we looked, or is not ours
    shutil.rmtree(aside, ignore_errors=True)


def grade_students(folder: Path, out: Path, numbers: Sequence[str], commit: str) -> None:
    chapters = tuple(grading.chapters_named(numbers))
    students = [Student(clone, chapters) for clone in _clones(folder)]
    results = Results(out, commit)
    waiting = [student for student in students if results.of(student) is None]
    before = _ticks()
    if waiting:
        _grade_all(waiting, chapters, results)
    others = others_share(before, _ticks())
    columns = ["student", "points", "of", *_parts(chapters), "note"]
    rows = [_row(student, results.of(student)) for student in students]
    grading.write_file(out, _csv([columns, *rows]))
    _show(columns, rows, chapters)
    known = len(students) - len(waiting)
    console.out.print(f"{len(students)} students, {known} of them graded before: {out}")
    if waiting and others > OTHERS_SHARE_MAX:
        console.out.print(
            f"Other programs used {others * 100:.0f} % of the processors meanwhile. Where somebody "
            "lacks a point or two of a contract, remove their JSON and grade them again when it is "
            "quiet."
        )


class Ticks(NamedTuple):
    """Of all processors since the machine started, and of ourselves, as /proc/stat counts."""

    idle: float
    all: float
    own: float


def _ticks() -> Ticks:
    own_s = sum(os.times()[:4])  # of our children, too: those that have ended
    idle, total = machine.parse_cpu_ticks(Path("/proc/stat").read_text())
    return Ticks(idle, total, own_s * os.sysconf("SC_CLK_TCK"))


def others_share(before: Ticks, after: Ticks) -> float:
    """What others used of all processors in between."""
    idle, passed, own = (late - early for early, late in zip(before, after, strict=True))
    return max(0.0, (passed - idle - own) / max(1.0, passed))


def _clones(folder: Path) -> list[Path]:
    if (folder / "chapters").is_dir():
        raise CourseError(
            f"--class {folder}: that is a clone. It takes the folder that holds one a student."
        )
    try:
        found = [each for each in folder.iterdir() if each.is_dir() and each.name[0] != "."]
    except OSError as error:
        raise CourseError(f"--class {folder}: {error.strerror}.") from error
    if not found:
        raise CourseError(f"--class {folder}: there is no folder in it; it takes one a student.")
    return sorted(found)


def _grade_all(
    waiting: Sequence[Student], chapters: Sequence[Chapter], results: Results
) -> None:
    course = Course()
    course.grade_solutions(chapters)
    pool = ThreadPoolExecutor(cores() + SPARE_STUDENTS)
    try:
        with console.progress("Grading", total=len(waiting)) as steps:
            jobs = {pool.submit(course.grade, student): student for student in waiting}
            for job in as_completed(jobs):
                results.keep(jobs[job], job.result())
                steps.step(jobs[job].shown)
    except BaseException:
        processes.kill_all()  # or we would wait for them
        raise
    finally:
        pool.shutdown(cancel_futures=True)


# ---- what a teacher sees ----


def _parts(chapters: Sequence[Chapter]) -> list[str]:
    return [key for chapter in chapters for key, _ in grading.parts_of(chapter)]


def _row(student: Student, result: dict[str, Any] | None) -> list[str]:
    """One of the CSV: as many columns for everybody."""
    assert result is not None, "they were graded before, or just now"
    notes = [] if (student.clone / "chapters").is_dir() else ["there is no chapters/ in it"]
    for chapter, (_, left_out) in zip(student.chapters, student.files, strict=True):
        notes += [f"{chapter.number}: {left_out}"] if left_out else []
    for chapter in result["chapters"]:
        what = "could not be tested" if chapter["compiled"] else "does not compile"
        notes += [f"{chapter['number']} {what}: {chapter['error']}"] if chapter["error"] else []
    points = [part["points"] for chapter in result["chapters"] for part in chapter["parts"]]
    sums = (result["points"], result["points_max"])
    return [student.shown, *map(str, (*sums, *points)), _note(notes)]


def _note(notes: Sequence[str]) -> str:
    return " ".join("; ".join(each.partition("\n")[0] for each in notes).split())[
        :NOTE_CHARACTERS_MAX
    ]


def _csv(rows: Sequence[Sequence[str]]) -> str:
    text = io.StringIO()
    for row in rows:
        # A spreadsheet would compute what begins like a formula.
        safe = [f"'{cell}" if cell[:1] in ("=", "+", "-", "@") else cell for cell in row]
        csv.writer(text, lineterminator="\n").writerow(safe)
    return text.getvalue()


def _show(columns: Sequence[str], rows: Sequence[Sequence[str]], of: Sequence[Chapter]) -> None:
    """Of one chapter its parts, of many their sums: a terminal is narrow."""
    if len(of) > 1:
        ends = [3]
        for chapter in of:
            ends.append(ends[-1] + len(grading.parts_of(chapter)))
        rows = [
            [*row[:3], *(str(sum(map(int, row[a:b]))) for a, b in pairwise(ends)), row[-1]]
            for row in rows
        ]
        columns = [*columns[:3], *(chapter.number for chapter in of), columns[-1]]
    heads = [columns[0], *(f"{each}>" for each in columns[1:-1])]
    console.out.print(console.table("Grades", heads, [row[:-1] for row in rows]))
    for name, *_, note in rows:
        if note:
            console.out.print(f"{name}: {note}")
