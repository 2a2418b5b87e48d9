# SPDX-License-Identifier: MIT
"""The programs that a benchmark runs: which they are, whose they are, and building them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from course_tool import builds
from course_tool.chapters import Chapter, Contender
from course_tool.errors import CourseError


SERVER = "server"  # what a chapter's own server is called, whatever it serves


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
    path: str = ""  # on the ladder, what an HTTP server is asked for; empty: it echoes

    @property
    def target(self) -> str:
        return f"{self.chapter}-{self.program}"

    def run_command(self) -> list[str | Path]:
        """Of a program that serves nobody, and so has no port."""
        return [builds.program(self.whose.preset, self.target), *self.args]

    def command(self) -> list[str | Path]:
        """Of a server, on a port that the kernel chooses."""
        return [*self.run_command(), "--port", "0"]


def of_contender(each: Contender, whose: Whose = Whose.REFERENCE) -> Subject:
    return Subject(each.name, each.chapter, each.program, tuple(each.args), whose, each.baseline)


def of_checkpoint(chapter: Chapter, measured: Whose) -> list[Subject]:
    """The contenders of a checkpoint; the chapter's own servers come as yours and as the reference.

    A program that is there to be compared with, and not to be kept, comes as the reference alone:
    it neither keeps the echo contract nor is the chapter's server. In a chapter without a server
    these are the programs that its counts run.
    """
    if not chapter.checkpoint.contenders:
        programs = dict.fromkeys(count.program for count in chapter.checkpoint.counts)
        return [Subject(name, chapter.number, name, (), measured) for name in programs]
    subjects = []
    for contender in chapter.checkpoint.contenders:
        subject = of_contender(contender)
        own = contender.chapter == chapter.number and _is_kept(chapter, contender.program)
        if measured is Whose.YOURS and own:
            name = f"{contender.name}, yours"
            subjects.append(replace(subject, name=name, whose=measured, baseline=False))
            subject = replace(subject, name=f"{contender.name}, reference")
        subjects.append(subject)
    return subjects


def _is_kept(chapter: Chapter, program: str) -> bool:
    return program == SERVER or chapter.program(program).contract


def of_timing(chapter: Chapter, measured: Whose) -> list[Subject]:
    """The contenders that time themselves, the baseline too, all out of one tree.

    Those of earlier chapters are the reference's in any case.
    """
    timing = chapter.checkpoint.timing
    return [
        of_contender(each, measured if each.chapter == chapter.number else Whose.REFERENCE)
        for each in (timing.contenders if timing else ())
    ]


def of_ladder(chapters: Sequence[Chapter]) -> list[Subject]:
    """The reference server of every chapter that has one; the first is the baseline.

    That is the first program which keeps the echo contract. Where the checkpoint's load names a
    path, it is the chapter's own server among the contenders, with its flags.
    """
    found = [subject for chapter in chapters for subject in _rung(chapter)[:1]]
    if not found:
        raise CourseError("No chapter has a server yet: there is nothing to measure.")
    return [replace(found[0], baseline=True), *found[1:]]


def _rung(chapter: Chapter) -> list[Subject]:
    name, number, load = f"{chapter.number} {chapter.slug}", chapter.number, chapter.checkpoint.load
    if load and load.path:
        return [
            Subject(name, number, each.program, tuple(each.args), Whose.REFERENCE, path=load.path)
            for each in chapter.checkpoint.contenders
            if (each.chapter, each.program) == (number, SERVER)
        ]
    contracts = (program.name for program in chapter.programs if program.contract)
    return [Subject(name, number, program, (), Whose.REFERENCE) for program in contracts]


def build(subjects: Sequence[Subject], chapter: Chapter | None = None) -> None:
    """Builds the programs, each in its tree, and the load generator for servers; all optimized."""
    targets = {
        whose: list(dict.fromkeys(each.target for each in subjects if each.whose is whose))
        for whose in Whose
    }
    if chapter is None or chapter.checkpoint.contenders:
        targets[Whose.REFERENCE].append("loadgen")
    for whose, wanted in targets.items():
        try:
            if wanted:
                builds.build(whose.preset, wanted)
        except builds.BuildError as error:
            if whose is Whose.REFERENCE:
                raise
            number = chapter.number if chapter else "NN"
            raise builds.BuildError(
                f"{error}\nThe reference can be measured without your code: "
                f"./course bench {number} --solution"
            ) from error
