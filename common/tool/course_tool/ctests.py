# SPDX-License-Identifier: MIT
"""Runs tests through CTest and says how each one ended."""

from __future__ import annotations

import json
import os
import re
import signal
import tempfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from xml.etree import ElementTree

from course_tool import console, processes
from course_tool.builds import PLAIN_ENV, folder
from course_tool.errors import CourseError

Status = Literal["passed", "failed", "skipped", "timeout", "crashed"]

RUN_TIMEOUT_S = 1800
LISTING_TIMEOUT_S = 300
OUTPUT_BYTES_MAX = 200_000
JOBS_PER_CORE = 2  # a test waits for its server and clients half of its time; its limit allows it
JOBS_MAX = 24
CATCH2_SKIPPED = 4  # its exit code when all that ran was skipped
CPU_LIMIT = "COURSE_TEST_CPU_S"  # in `env`: how much processor time a test may use

# CTest says how a test ended only in its summary: `  5 - 01.2 a short send ... (SEGFAULT)`.
_ENDING = re.compile(r"^\s*\d+ - (?P<name>.+) \((?P<ending>[A-Za-z ]+)\)", re.MULTILINE)
_LINE = re.compile(r"^\s*\d+/(?P<total>\d+) Test\s+#\d+: (?P<name>.+?) ?\.*(\s|\*)")
_PLAIN_FAILURES = ("Failed", "Not Run")
OUT_OF_TIME = "SIGXCPU"


@dataclass(frozen=True)
class TestResult:
    __test__ = False  # pytest: this is no test class

    name: str
    status: Status
    seconds: float
    output: str  # what the test printed, on stdout and stderr; for a skipped one, the reason
    tags: tuple[str, ...]  # its CTest labels, and the task its name starts with


def run_tests(
    preset: str,
    label: str | None = None,
    name_regex: str | None = None,
    jobs: int | None = None,
    *,
    names: Collection[str] | None = None,
    without_label: str | None = None,
    tries: int = 1,
    env: Mapping[str, str] | None = None,
) -> list[TestResult]:
    """Runs what is built in a preset: all, those with a label, those whose name matches, or is one
    of `names`.

    Whatever a crashed test leaves in its temporary folder goes with ours.
    """
    where = folder(preset)
    cpu_s = (env or {}).get(CPU_LIMIT)
    selection = [] if label is None else ["-L", f"^{re.escape(label)}$"]
    selection += [] if name_regex is None else ["-R", name_regex]
    selection += [] if without_label is None else ["-LE", f"^{re.escape(without_label)}$"]
    selection += [] if names is None else ["-I", _numbers(preset, names)]
    with tempfile.TemporaryDirectory(prefix="course-tests-") as scratch:
        junit = Path(scratch) / "junit.xml"
        args = ["ctest", "--test-dir", where, "--output-junit", junit, "--no-tests=error"]
        args += ["--test-output-size-passed", str(OUTPUT_BYTES_MAX)]
        args += ["--test-output-size-failed", str(OUTPUT_BYTES_MAX)]
        args += ["--test-output-truncation", "middle"]  # what failed is said at the end
        args += ["--repeat", f"until-pass:{tries}"] if tries > 1 else []
        args += ["-j", str(jobs or _jobs()), *selection]
        with console.progress("Running the tests", total=0) as steps:
            finished = processes.run(
                processes.limited(args, int(cpu_s)) if cpu_s else args,
                timeout_s=RUN_TIMEOUT_S,
                env={**PLAIN_ENV, **(env or {}), "TMPDIR": scratch},
                on_line=_Counter(steps).see,
            )
        if not junit.is_file():
            raise CourseError(_no_report(finished))
        report = junit.read_text(encoding="utf-8", errors="replace")
    endings = {found["name"]: found["ending"] for found in _ENDING.finditer(finished.stdout)}
    labels = _labels(where, selection)
    cases = ElementTree.fromstring(report).iter("testcase")
    results = [_result(case, endings, labels) for case in cases]
    if not results:
        raise CourseError(_no_tests(preset, label, name_regex))
    return results


def listed_tests(preset: str) -> list[str]:
    """The names of all tests that are built in a preset, in CTest's order."""
    return [test["name"] for test in _tests_in(_listing(folder(preset), []))]


def _numbers(preset: str, names: Collection[str]) -> str:
    """As CTest takes them: from 0 to 0 by 0 are none, and then come those that are wanted."""
    listed = enumerate(listed_tests(preset), start=1)
    numbers = [str(number) for number, name in listed if name in names]
    if not numbers:  # CTest would run all
        raise CourseError(f"None of these tests is built in build/{preset}/: {', '.join(names)}")
    return ",".join(["0,0,0", *numbers])


