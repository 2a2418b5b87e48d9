# SPDX-License-Identifier: MIT
"""Source trees that verify makes for itself, and how it builds and tests them.

A tree is the clone seen through links, but for its chapters/: that folder is real and verify's own,
so nothing here ever writes where a student works. Build folders stand beside the trees, under
build/verify/, and are kept: the next run compiles only what changed.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from course_tool import builds, console, processes
from course_tool.chapters import Chapter
from course_tool.files import fill
from course_tool.paths import BUILD, ROOT
from course_tool.verify.cases import programs_of

WORK = BUILD / "verify"
CONFIGURE_TIMEOUT_S = 300
BUILD_TIMEOUT_S = 3600  # minutes on a quiet machine, and many on a busy one
TEST_TIMEOUT_S = 120  # in all of verify's builds: a machine may be busy, and a student's waits less

_LINKED = ("CMakeLists.txt", "CMakePresets.json", "cmake", "common", "solutions", "tests", ".deps")


class Tree:
    """A clone of which only chapters/ is its own."""

    def __init__(self, name: str) -> None:
        self.root = WORK / "trees" / name

    @property
    def chapters(self) -> Path:
        return self.root / "chapters"

    def make(self) -> None:
        self.chapters.mkdir(parents=True, exist_ok=True)
        for name in _LINKED:
            link, target = self.root / name, ROOT / name
            if link.is_symlink() and link.readlink() == target:
                continue
            link.unlink(missing_ok=True)
            if target.exists():
                link.symlink_to(target)

    def write_chapter(self, chapter: Chapter, texts: Mapping[str, str]) -> None:
        """Makes chapters/NN-slug hold exactly `texts`; what is right already stays untouched."""
        contents = {name: text.encode("utf-8") for name, text in texts.items()}
        fill(self.chapters / chapter.folder, contents)


def solution_texts(chapter: Chapter) -> dict[str, str]:
    """What a student's folder would hold if every task were solved."""
    return {
        file.name: file.read_text(encoding="utf-8")
        for file in sorted(chapter.solution.iterdir())
        if file.is_file() and file.name != "chapter.toml"
    }


class BuildFolder:
    """A build under build/verify/, as CTest and the compilers know it."""

    def __init__(self, name: str) -> None:
        self.preset = f"verify/{name}"  # what ctests.run_tests takes
        self.path = builds.folder(self.preset)

    def commands(self) -> list[dict[str, str]]:
        """How each file is compiled: its directory, command and file."""
        return json.loads((self.path / "compile_commands.json").read_text(encoding="utf-8"))

    def configure(self, preset: str, source: Path = ROOT, **definitions: str) -> None:
        """Configures a preset into this folder, with more cache entries."""
        wanted = _cmake_arguments(preset, self.path, definitions)
        stamp = self.path / "verify-configured"
        said = "\n".join([str(source), *wanted])
        if stamp.is_file() and stamp.read_text(encoding="utf-8") == said:
            self.build(["build.ninja"])  # whoever reads commands() before a build gets the new ones
            return
        shutil.rmtree(self.path, ignore_errors=True)
        with console.progress(f"Configuring {self.preset}"):
            finished = processes.run(
                ["cmake", *wanted], timeout_s=CONFIGURE_TIMEOUT_S, cwd=source, env=builds.PLAIN_ENV
            )
        if finished.returncode != 0:
            raise builds.BuildError(builds.build_failure(finished.stdout + finished.stderr))
        stamp.write_text(said, encoding="utf-8")

    def build(self, targets: Sequence[str]) -> processes.Finished:
        """Builds the targets, as far as they compile."""
        args = ["cmake", "--build", self.path, "-j", str(cores()), "--target", *targets]
        args += ["--", "-k", "0"]
        with console.progress(f"Building {self.preset}", total=0) as steps:
            return processes.run(
                args,
                timeout_s=BUILD_TIMEOUT_S,
                env=builds.PLAIN_ENV,
                on_line=lambda line: builds.show_ninja_line(line, steps),
            )


def _cmake_arguments(preset: str, into: Path, definitions: Mapping[str, str]) -> list[str]:
    args = ["--preset", preset, "-B", str(into)]
    compiler = builds.compiler_for(preset)
    if compiler:
        args.append(f"-DCMAKE_CXX_COMPILER={compiler}")
    if shutil.which("ld.gold"):  # verify links a thousand programs, and this takes a fifth of ld's
        args.append("-DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=gold")
    definitions = {"COURSE_TEST_TIMEOUT_S": str(TEST_TIMEOUT_S), **definitions}
    return args + [f"-D{name}={value}" for name, value in definitions.items()]


def student_build(texts: Mapping[Chapter, Mapping[str, str]]) -> tuple[Tree, BuildFolder]:
    """A tree whose chapters/ holds these texts of all chapters, and how a student would build it,
    but that a warning is an error, and without debug information: nobody debugs in there."""
    tree, folder = Tree("student"), BuildFolder("student")
    tree.make()
    for chapter, each in texts.items():
        tree.write_chapter(chapter, each)
    own = {"CMAKE_CXX_FLAGS_DEBUG": "-Og", "COURSE_PROGRAM_HEADERS": "ON"}
    folder.configure("student", tree.root, COURSE_WERROR="ON", **own)
    return tree, folder


def targets_of(chapter: Chapter) -> list[str]:
    """The chapter's own targets: its programs and its tests."""
    return [*programs_of(chapter), f"{chapter.number}-tests"]


def cores() -> int:
    return len(os.sched_getaffinity(0))
