# SPDX-License-Identifier: MIT
"""Every solution passes its chapter's tests: optimized, under ASan and UBSan, under TSan."""

from __future__ import annotations

from collections.abc import Sequence

from course_tool import builds
from course_tool.chapters import Chapter, all_chapters
from course_tool.ctests import TestResult, run_tests
from course_tool.verify.outcome import Context, Outcome
from course_tool.verify.trees import BuildFolder, targets_of

NOTHING_SKIPPED = {"COURSE_REQUIRE_FEATURES": "1"}
# A sanitizer's report names file and line, and nobody debugs in there. Unoptimized, it sees every
# access that the source makes, and takes half as long to compile; release proves the optimizer's.
SANITIZED = "-O0 -g1"


def prove_release(context: Context) -> Outcome:
    return _prove(context, "release", None, CMAKE_DISABLE_PRECOMPILE_HEADERS="OFF")


def prove_asan(context: Context) -> Outcome:
    return _prove(context, "asan", None, CMAKE_CXX_FLAGS_DEBUG=SANITIZED)


def prove_tsan(context: Context) -> Outcome:
    """TSan does not see the kernel's side of a ring, and so reports races that are none."""
    chapters = [chapter for chapter in all_chapters() if not chapter.features]
    outcome = _prove(context, "tsan", chapters, CMAKE_CXX_FLAGS_DEBUG=SANITIZED)
    outcome.notes.append("chapters with a ring are left out: TSan cannot see the kernel's side")
    return outcome


def _prove(
    context: Context, preset: str, chapters: Sequence[Chapter] | None, **definitions: str
) -> Outcome:
    outcome = Outcome("tests")
    folder = BuildFolder(preset)
    folder.configure(preset, COURSE_WERROR="ON", **definitions)
    if preset != "release" and "clang" not in (builds.compiler_for(preset) or ""):
        outcome.notes.append("no Clang here, so GCC's sanitizers, with asan-stack=0")
    wanted = (
        ["all"] if chapters is None else [name for each in chapters for name in targets_of(each)]
    )
    built = folder.build(wanted)
    if built.returncode != 0:
        log = context.write_log(f"{preset}-build", built.stdout + built.stderr)
        outcome.failures.append(f"{builds.build_failure(built.stdout + built.stderr)} (see {log})")
        return outcome
    for result in _results(folder.preset, chapters):
        outcome.check(_problem(context, preset, result))
    return outcome


def _results(preset: str, chapters: Sequence[Chapter] | None) -> list[TestResult]:
    if chapters is None:
        return run_tests(preset, env=NOTHING_SKIPPED)
    return [
        result
        for chapter in chapters
        for result in run_tests(preset, label=chapter.number, env=NOTHING_SKIPPED)
    ]


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
