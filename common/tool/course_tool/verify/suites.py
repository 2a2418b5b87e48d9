# SPDX-License-Identifier: MIT
"""The tests of the tool and of the site, and the site itself: strict, and asking no other host."""

from __future__ import annotations

import ast
import re
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

from course_tool import builds, console
from course_tool.chapters import all_chapters
from course_tool.errors import CourseError
from course_tool.paths import ROOT, TESTS, relative
from course_tool.processes import Finished, run
from course_tool.verify.dependencies import of_named
from course_tool.verify.memory import Memory, of_files
from course_tool.verify.outcome import AGAIN_MAX, Context, Outcome
from course_tool.verify.rules_pages import KEEP_IT_HERE, outside_requests
from course_tool.verify.trees import BuildFolder, cores

SUITE_TIMEOUT_S = 3600  # two minutes on a quiet machine
SITE_TIMEOUT_S = 900
NO_TESTS = 5  # pytest's exit code when none has the marker
UNITS = {"pages": "tests", "site": "pages"}


# What the tool's tests may read; those with the marker `reads_course` may read everything. The
# conftest.py of these tests sees to it.
TOOL_ALONE = (
    "common/tool/", "tests/cli/", "course", "requirements.txt", "cmake/dependencies.cmake"
)  # fmt: skip


def prove_tool(context: Context) -> Outcome:
    """Those tests alone that are not known to hold: a chapter's change is news to few of them.

    The benchmarks run the programs that the item release has built, if that went before.
    """
    # Most tests of the tool wait for what they have started; a benchmark needs its processors.
    jobs = {"not reads_course": 2 * cores(), "reads_course and not slow": cores()}
    return _prove_tests(context, jobs)


def prove_slow(context: Context) -> Outcome:
    """Those that the quick tier does without."""
    return _prove_tests(context, {"slow": cores()})


def _prove_tests(context: Context, jobs: Mapping[str, int]) -> Outcome:
    """The tool's tests that have one of the markers, with so many of them at a time."""
    memory = Memory(context, "tool", sys.version)
    outcome = Outcome("tests")
    for marker in jobs:
        contents = {file: _content_of(file) for file in _files_with(marker)}
        unknown = [file for file in contents if not memory.holds(marker, contents[file])]
        if not unknown:
            continue
        built = builds.lend(BuildFolder("release").path)
        part, counts = _pytest(context, TESTS / "cli", unknown, jobs[marker], marker, built)
        outcome.proved += part.proved
        outcome.fail_all(part.failures)
        outcome.notes += part.notes
        if part.holds:
            for file in unknown:
                proved = part.proved if file.is_dir() else counts[file.stem]
                memory.remember(marker, contents[file], proved=proved)
    memory.tell(outcome)
    return outcome


def _files_with(marker: str) -> list[Path]:
    """The files of tests/cli/ of which some tests may have the marker; for those without any, as
    most are, that is the folder."""
    if marker.startswith("not "):
        return [TESTS / "cli"]
    word = f"mark.{marker.split()[0]}"
    files = sorted((TESTS / "cli").glob("test_*.py"))
    return [file for file in files if word in file.read_text(encoding="utf-8")]


def _content_of(file: Path) -> str:
    """What its tests depend on: the tool, and what the file says in READS. The folder stands for
    those that read the tool alone."""
    tool = of_files(*TOOL_ALONE)
    if file.is_dir():
        return tool
    said = re.search(r"^READS = (\(.*?\))$", file.read_text(encoding="utf-8"), re.M | re.S)
    read = of_named(ast.literal_eval(said[1])) if said else of_files()
    return f"{file.name}\0{tool}\0{read}"


def prove_pages(context: Context) -> Outcome:
    """tests/site/seen.py remembers where we do."""
    folder, env = TESTS / "site", {"COURSE_VERIFY_WORK": str(context.work)}
    saw_some = (context.work / "known" / "pages-seen").is_dir()
    outcome = _unless_known(
        context, "pages", lambda: _pytest(context, folder, [folder], cores(), env=env)[0]
    )
    if saw_some:
        outcome.notes.append(
            "a page that held in an earlier run, and is byte for byte what it was, was not opened"
        )
    return outcome


def _unless_known(context: Context, item: str, prove: Callable[[], Outcome]) -> Outcome:
    """The site shows code of every chapter: any change may be one of the site."""
    memory = Memory(context, item, sys.version)
    everything = of_files()
    if memory.holds(everything):
        outcome = Outcome(UNITS[item])
        memory.tell(outcome)
        return outcome
    outcome = prove()
    if outcome.holds and outcome.proved:
        memory.remember(everything, proved=outcome.proved)
    return outcome


def _pytest(
    context: Context,
    folder: Path,
    what: Sequence[Path],
    jobs: int,
    marker: str = "",
    env: Mapping[str, str] | None = None,
) -> tuple[Outcome, Counter[str]]:
    """Runs tests of a folder; also says how many held of each file, by its stem. What fails is run
    again, alone, as in check_all()."""
    outcome = Outcome(UNITS["pages"])
    name = f"pytest-{folder.name}{marker and '-'}{marker.replace(' ', '-')}"
    own = ["-n", str(jobs), *(["-m", marker] if marker else [])]
    found = _found(context, folder, name, [*own, *what], env)
    bad = [test for test, sentence in found.items() if sentence]
    if 0 < len(bad) <= AGAIN_MAX:
        those = [f"{folder / file}.py::{test}" for file, test in bad]
        again = _found(context, folder, f"{name}-again", ["-n", "1", *those], env)
        for test in bad:
            if test in again and again[test] is None:
                outcome.notes.append(f"in order only at the second try: {found[test]}")
                found[test] = None
    for sentence in found.values():
        outcome.check(sentence)
    held = Counter(file for (file, _), sentence in found.items() if sentence is None)
    return outcome, held