def run_case(program: Path, name: str, *, timeout_s: float, env: Mapping[str, str]) -> TestResult:
    """Runs one case of a Catch2 program, without CTest."""
    escaped = re.sub(r"([\\,\[\]])", r"\\\1", name)
    with tempfile.TemporaryDirectory(prefix="course-tests-") as scratch:
        own = {**env, "TMPDIR": scratch}
        try:
            ended = processes.run(
                [program, escaped], timeout_s=timeout_s, cwd=program.parent, env=own
            )
        except CourseError as error:
            return TestResult(name, "timeout", timeout_s, str(error), ())
    output = ended.stdout + ended.stderr
    if ended.returncode == CATCH2_SKIPPED:
        return TestResult(name, "skipped", ended.seconds, _skip_reason(output), ())
    status = "failed" if ended.returncode > 0 else "crashed" if ended.returncode else "passed"
    return TestResult(name, status, ended.seconds, output, ())


def _jobs() -> int:
    return min(JOBS_PER_CORE * len(os.sched_getaffinity(0)), JOBS_MAX)


class _Counter:
    def __init__(self, steps: console.Steps) -> None:
        self._steps = steps
        self._done = 0

    def see(self, line: str) -> None:
        found = _LINE.match(line)
        if found:
            self._done += 1
            self._steps.at(self._done, int(found["total"]), found["name"])


def _result(
    case: ElementTree.Element, endings: Mapping[str, str], labels: Mapping[str, tuple[str, ...]]
) -> TestResult:
    name = case.get("name", "")
    output = _unescaped(case.findtext("system-out") or "")
    status = _status(case, endings.get(name, ""))
    task = re.match(r"\d\d\.\d+", name)
    tags = dict.fromkeys([*labels.get(name, ()), *([task[0]] if task else [])])
    if endings.get(name) == OUT_OF_TIME:
        output += "\nended after too much processor time: a loop without end?"
    return TestResult(
        name=name,
        status=status,
        seconds=float(case.get("time") or 0),
        output=_skip_reason(output) if status == "skipped" else output,
        tags=tuple(tags),
    )


def _status(case: ElementTree.Element, ending: str) -> Status:
    skipped = case.find("skipped")
    if skipped is not None and skipped.get("message", "").startswith("SKIP_"):
        return "skipped"
    if case.get("status") == "run":
        return "passed"
    if ending == "Timeout":
        return "timeout"
    return "crashed" if ending and ending not in _PLAIN_FAILURES else "failed"


def _unescaped(text: str) -> str:
    """CTest writes bytes that XML cannot hold as words; only ESC, of colors, is worth having."""
    text = re.sub(r"\[NON-XML-CHAR-0x1B\]\[[0-9;]*m", "", text)
    return re.sub(r"\[NON-(XML-CHAR|UTF-8-BYTE)-0x[0-9A-F]+\]", "\N{REPLACEMENT CHARACTER}", text)


def _skip_reason(output: str) -> str:
    """Catch2 prints the reason of a SKIP below 'explicitly with message:'."""
    found = re.search(r"explicitly with messages?:\n((?:[ \t]+\S.*\n?)+)", output)
    if not found:
        return output.strip()
    return " ".join(line.strip() for line in found[1].splitlines())


def _labels(where: Path, selection: list[str]) -> dict[str, tuple[str, ...]]:
    return labels_of(_listing(where, selection))


def _listing(where: Path, selection: list[str]) -> str:
    args = ["ctest", "--test-dir", where, "--show-only=json-v1", *selection]
    return processes.run(args, timeout_s=LISTING_TIMEOUT_S, env=PLAIN_ENV).stdout


def labels_of(listing: str) -> dict[str, tuple[str, ...]]:
    """Test name -> labels, from `ctest --show-only=json-v1`."""
    return {
        test["name"]: tuple(each["value"])
        for test in _tests_in(listing)
        for each in test.get("properties", [])
        if each["name"] == "LABELS"
    }


def _tests_in(listing: str) -> list[dict[str, Any]]:
    start = listing.find("{")
    return json.loads(listing[start:])["tests"] if start >= 0 else []


def _no_tests(preset: str, label: str | None, name_regex: str | None) -> str:
    asked = [f"label {label}"] if label else []
    asked += [f"a name like {name_regex}"] if name_regex else []
    return (
        f"No test has {' and '.join(asked) or 'been built'} in build/{preset}/. "
        "Is the test program built, and is the chapter listed in CMakeLists.txt?"
    )


def _no_report(finished: processes.Finished) -> str:
    if finished.returncode == -signal.SIGXCPU:
        return "CTest was stopped: a test prints without end, and CTest reads it all."
    listing = re.search(
        r"Error running test executable\s+'(?P<path>[^']*)':\s+Result: (?P<how>[^\n]+)",
        finished.stderr,
    )
    if listing:
        return (
            f"{Path(listing['path']).name} ended before its first test ({listing['how'].strip()}): "
            "a global's initializer, perhaps, which runs before main()."
        )
    said = (finished.stderr.strip() or finished.stdout.strip()).splitlines()[-8:]
    return "\n  ".join(["CTest could not run the tests. It said:", *said])
