# SPDX-License-Identifier: MIT
"""Chapters of other texts, each tried beside one build in which every chapter is solved.

A mistake, or a task that is open, changes a file or two of a chapter; and few cases are to notice.
So only the objects that include what was changed are compiled again, by the build's own commands,
into a folder of the variant's own, and are linked there with the build's other objects and
libraries. Any number of variants can be tried at once.

Half of such an object is headers that have not changed. Clang can put them into a precompiled
header that stands on the build's own: one for all variants that change the same files.
"""

from __future__ import annotations

import functools
import shlex
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from course_tool import builds
from course_tool.chapters import Chapter
from course_tool.ctests import TestResult, run_case
from course_tool.errors import CourseError
from course_tool.files import digest
from course_tool.paths import ROOT, relative
from course_tool.processes import Finished, run
from course_tool.verify.cases import Case, cases_in, files_of_cases, with_cases
from course_tool.verify.dependencies import included
from course_tool.verify.solutions import NOTHING_SKIPPED, PATIENT, build_folder
from course_tool.verify.trees import (
    TEST_TIMEOUT_S,
    WORK,
    BuildFolder,
    cores,
    solution_texts,
)

COMPILE_TIMEOUT_S = 600  # seconds on a quiet machine


@dataclass(frozen=True)
class Variant:
    name: str  # of its folder
    chapter: Chapter
    texts: Mapping[str, str]  # of all files of the chapter
    wanted: Callable[[Case], bool]  # the cases that are to run

    @property
    def folder(self) -> Path:
        return WORK / "variants" / self.name

    @functools.cached_property
    def files(self) -> dict[str, tuple[Path, list[str]]]:
        """By name the tests' files that hold wanted cases, and the programs that those run."""
        return {file.name: (file, run) for file, run in files_of_cases(self.chapter, self.wanted)}

    @functools.cached_property
    def programs(self) -> list[str]:
        """The one of the cases comes first, then those that they run."""
        run = (name for _, names in self.files.values() for name in names)
        return list(dict.fromkeys([f"{self.chapter.number}-cases", *run]))

    @functools.cached_property
    def changed(self) -> set[str]:
        solved = solution_texts(self.chapter)
        names = [name for name, text in self.texts.items() if solved.get(name) != text]
        return {f"solutions/{self.chapter.folder}/{name}" for name in names}

    def write(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        (self.folder / self.chapter.folder).mkdir(parents=True)
        for name, text in self.texts.items():
            file, solved = self.folder / self.chapter.folder / name, self.chapter.solution / name
            if relative(solved) in self.changed:
                file.write_text(text, encoding="utf-8")
            else:  # the same file, for `#pragma once`
                file.symlink_to(solved)
        for name, (file, _) in self.files.items():
            text = with_cases(file.read_text(encoding="utf-8"), self.wanted)
            (self.folder / name).write_text(text, encoding="utf-8")

    def run(self, is_green: Callable[[Case], bool] = lambda case: False) -> list[TestResult]:
        """Runs each of the wanted cases alone, as CTest does; with patience where it should be
        green."""
        texts = (file.read_text(encoding="utf-8") for file, _ in self.files.values())
        cases = [case for text in texts for case in cases_in(text) if self.wanted(case)]
        return [self._run(case, PATIENT if is_green(case) else NOTHING_SKIPPED) for case in cases]

    def _run(self, case: Case, env: Mapping[str, str]) -> TestResult:
        return run_case(
            self.folder / self.programs[0],
            case.title,
            timeout_s=TEST_TIMEOUT_S,
            env={**env, "COURSE_PROGRAM_DIR": str(self.folder)},
        )


class Origin:
    """The build beside which variants are made; every chapter in it is the solution."""

    def __init__(self, folder: BuildFolder) -> None:
        self._folder = folder
        self._headers = folder.path / "unchanged"  # each with its precompiled form
        shutil.rmtree(self._headers, ignore_errors=True)
        self._headers.mkdir()
        self._compiled: dict[str, tuple[Path, list[str]]] = {}  # by its name each object
        self._unchanged: dict[tuple[frozenset[str], str], str] = {}  # the precompiled ones
        for each in folder.commands():
            words = shlex.split(each["command"])
            self._compiled[words[words.index("-o") + 1]] = (Path(each["file"]), words)

    def build_shared(self, variants: Iterable[Variant]) -> None:
        """Builds what the variants take as it is: libraries, objects, precompiled headers."""
        shared = {"test-headers", "program-headers"}
        apart: dict[tuple[frozenset[str], str], set[str]] = {}
        for variant in variants:
            for program in variant.programs:
                made = self._made(program, variant)
                words = (word for word in self._linking(program, variant) if word not in made)
                shared.update(word for word in words if word.endswith((".o", ".a")))
                for name in made:
                    apart.setdefault(self._key(name, variant), set()).add(name)
        mine = [name for name in shared if not Path(name).is_absolute()]
        built = self._folder.build(sorted(mine))
        if built.returncode != 0:
            raise CourseError(builds.build_failure(built.stdout + built.stderr))
        new = [key for key in apart if key[1] and key not in self._unchanged]
        with ThreadPoolExecutor(cores()) as pool:
            made = pool.map(lambda key: self._precompile(*key, sorted(apart[key])), new)
            self._unchanged.update(zip(new, made, strict=True))

    def _key(self, name: str, variant: Variant) -> tuple[frozenset[str], str]:
        """What an object's header of unchanged headers depends on."""
        return frozenset(variant.changed), _precompiled(self._compiled[name][1])

    def _precompile(self, changed: frozenset[str], base: str, names: Sequence[str]) -> str:
        """Makes a header of all headers of these objects that do not include what is changed."""
        words = self._compiled[names[0]][1]
        # Two chapters may have a header of the same name; the compiler finds the one on its path.
        seen = (ROOT / each for name in names for each in self._seen_by(name))
        found = {each for each in seen if f"-I{each.parent}" in words and each.suffix == ".hpp"}
        headers = [each for each in sorted(found) if changed.isdisjoint(included(relative(each)))]
        header = self._headers / f"{digest(f'{base}{headers}'.encode())}.hpp"
        header.write_text("".join(f'#include "{each}"\n' for each in headers), encoding="utf-8")
        into = f"{header}.pch"
        words = words[: words.index("-o")] + ["-fpch-instantiate-templates", "-Xclang", "-emit-pch"]
        finished = self._run([*words, "-x", "c++-header", "-o", into, "-c", str(header)])
        if finished.returncode != 0:
            raise CourseError(builds.build_failure(finished.stdout + finished.stderr))
        return into

    def make(self, variant: Variant) -> Finished | None:
        """Compiles and links the programs; comes back with what failed, if anything did."""
        variant.write()
        for program in variant.programs:
            link = self._linking(program, variant)
            link[link.index("-o") + 1] = str(variant.folder / program)
            for name in self._made(program, variant):
                made = variant.folder / f"{program}-{Path(name).name}"
                link[link.index(name)] = str(made)
                finished = self._run(self._compiling(name, made, variant))
                if finished.returncode != 0:
                    return finished
            finished = self._run(link)
            if finished.returncode != 0:
                return finished
        return None

    def _linking(self, program: str, variant: Variant) -> list[str]:
        """The words that link it, without the tests' files of which no case is wanted."""
        return [
            word
            for word in self._link_command(program)
            if not word.endswith("_test.cpp.o") or self._compiled[word][0].name in variant.files
        ]

    @functools.cache  # noqa: B019  (one or two of us live, to the end)
    def _link_command(self, program: str) -> tuple[str, ...]:
        """As ninja has it: `: && c++ … -o bin/01-server … && :`."""
        args = ["ninja", "-C", self._folder.path, "-t", "commands", "-s", f"bin/{program}"]
        words = shlex.split(run(args, timeout_s=60, check=True).stdout)
        start = words.index("&&") + 1
        return tuple(words[start : words.index("&&", start)])

    def _made(self, program: str, variant: Variant) -> list[str]:
        """The objects that have to be made again."""
        names = [word for word in self._linking(program, variant) if word.endswith(".o")]
        return [name for name in names if not variant.changed.isdisjoint(self._seen_by(name))]

    @functools.cache  # noqa: B019
    def _seen_by(self, name: str) -> list[str]:
        """The source of an object, and what that includes, as the clone calls them."""
        return included(relative(self._compiled[name][0]))

    def _compiling(self, name: str, into: Path, variant: Variant) -> list[str]:
        file, words = self._compiled[name]
        theirs = str(variant.chapter.solution)
        ours = str(variant.folder / variant.chapter.folder)
        words = [word.replace(theirs, ours) for word in words]
        key = self._key(name, variant)
        if key in self._unchanged:
            words[words.index(key[1])] = self._unchanged[key]
        words[words.index("-o") + 1] = str(into)
        if file.name in variant.files:
            words[-1] = str(variant.folder / file.name)
            words += ["-iquote", str(file.parent)]
        return [*words, "-Wno-error"]

    def _run(self, words: list[str]) -> Finished:
        return run(words, timeout_s=COMPILE_TIMEOUT_S, cwd=self._folder.path, env=builds.PLAIN_ENV)


def _precompiled(words: Sequence[str]) -> str:
    """The precompiled header that a command of Clang's takes, or ""."""
    return next((word for word in words if word.endswith(".pch")), "")


@functools.cache
def origin(under: str = "") -> Origin:
    """The solutions without debug information, or with a sanitizer, which verify builds anyway."""
    return Origin(build_folder(under or "reference"))
