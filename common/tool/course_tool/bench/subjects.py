# SPDX-License-Identifier: MIT
"""The programs that a benchmark runs: which they are, whose they are, and building them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from course_tool import builds
from course_tool.chapters import Chapter, Contender
from course_tool.errors import CourseError


class Whose(StrEnum):
    YOURS = "yours"
    REFERENCE = "reference"

    @property
    def preset(self) -> str:
        return "student-release" if self is Whose.YOURS else "release"


@dataclass(frozen=True)
class Subject:
    """One server under test, or one program that runs to its end."""

    name: str  # unique in one benchmark
    chapter: str
    program: str  # without the chapter's number
    args: tuple[str, ...]
    whose: Whose
    baseline: bool = False

    @property
    def target(self) -> str:
        return f"{self.chapter}-{self.program}"

    def run_command(self) -> list[str | Path]:
        """Of a program that serves nobody, and so has no port."""
        return [builds.program(self.whose.preset, self.target), *self.args]

    def command(self) -> list[str | Path]:
        """Of a server, on a port that the kernel chooses."""
        return [*self.run_command(), "--port", "0"]

    def as_json(self) -> dict[str, object]:
        return {
            "name": self.name,
            "chapter": self.chapter,
            "program": self.program,
            "args": list(self.args),
            "whose": str(self.whose),
            "baseline": self.baseline,
        }


def _subject(contender: Contender, name: str, whose: Whose) -> Subject:
    return Subject(
        name=name,
        chapter=contender.chapter,
        program=contender.program,
        args=contender.args,
        whose=whose,
        baseline=contender.baseline and whose is Whose.REFERENCE,
    )


def of_checkpoint(chapter: Chapter, measured: Whose) -> list[Subject]:
    """The contenders of a checkpoint; the chapter's own come as yours and as the reference.

    In a chapter without a server these are the programs that its counts run.
    """
    if not chapter.checkpoint.contenders:
        programs = dict.fromkeys(count.program for count in chapter.checkpoint.counts)
        return [Subject(name, chapter.number, name, (), measured) for name in programs]
    subjects = []
    for contender in chapter.checkpoint.contenders:
        if measured is Whose.YOURS and contender.chapter == chapter.number:
            subjects.append(_subject(contender, f"{contender.name}, yours", Whose.YOURS))
            name = f"{contender.name}, reference"
            subjects.append(_subject(contender, name, Whose.REFERENCE))
        else:
            subjects.append(_subject(contender, contender.name, Whose.REFERENCE))
    return subjects


def of_timing(chapter: Chapter, measured: Whose) -> list[Subject]:
    """The contenders that time themselves, the baseline too, all out of one tree.

    Those of earlier chapters are the reference's in any case.
    """
    if chapter.checkpoint.timing is None:
        return []
    return [
        Subject(
            name=each.name,
            chapter=each.chapter,
            program=each.program,
            args=each.args,
            whose=measured if each.chapter == chapter.number else Whose.REFERENCE,
            baseline=each.baseline,
        )
        for each in chapter.checkpoint.timing.contenders
    ]


def of_ladder(chapters: Sequence[Chapter]) -> list[Subject]:
    """The reference server of every chapter; the first one is the baseline."""
    subjects = []
    for chapter in chapters:
        served = [program.name for program in chapter.programs if program.contract]
        if served:
            name = f"{chapter.number} {chapter.slug}"
            first = not subjects
            subjects.append(Subject(name, chapter.number, served[0], (), Whose.REFERENCE, first))
    if not subjects:
        raise CourseError("No chapter has a server yet: there is nothing to measure.")
    return subjects


def build(subjects: Sequence[Subject], chapter: Chapter | None = None) -> None:
    """Builds the programs, each in its tree, and the load generator for servers; all optimized."""
    targets: dict[Whose, list[str]] = defaultdict(list)
    for subject in subjects:
        if subject.target not in targets[subject.whose]:
            targets[subject.whose].append(subject.target)
    if Whose.YOURS in targets:
        try:
            builds.build(Whose.YOURS.preset, targets[Whose.YOURS])
        except builds.BuildError as error:
            number = chapter.number if chapter else "NN"
            raise builds.BuildError(
                f"{error}\nThe reference can be measured without your code: "
                f"./course bench {number} --solution"
            ) from error
    has_clients = chapter is None or bool(chapter.checkpoint.contenders)
    reference = [*targets[Whose.REFERENCE], *(["loadgen"] if has_clients else [])]
    if reference:
        builds.build(Whose.REFERENCE.preset, reference)
