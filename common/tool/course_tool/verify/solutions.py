# SPDX-License-Identifier: MIT
"""Every solution passes its chapter's tests: optimized, under ASan and UBSan, under TSan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from course_tool import builds
from course_tool.chapters import Chapter, all_chapters
from course_tool.ctests import TestResult, listed_tests, run_tests
from course_tool.verify.dependencies import Part, part_of_no_chapter, parts_of
from course_tool.verify.memory import Memory
from course_tool.verify.outcome import AGAIN_MAX, Context, Outcome
from course_tool.verify.trees import TEST_TIMEOUT_S, BuildFolder, cores, targets_of

NOTHING_SKIPPED = {"COURSE_REQUIRE_FEATURES": "1"}
# For what should be green: a solution does not hang, so a busy machine has time. See
# tests/support/patience.hpp.
PATIENT = {**NOTHING_SKIPPED, "COURSE_PATIENCE": "5"}
# At a time, for each core: most of a test's time is waiting, and patience bears a busy machine.
TESTS_PER_CORE = 4
# Unoptimized, a sanitizer sees every access that the source makes, and the build takes half as
# long; release proves the optimizer's. Without debug information a report names functions and no
# lines: those are in the report of `./course test NN --solution --sanitize`.
SANITIZED = "-O0"
# Release proves the chapters' programs and libraries as the preset optimizes them. Its tests' own
# code compiles sooner with -O1, where GCC 12 sees an overread in a library's header that is none.
TESTS_OPTIMIZED = "-O1;-Wno-stringop-overread"
SLOWEST_SHOWN = 10
RESERVE = 10


def prove_release(context: Context) -> Outcome:
    return _prove(context, "release", all_chapters(), part_of_no_chapter())


def prove_asan(context: Context) -> Outcome:
    return _prove(context, "asan", all_chapters(), part_of_no_chapter())


def prove_tsan(context: Context) -> Outcome:
    return _prove(context, "tsan", [each for each in all_chapters() if each.suits_tsan])


def build_folder(preset: str) -> BuildFolder:
    """Where the solutions are built as a preset says; here with precompiled headers.

    Those of the programs are not for release: there GCC 12 warns of overflows that are none.
    """
    folder = BuildFolder(preset)
    if preset == "release":
        own = {
            "CMAKE_DISABLE_PRECOMPILE_HEADERS": "OFF",
            "COURSE_TESTS_OPTIONS": TESTS_OPTIMIZED,
        }
    elif preset == "reference":
        own = {"COURSE_PROGRAM_HEADERS": "ON", **_soonest_compiled()}
    else:
        own = {
            "COURSE_PROGRAM_HEADERS": "ON",
            "CMAKE_CXX_FLAGS_DEBUG": SANITIZED,
            "COURSE_CONTRACT_FOLDER": str(BuildFolder("release").path / "bin"),
        }
    folder.configure(preset, COURSE_WERROR="ON", **own)
    return folder


def _soonest_compiled() -> dict[str, str]:
    """For variants, of which there are many: Clang takes two thirds of GCC's time for one."""
    clang = builds.newest_clang()
    if clang is None:
        return {"CMAKE_CXX_FLAGS_DEBUG": "-Og"}
    return {"CMAKE_CXX_FLAGS_DEBUG": "-O0", "CMAKE_CXX_COMPILER": clang}


