# SPDX-License-Identifier: MIT
"""How code and pages read, as far as a tool can tell: our rules, clang-format, clang-tidy, ruff."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from course_tool import packages, processes
from course_tool.chapters import all_chapters
from course_tool.errors import CourseError
from course_tool.paths import ROOT, relative
from course_tool.verify import clang_tidy, rules_cpp, rules_pages, rules_python, rules_text
from course_tool.verify.dependencies import with_headers
from course_tool.verify.layout import check_tree
from course_tool.verify.memory import Memory
from course_tool.verify.outcome import Context, Outcome, check_all
from course_tool.verify.sources import (
    QUOTES_THE_RULES,
    Rule,
    Source,
    listed_files,
    read_sources,
)
from course_tool.verify.tidy_units import TidyUnit, tidy_units
from course_tool.verify.trees import BuildFolder

RULES: tuple[Rule, ...] = (
    *rules_text.RULES,
    *rules_cpp.RULES,
    *rules_python.RULES,
    *rules_pages.RULES,
)
TOOL_TIMEOUT_S = 300
# A file takes seconds. But ahead of its turn clang-tidy has what others leave of the processors,
# and that can be nothing for minutes.
TIDY_TIMEOUT_S = 3600
# clang-format's layout and clang-tidy's checks differ from version to version.
LLVM_VERSION = 19
RUFF_RULES = "E,F,W,B,UP,C4,SIM,RET,PIE,PLW1509,RUF100"
RUFF_LEFT_OUT = "E501,SIM105,SIM108"  # E501 is ours; the others would make plain lines clever


def prove_rules(context: Context) -> Outcome:
    outcome = Outcome("files")
    names = listed_files(ROOT)
    for source in read_sources(ROOT, names):
        problems = check_source(source)
        if source.matches("*.md"):
            problems += rules_pages.dead_links(ROOT, source)
        outcome.fail_all(problems)
        outcome.proved += not problems
    outcome.fail_all(check_tree(ROOT, names, all_chapters()))
    outcome.fail_all(british_words([name for name in names if not name.startswith("chapters/")]))
    return outcome


def british_words(names: Sequence[str], root: Path = ROOT) -> list[str]:
    """The course writes American, also in the parts of an identifier; codespell knows both."""
    args = [sys.executable, "-m", "codespell_lib", "--builtin", "en-GB_to_en-US"]
    args += ["--regex", "[A-Za-z]+", "--ignore-words-list", "catalogue"]
    read = [name for name in names if not Source(name, "").matches(*QUOTES_THE_RULES)]
    said = processes.run([*args, *read], timeout_s=TOOL_TIMEOUT_S, cwd=root).stdout
    found = re.findall(r"^(\S.*:\d+): (\S+) ==> (.+)$", said, re.MULTILINE)
    return [f"{at}: {bad!r} is British; the course writes {good!r}." for at, bad, good in found]


def check_source(source: Source) -> list[str]:
    return [problem for rule in RULES if rule.concerns(source) for problem in rule.check(source)]


def cpp_files() -> list[str]:
    names = listed_files(ROOT)
    return [
        name
        for name in names
        if name.endswith((".cpp", ".hpp")) and not name.startswith("chapters/")
    ]


def llvm_program(name: str, outcome: Outcome) -> str:
    """The program, in the version that its settings were written for, if that one is here."""
    found = packages.clang_tool(name)
    if found is None:
        raise CourseError(
            f"{name} is not installed, so nothing is proved. `./course verify --yes` installs it."
        )
    said = processes.run([found, "--version"], timeout_s=30).stdout
    version = re.search(r"version (\d+)", said)
    if version is None or int(version[1]) != LLVM_VERSION:
        what = f"version {version[1]}" if version else "a version we cannot read"
        outcome.notes.append(
            f"{name} is {what}; the course is written for {LLVM_VERSION}, and others may differ"
        )
    return found


def prove_format(context: Context) -> Outcome:
    outcome = Outcome("files")
    files = cpp_files()
    args = [llvm_program("clang-format", outcome), "--dry-run", "--Werror", "--ferror-limit=1"]
    finished = processes.run([*args, *files], timeout_s=TOOL_TIMEOUT_S)
    bad = dict(re.findall(r"^(\S.*?):(\d+):\d+: error:", finished.stderr, re.MULTILINE))
    for name in files:
        place = f"{name}:{bad[name]}" if name in bad else None
        outcome.check(
            place
            and f"{place}: not as .clang-format lays it out; clang-format-19 -i {name} mends it."
        )
    if finished.returncode != 0 and outcome.holds:
        raise CourseError(f"clang-format failed: {finished.stderr.strip()[:500]}")
    return outcome


def prove_python(context: Context) -> Outcome:
    outcome = Outcome("files")
    files = [name for name in listed_files(ROOT) if name.endswith(".py")]
    args = [
        sys.executable,
        "-m",
        "ruff",
        "check",
        "--isolated",
        "--no-cache",
        "--output-format=json",
    ]
    args += [f"--line-length={rules_text.COLUMNS_MAX}", "--target-version=py311"]
    args += [f"--select={RUFF_RULES}", f"--ignore={RUFF_LEFT_OUT}"]
    finished = processes.run([*args, *files], timeout_s=TOOL_TIMEOUT_S)
    if finished.returncode not in (0, 1):
        raise CourseError(f"ruff failed: {finished.stderr.strip()[:500]}")
    found = json.loads(finished.stdout)
    for each in found:
        where = f"{relative(Path(each['filename']))}:{each['location']['row']}"
        outcome.failures.append(f"{where}: {each['message']} (ruff {each['code']})")
    outcome.proved = len(files) - len({each["filename"] for each in found})
    return outcome


def _alone() -> BuildFolder:
    """Where each file is compiled without a precompiled header, and so includes what it uses."""
    folder = BuildFolder("alone")  # for its flags: nothing is built in it
    folder.configure("release", COURSE_WERROR="ON")
    folder.build(["build.ninja"])  # as a CMakeLists.txt that has changed since then wants it
    return folder


def solution_commands() -> list[dict[str, str]]:
    return [each for each in _alone().commands() if Path(each["file"]).is_relative_to(ROOT)]


def tidy_program(outcome: Outcome) -> str:
    """The pinned clang-tidy, installed where it is missing; else the system's, which is slower."""
    problem = None if clang_tidy.installed() else clang_tidy.install()
    program = clang_tidy.installed()
    if program:
        return str(program)
    found = llvm_program("clang-tidy", outcome)
    outcome.notes.append(
        f"clang-tidy {clang_tidy.VERSION} could not be installed ({problem}); "
        f"{Path(found).name} takes its place, and three times as long"
    )
    return found


def prove_tidy(context: Context) -> Outcome:
    """Asks about the files that were not found clean as they, and all they include, are now."""
    outcome = Outcome("files")
    tidy = tidy_program(outcome)
    database = _alone().path
    settings = (ROOT / ".clang-tidy").read_text(encoding="utf-8")
    memory = Memory(context, "tidy", tidy, clang_tidy.VERSION, settings)

    def problem(unit: TidyUnit) -> str | None:
        content = *unit.flags, *(with_headers(relative(file)) for file in unit.files)
        if not memory.holds(*content):
            args = [tidy, "--quiet", *unit.arguments(database, context.work / "joined")]
            finished = processes.run(args, timeout_s=TIDY_TIMEOUT_S)
            if finished.returncode != 0:
                said = finished.stdout + finished.stderr
                log = context.write_log(f"tidy-{unit.name}", said)
                return f"{unit.first_finding(said)} (see {log})"
            memory.remember(*content)
        outcome.proved += len(unit.files) - 1  # check_all() counts the unit
        return None

    check_all(outcome, "clang-tidy", tidy_units(solution_commands()), problem)
    memory.note(outcome)
    return outcome
