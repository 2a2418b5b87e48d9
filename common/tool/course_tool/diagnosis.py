# SPDX-License-Identifier: MIT
"""What a red test has to say, without the banners of Catch2 around it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from course_tool import paths

_TAIL_LINES = 12
_FAILED = re.compile(r"(?P<where>\S.*:\d+): (?:FAILED|SKIPPED):$")
_RULE = re.compile(r"[-=.~]{60,}$")
_BANNERS = re.compile(r"Filters: |Randomness seeded to: |Run with -\? for|\S+ is a Catch2 v")
_LABELS = re.compile(
    r"(with expansion|with messages?|explicitly with messages?|due to .*|because .*|but .*):$"
)
_TODO = re.compile(
    r"TODO (?P<task>\d\d\.\d+): (?P<title>.*)\n"
    r"\s*write it at (?P<where>.*:\d+)\n\s*read +(?P<page>\S+)"
)
_SIGNAL = re.compile(r"due to a fatal error condition:\n\s*(SIG\w+)")
_SIGNAL_MEANINGS = {
    "SIGSEGV": "it touched memory that is not its own",
    "SIGBUS": "it touched memory that is not there",
    "SIGABRT": "abort() was called: an assert, or an exception that nobody caught",
    "SIGFPE": "an arithmetic error, such as an integer division by zero",
    "SIGILL": "an instruction that does not exist, often the end of a function without a return",
    "SIGTERM": "somebody ended it",
    "SIGPIPE": "it wrote to a connection that was gone",
}


@dataclass(frozen=True)
class Todo:
    """A task that a test ran into, and that nobody has written yet."""

    task: str
    title: str
    where: str  # file:line
    page: str


@dataclass(frozen=True)
class Finding:
    """One failed assertion."""

    where: str  # file:line
    expression: str
    expansion: str
    reason: str  # "because no exception was thrown where one was expected"; mostly empty
    message: str  # what the test's author says about it; may be empty
    exception: str  # what() of an exception that nobody expected; may be empty


@dataclass(frozen=True)
class Diagnosis:
    todo: Todo | None
    findings: tuple[Finding, ...]
    signal: str | None  # "SIGSEGV: it touched memory that is not its own"
    tail: tuple[str, ...]  # the last lines that the test and its children printed


def diagnose(output: str) -> Diagnosis:
    """Reads the output of one Catch2 test case."""
    return Diagnosis(
        todo=_find_todo(output),
        findings=tuple(_findings(output)),
        signal=_find_signal(output),
        tail=_tail(output),
    )


def skip_reason(output: str) -> str:
    """Why a test was skipped, in its own words."""
    for finding in _findings(output):
        if finding.message:
            return finding.message
    return "no reason given"


def shorten(text: str) -> str:
    """The clone's own folder says nothing in a path."""
    return text.replace(f"{paths.ROOT}/", "")


def _find_todo(output: str) -> Todo | None:
    match = _TODO.search(output)
    if not match:
        return None
    return Todo(match["task"], match["title"], shorten(match["where"]), match["page"])


def _find_signal(output: str) -> str | None:
    match = _SIGNAL.search(output)
    if not match:
        return None
    meaning = _SIGNAL_MEANINGS.get(match[1])
    return f"{match[1]}: {meaning}" if meaning else match[1]


def _findings(output: str) -> Iterator[Finding]:
    where = ""
    block: list[str] = []
    for line in [*output.splitlines(), "-" * 79]:
        match = _FAILED.match(line)
        if where and (match or _RULE.match(line)):
            yield _finding(where, block)
            where = ""
        if match:
            where = shorten(match["where"])
            block = []
        else:
            block.append(line)


def _finding(where: str, block: list[str]) -> Finding:
    parts: dict[str, list[str]] = {"expression": []}
    current = parts["expression"]
    reason = ""
    for line in block:
        match = _LABELS.match(line)
        if match:
            current = parts.setdefault(_kind(match[1]), [])
            reason = match[1] if _kind(match[1]) == "condition" else reason
        else:
            current.append(line)
    texts = {kind: _dedent(lines) for kind, lines in parts.items()}
    return Finding(
        where=where,
        expression=texts["expression"],
        expansion=texts.get("expansion", ""),
        reason=reason,
        message=shorten(texts.get("message", "")),
        exception=shorten(texts.get("exception", "")),
    )


def _kind(label: str) -> str:
    if "expansion" in label:
        return "expansion"
    if "exception with message" in label:
        return "exception"
    if "with message" in label:
        return "message"
    return "condition"  # a signal, or an exception that did not come


def _dedent(lines: list[str]) -> str:
    return "\n".join(line.removeprefix("  ").rstrip() for line in lines).strip("\n")


def _tail(output: str) -> tuple[str, ...]:
    """What was printed outside of Catch2's report: stderr of the test and of its servers."""
    lines: list[str] = []
    in_report = False
    for line in output.splitlines():
        if _BANNERS.match(line):
            continue
        if _RULE.match(line):
            in_report = True
        elif line.startswith(("test cases: ", "assertions: ")):
            in_report = False
        elif not in_report and line.strip():
            lines.append(shorten(line.rstrip()))
    return tuple(lines[-_TAIL_LINES:])