def _prove(context: Context, preset: str, chapters: Sequence[Chapter], *others: Part) -> Outcome:
    """Builds all, and runs those tests that are not known to hold."""
    outcome = Outcome("tests")
    memory = Memory(context, preset)
    folder = build_folder(preset)
    if preset != "release" and "clang" not in (builds.compiler_for(preset) or ""):
        outcome.notes.append("no Clang here, so GCC's sanitizers, with asan-stack=0")
    own = [target for chapter in chapters for target in targets_of(chapter)]
    built = folder.build(["all"] if others else own)
    if built.returncode == 0 and preset != "release":  # a sanitizer looks at servers, not clients
        built = build_folder("release").build(["echo-contract"])
    if built.returncode != 0:
        log = context.write_log(f"{preset}-build", built.stdout + built.stderr)
        outcome.failures.append(f"{builds.build_failure(built.stdout + built.stderr)} (see {log})")
        return outcome
    parts = [*(part for each in chapters for part in parts_of(each)), *others]
    unknown = [part for part in parts if not memory.holds(part.content)]
    memory.tell(outcome)
    results = run_parts(folder, unknown, jobs=TESTS_PER_CORE * cores(), env=PATIENT)
    results = _again_alone(context, outcome, folder, preset, results)
    problems = {result.name: _problem(context, preset, result) for result in results}
    for problem in problems.values():
        outcome.check(problem)
    remember_parts(memory, unknown, problems)
    tell_slowest(outcome, preset, results)
    return outcome


def _again_alone(
    context: Context,
    outcome: Outcome,
    folder: BuildFolder,
    preset: str,
    results: Sequence[TestResult],
) -> list[TestResult]:
    """What fails is run again, alone, as in check_all(); its first output is kept in a log."""
    bad = [each for each in results if each.status not in ("passed", "skipped")]
    if not 0 < len(bad) <= AGAIN_MAX:
        return list(results)
    tried = run_tests(folder.preset, names=[each.name for each in bad], jobs=1, env=PATIENT)
    second = {each.name: each for each in tried}
    for each in bad:
        if second[each.name].status == "passed":
            first = _problem(context, preset, each)
            outcome.notes.append(f"in order only at the second try: {first}")
    return [second.get(each.name, each) for each in results]


def run_parts(folder: BuildFolder, parts: Sequence[Part], **how: Any) -> list[TestResult]:
    """Runs those of a build's tests that are of these parts; `how` is as for run_tests()."""
    names = [
        name for name in listed_tests(folder.preset) if any(part.holds(name) for part in parts)
    ]
    return run_tests(folder.preset, names=names, **how) if names else []


def remember_parts(
    memory: Memory, parts: Sequence[Part], problems: Mapping[str, str | None]
) -> None:
    """The parts of which no test has a problem; by the names of all tests that ran."""
    for part in parts:
        own = [problem for name, problem in problems.items() if part.holds(name)]
        if not any(own):
            memory.remember(part.content, proved=len(own))


def tell_slowest(outcome: Outcome, preset: str, results: Sequence[TestResult]) -> None:
    """On a quiet machine every test needs less than a tenth of its limit, so that a busy one has
    time for it. That is worth a note and no failure: this machine may be busy now."""
    worst = sorted(results, key=lambda result: -result.seconds)[:SLOWEST_SHOWN]
    outcome.slowest = [
        {"test": each.name, "build": preset, "seconds": each.seconds, "limit_s": TEST_TIMEOUT_S}
        for each in worst
    ]
    for each in worst:
        if each.seconds > TEST_TIMEOUT_S / RESERVE:
            outcome.notes.append(
                f"“{each.name}” took {each.seconds:.1f} of its {TEST_TIMEOUT_S} s ({preset}): more "
                f"than one in {RESERVE}. If this machine is quiet, split the test"
            )
    if worst:
        outcome.notes.append(
            f"the slowest of {len(results)}: {worst[0].seconds:.1f} s of {TEST_TIMEOUT_S} s, "
            f"“{worst[0].name}” ({preset}; ten of them in result.json)"
        )


def _problem(context: Context, preset: str, result: TestResult) -> str | None:
    if result.status == "passed":
        return None
    if result.status == "skipped":
        return f"“{result.name}” was skipped ({preset}), so nothing is proved: {result.output}"
    log = context.write_log(f"{preset}-{file_name(result.name)}", result.output)
    ending = {"timeout": "hangs", "crashed": "crashes", "failed": "is red"}[result.status]
    return f"“{result.name}” {ending} with the solution ({preset}); its output is in {log}"


def file_name(test: str) -> str:
    """A test's name as the name of a file."""
    kept = "".join(character if character.isalnum() else "-" for character in test.lower())
    return "-".join(filter(None, kept.split("-")))[:80]
