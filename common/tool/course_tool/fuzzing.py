# SPDX-License-Identifier: MIT
"""`./course fuzz`: libFuzzer gives a chapter's code bytes that nobody has thought of.

What it tries begins with the files of tests/NN-slug/corpus/, which are ordinary tests, too. Inputs
that reach something new are kept between two runs, as is one that breaks a promise.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from course_tool import builds, console, packages, processes
from course_tool.chapters import Chapter, all_chapters, find_chapter
from course_tool.errors import CourseError
from course_tool.paths import STATE, relative

INPUT_BYTES_MAX = 2048
INPUT_TIMEOUT_S = 60  # for one input on a busy machine: longer is a hang
START_S = 600.0  # to read the corpora, and to write what was found
TAIL_LINES = 12
SHOW_ALL = ("-print_final_stats=1", "-reload=0")
NO_STACK = "-handle_abrt=0"  # of our own abort(): what was found is said before it


def fuzz(name: str, seconds: int, *, solution: bool, yes: bool) -> int:
    """Fuzzes for that long, or until an input is found that breaks something: then it is 1."""
    chapter = find_chapter(name)
    if not _has_target(chapter):
        able = ", ".join(each.number for each in all_chapters() if _has_target(each))
        raise CourseError(f"Chapter {chapter.number} has nothing to fuzz. These have: {able}.")
    packages.ensure("fuzz", yes)
    preset, target = "fuzz" if solution else "student-fuzz", f"{chapter.number}-fuzz"
    builds.build(preset, [target])
    return _run(builds.program(preset, target), chapter, seconds)


def _has_target(chapter: Chapter) -> bool:
    return (chapter.tests / "fuzz_main.cpp").is_file()


def _run(program: Path, chapter: Chapter, seconds: int) -> int:
    kept = STATE / "fuzz" / chapter.number
    corpus = kept / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    flags = [
        f"-max_total_time={seconds}", f"-max_len={INPUT_BYTES_MAX}",
        f"-timeout={INPUT_TIMEOUT_S}", f"-artifact_prefix={kept}/", *SHOW_ALL,
    ]  # fmt: skip
    words = [str(word) for word in (program, *flags, corpus, chapter.tests / "corpus")]
    with console.progress(f"Fuzzing {chapter.number} for {seconds} s", total=0) as steps:
        finished = processes.run(
            ["sh", "-c", 'exec "$@" 2>&1', "sh", *words],  # libFuzzer speaks on stderr
            timeout_s=seconds + START_S,
            on_line=lambda line: _show(line, steps),
        )
    return _report(finished, program, chapter)


def _show(line: str, steps: console.Steps) -> None:
    found = re.match(r"#(\d+)\s.*?(cov: \d+)", line)
    if found:
        steps.at(int(found[1]), text=f"inputs, {found[2]}")


def _report(finished: processes.Finished, program: Path, chapter: Chapter) -> int:
    tried = _number("number_of_executed_units", finished.stdout)
    new = _number("new_units_added", finished.stdout)
    written = re.search(r"Test unit written to (\S.*)", finished.stdout)
    if finished.returncode == 0 and not written:
        console.out.print(f"{tried} inputs, {new} of them reached something new: nothing found.")
        return 0
    if not written:
        tail = "\n  ".join(finished.stdout.strip().splitlines()[-TAIL_LINES:])
        ending = processes.how_it_ended(finished.returncode)
        raise CourseError(f"{program.name} {ending}:\n  {tail}")
    file = Path(written[1].strip())
    console.out.print(_reason(finished.stdout), style="red")
    for line in _details(finished.stdout):
        console.out.print(line)
    console.out.print(f"The input is kept in {relative(file)}. To see it again:")
    console.out.print(f"  {shlex.join([relative(program), NO_STACK, relative(file)])}")
    corpus = relative(chapter.tests / "corpus")
    console.out.print(f"When it is mended, make a test of it: move the file to {corpus}/")
    return 1


def _details(text: str) -> list[str]:
    """What our own check shows below its sentence: the input, and the answers that differ."""
    found = re.search(r"^FOUND: .*\n((?:  .*\n)*)", text, re.MULTILINE)
    return found[1].splitlines() if found else []


def _number(name: str, text: str) -> str:
    found = re.search(rf"^stat::{name}:\s+(\d+)", text, re.MULTILINE)
    return f"{int(found[1]):,}" if found else "?"


def _reason(text: str) -> str:
    """What our own check says, else the sanitizer, else libFuzzer."""
    for pattern in (r"^FOUND: (.*)", r"^(TODO \d\d\.\d: .*)", r"ERROR: (.*)",
                    r"(\S+: runtime error: .*)"):  # fmt: skip
        found = re.search(pattern, text, re.MULTILINE)
        if found:
            return f"An input was found: {found[1].strip()}"
    return "An input was found that ends the program."
