# SPDX-License-Identifier: MIT
"""The starters as compilers see them: no warning of GCC or Clang, no other chapter's starter."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from course_tool import builds, marks
from course_tool.chapters import Chapter, all_chapters
from course_tool.errors import CourseError
from course_tool.processes import run
from course_tool.verify.dependencies import with_headers
from course_tool.verify.memory import Memory
from course_tool.verify.outcome import Context, Outcome
from course_tool.verify.trees import BuildFolder, Tree, cores

SYNTAX_TIMEOUT_S = 120


def starter_texts(chapter: Chapter) -> dict[str, str]:
    return {name: data.decode("utf-8") for name, data in marks.starter_files(chapter).items()}


def as_solution(chapter: Chapter, texts: Mapping[str, str]) -> dict[str, str]:
    """The texts of a chapter's files, by the names that these have in solutions/."""
    return {f"solutions/{chapter.folder}/{name}": text for name, text in texts.items()}


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


def check_with_clang(context: Context, outcome: Outcome) -> None:
    """The starters again, by Clang's warnings; the tests are built by both compilers elsewhere."""
    clang = builds.newest_clang()
    if clang is None:
        outcome.notes.append("no Clang here, so its warnings were not asked for")
        return
    context.step(f"warnings of {Path(clang).name}")
    tree, folder = Tree("starters-clang"), BuildFolder("starters-clang")
    tree.make()
    texts = {}
    for chapter in all_chapters():
        starter = starter_texts(chapter)
        tree.write_chapter(chapter, starter)
        texts[chapter.folder] = as_solution(chapter, starter)
    # For its flags: nothing is built in it.
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
    memory = Memory(context, "starters-clang", clang)

    def problem(check: SyntaxCheck) -> str | None:
        own = texts[check.files[0].parent.name]
        names = [f"solutions/{file.relative_to(tree.chapters)}" for file in check.files]
        content = *check.args, *(with_headers(name, own) for name in names)
        if memory.holds(*content):
            return None
        found = _syntax_problem(check.args)
        if found is None:
            memory.remember(*content)
        return found

    with ThreadPoolExecutor(cores()) as pool:
        outcome.fail_all(found for found in pool.map(problem, checks) if found)


@dataclass(frozen=True)
class SyntaxCheck:
    args: list[str]  # the compiler's call
    files: list[Path]  # what it sees of the starters, but for what those include


def starter_checks(
    commands: Sequence[dict[str, str]], chapters: Path
) -> Iterator[SyntaxCheck]:
    """Compilers' calls that see all of the starters: each program; then each chapter's headers
    with the flags of its tests, which may use everything that the chapter builds on."""
    flags_of: dict[str, list[str]] = {}
    for command in commands:
        words = shlex.split(command["command"])
        flags = words[: words.index("-o")]
        owner, file = _owner(command), Path(command["file"])
        if file.is_relative_to(chapters):
            yield SyntaxCheck([*flags, "-fsyntax-only", command["file"]], [file])
        elif owner is not None and file.parent.name.startswith(owner):  # not another chapter's
            flags_of.setdefault(owner, flags)
    for owner, flags in flags_of.items():
        headers = sorted(chapters.glob(f"{owner}-*/*.hpp"))
        included = [word for header in headers for word in ("-include", str(header))]
        args = [*flags, "-fsyntax-only", "-x", "c++", *included, "/dev/null"]
        yield SyntaxCheck(args, headers)


def _syntax_problem(args: list[str]) -> str | None:
    finished = run(args, timeout_s=SYNTAX_TIMEOUT_S, env=builds.PLAIN_ENV)
    if finished.returncode == 0:
        return None
    return f"A starter has a warning of Clang: {builds.build_failure(finished.stderr)}"