def _found(
    context: Context,
    folder: Path,
    name: str,
    more: Sequence[str | Path],
    env: Mapping[str, str] | None,
) -> dict[tuple[str, str], str | None]:
    """For each test, by its file's stem and its name, None or what is wrong."""
    report = context.work / f"{name}.xml"
    report.unlink(missing_ok=True)
    # Some tests build for a minute: the other core takes over what would wait behind them.
    args = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider"]
    args += ["--dist", "worksteal", "--junitxml", report, *more]
    with console.progress(f"Running {relative(folder)}", total=100) as steps:
        finished = run(
            args,
            timeout_s=SUITE_TIMEOUT_S,
            env={"COURSE_REQUIRE_FEATURES": "1", **(env or {})},
            on_line=lambda line: _show(line, steps),
        )
    log = context.write_log(name, finished.stdout + finished.stderr)
    if not report.is_file():
        raise CourseError(f"pytest could not run {relative(folder)}; what it said is in {log}")
    found = dict(read_junit(report))
    if finished.returncode not in (0, NO_TESTS) and not any(found.values()):
        raise CourseError(f"pytest {relative(folder)} ended badly; what it said is in {log}")
    return {
        test: sentence and f"{relative(folder)}: {sentence} (see {log})"
        for test, sentence in found.items()
    }


def _show(line: str, steps: console.Steps) -> None:
    """xdist's lines: `[gw1] [ 42%] PASSED tests/cli/test_a.py::test_b`."""
    found = re.match(r"\[gw\d+\] \[ *(\d+)%\] \w+ \S*::(\S+)", line)
    if found:
        steps.at(int(found[1]), 100, found[2][:40])


def read_junit(report: Path) -> Iterator[tuple[tuple[str, str], str | None]]:
    """For each test, by its file's stem and its name, None if it passed, else what became of it. A
    skipped test proves nothing."""
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        file, test = case.get("classname", "").rpartition(".")[2], case.get("name", "")
        yield (file, test), _what_became_of(case, f"{file}::{test}")


def _what_became_of(case: ElementTree.Element, name: str) -> str | None:
    bad = case.find("failure")
    bad = case.find("error") if bad is None else bad
    skipped = case.find("skipped")
    if bad is not None:
        lines = (bad.get("message") or bad.text or "no message").strip().splitlines()
        return f"{name} is red: {lines[0]}"
    if skipped is not None:
        return f"{name} was skipped, so nothing is proved: {skipped.get('message')}"
    return None


def prove_site(context: Context) -> Outcome:
    """The strict build: links, anchors, included code, each chapter's sections; then requests."""
    return _unless_known(context, "site", lambda: _built_site(context))


def _built_site(context: Context) -> Outcome:
    outcome = Outcome(UNITS["site"])
    site = context.work / "site"
    shutil.rmtree(site, ignore_errors=True)
    args = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "-f",
        ROOT / "mkdocs.yml",
        "-d",
        site,
    ]
    with console.progress("Building the site"):
        finished = run(args, timeout_s=SITE_TIMEOUT_S, env={"NO_MKDOCS_2_WARNING": "1"})
    said = finished.stdout + finished.stderr
    log = context.write_log("site", said)
    outcome.fail_all(f"the site: {each}" for each in site_problems(said))
    if finished.returncode != 0:
        if outcome.holds:
            outcome.failures.append(
                f"mkdocs could not build the site: {_last_line(finished)} ({log})"
            )
        return outcome
    check_requests(site, outcome)
    _check_chapters_present(site, outcome)
    return outcome


def check_requests(site: Path, outcome: Outcome) -> None:
    """Counts the pages that ask no other host; what the others ask for is a sentence each."""
    asking: dict[str, list[str]] = {}
    for file in sorted([*site.rglob("*.html"), *site.rglob("*.css")]):
        urls = {url for _, url in outside_requests(file.read_text(encoding="utf-8"))}
        for url in sorted(urls):
            asking.setdefault(url, []).append(file.relative_to(site).as_posix())
        if file.suffix == ".html" and not urls:
            outcome.proved += 1
    outcome.fail_all(_request(url, names) for url, names in asking.items())


def _request(url: str, names: list[str]) -> str:
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"the site: {names[0]}{more}: asks another host for {url}; {KEEP_IT_HERE}"


def _check_chapters_present(site: Path, outcome: Outcome) -> None:
    for chapter in all_chapters():
        if not (site / "chapters" / chapter.folder / "index.html").is_file():
            outcome.failures.append(f"the site has no page for chapter {chapter.number}.")


def site_problems(said: str) -> list[str]:
    """The warnings of mkdocs, which the strict build does not forgive, and its errors."""
    found = []
    for line in said.splitlines():
        match = re.match(r"(?:WARNING|ERROR)\s+-\s+(?:\[[^\]]*\]\s*)?(.*)", line.strip())
        if match and not match[1].startswith("Aborted"):
            found.append(match[1])
    return list(dict.fromkeys(found))


def _last_line(finished: Finished) -> str:
    lines = (finished.stderr.strip() or finished.stdout.strip() or "it said nothing").splitlines()
    return lines[-1]
