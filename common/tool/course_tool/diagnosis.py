# SPDX-License-Identifier: MIT
"""What a red test has to say, out of what tests/support/test_main.cpp prints of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from course_tool import paths

_TAIL_LINES = 12
_FAILED = re.compile(r"(?P<where>\S.*:\d+): FAILED:$")
_RULE = re.compile(r"[-=]{79}$")  # a sanitizer's is shorter
_LABELS = re.compile(r"(with expansion|(explicitly )?with message|due to .*|because .*):$")
_TODO = re.compile(
    r"TODO (?P<task>\d\d\.\d+): (?P<title>.*?)\s+write it at\s+(?P<where>.*?:\d+)\s+"
    r"read\s+(?P<page>\S+)",
)
_SIGNAL = re.compile(r"  (?P<name>SIG[A-Z]+) - .* signal$")
_UNCAUGHT = re.compile(
    r"^terminate called after throwing an instance of '(?P<type>[^']+)'"
    r"(\n\s*what\(\):\s+(?P<what>.*\S))?",
    re.MULTILINE,
)
# glibc's; libstdc++'s names no program and has other quotes. Ours end with a sentence in quotes.
_ASSERTION = re.compile(
    r"^(\S+: )?(?P<where>\S+:\d+): .*Assertion [`'](?P<what>.*)' failed\.$", re.MULTILINE
)
_CHILD = re.compile(r"(?P<state>\S+ \(pid \d+\) .*); (its stderr:|it printed nothing on stderr)$")
_SANITIZER = re.compile(r"(?P<kind>ERROR|WARNING): \w+Sanitizer: .*|\S+: runtime error: .*")
_FRAME = re.compile(  # TSan's have no address, and name their program behind the line
    r"\s*#\d+ (0x\w+ in )?(?P<function>.*) "
    r"(?P<file>(chapters|solutions|tests|common)/\S+?:\d+(:\d+)?)( \(.*\))?$"
)
_FRAMES_SHOWN = 3
_NO_EXPRESSION = "{Unknown expression after the reported line}"
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
class Child:
    """A server or client that the test had started, as its harness reports it."""

    state: str  # "02-server (pid 17) is running"
    stderr: tuple[str, ...]

    @property
    def tells(self) -> bool:
        """Whether it adds anything: it said something, or ended when nobody asked it to."""
        return bool(self.stderr) or "ended by itself" in self.state


@dataclass(frozen=True)
class SanitizerReport:
    """The beginning of what ASan, UBSan or TSan says, in the test or in its server."""

    headline: str  # "ERROR: AddressSanitizer: heap-use-after-free on address 0x1"
    frames: tuple[str, ...]  # "chapters/01-x/echo.hpp:33:42 in blocking::send_all"


@dataclass(frozen=True)
class Diagnosis:
    todo: Todo | None
    sanitizer: SanitizerReport | None
    findings: tuple[Finding, ...]
    signal: str | None  # "SIGSEGV: it touched memory that is not its own"
    uncaught: str | None  # "std::runtime_error: no such file", which ended the test program
    assertion: str | None  # "solutions/08-x/join.hpp:24: more arrivals than were waited for"
    children: tuple[Child, ...]
    tail: tuple[str, ...]  # the end of what the test program itself printed


def diagnose(output: str) -> Diagnosis:
    """Reads the output of one Catch2 test case."""
    lines, children = _take_children(output.splitlines())
    own = "\n".join(lines)
    return Diagnosis(
        todo=_find_todo(output),
        sanitizer=_find_sanitizer(output),
        findings=tuple(_findings(lines)),
        signal=_find_signal(lines),
        uncaught=_find_uncaught(own),
        assertion=_find_assertion(own),
        children=children,
        tail=_tail(lines),
    )


def shorten(text: str) -> str:
    """The clone's own folder says nothing in a path."""
    return text.replace(f"{paths.ROOT}/", "")


def _find_todo(output: str) -> Todo | None:
    match = _TODO.search(output)
    if not match:
        return None
    return Todo(match["task"], match["title"], shorten(match["where"]), match["page"])


def _find_sanitizer(output: str) -> SanitizerReport | None:
    lines = [shorten(line) for line in output.splitlines()]
    for number, line in enumerate(lines):
        found = _SANITIZER.search(line)
        if found:
            headline = re.sub(r" (at pc 0x|\(pid=).*", "", found[0])
            is_race = "ThreadSanitizer" in headline
            frames = _course_frames(lines[number + 1 :], is_race=is_race)
            return SanitizerReport(headline, frames)
    return None


def _course_frames(report: Sequence[str], *, is_race: bool) -> tuple[str, ...]:
    """Where the report passes through the chapter; where it does not, through the course."""
    stacks: list[list[str]] = [[]]
    for line in report:
        if line.lstrip().startswith("SUMMARY: ") or _SANITIZER.search(line):
            break
        if line.lstrip().startswith("#0 "):
            stacks.append([])
        frame = _FRAME.match(line)
        if frame:
            stacks[-1].append(f"{frame['file']} in {frame['function'].partition('(')[0]}")
    first = _students_sides(stacks[1:3]) if is_race else []
    frames = [frame for stack in stacks for frame in stack]
    own = [frame for frame in frames if frame.startswith(("chapters/", "solutions/"))]
    return tuple(dict.fromkeys([*first, *(own or frames)]))[:_FRAMES_SHOWN]


def _students_sides(accesses: Sequence[Sequence[str]]) -> list[str]:
    """A race has two sides, and the one that TSan tells first may lie deep in the course's code. So
    of each side the student's line that is nearest to the access, and the nearer one first."""
    lines = (
        next(((at, line) for at, line in enumerate(stack) if line.startswith("chapters/")), None)
        for stack in accesses
    )
    return [line for _, line in sorted(filter(None, lines), key=lambda each: each[0])]


def _take_children(lines: Sequence[str]) -> tuple[list[str], tuple[Child, ...]]:
    """Separates the harness's reports on child processes from the rest."""
    rest: list[str] = []
    children: list[Child] = []
    stderr: list[str] | None = None
    for line in [*lines, ""]:
        match = _CHILD.match(line)
        if stderr is not None and not match and line.startswith("    "):
            stderr.append(shorten(line[4:].rstrip()))
            children[-1] = Child(children[-1].state, tuple(stderr[-_TAIL_LINES:]))
        elif match:
            children.append(Child(match["state"], ()))
            stderr = []
        else:
            stderr = None
            rest.append(line)
    return rest, tuple(children)


def _find_signal(lines: Sequence[str]) -> str | None:
    name = next((match["name"] for match in map(_SIGNAL.match, lines) if match), None)
    meaning = _SIGNAL_MEANINGS.get(name or "")
    return f"{name}: {meaning}" if meaning else name


def _find_uncaught(output: str) -> str | None:
    found = _UNCAUGHT.search(output)
    if not found:
        return None
    # A type that nobody else can name, such as errors.cpp's, tells less than what it says.
    if found["what"] and "(anonymous namespace)" in found["type"]:
        return shorten(found["what"])
    return f"{found['type']}: {shorten(found['what'])}" if found["what"] else found["type"]


def _find_assertion(output: str) -> str | None:
    found = _ASSERTION.search(output)
    if not found:
        return None
    sentence = re.search(r'&& "(.+)"$', found["what"])
    return f"{shorten(found['where'])}: {sentence[1] if sentence else found['what']}"


def _findings(lines: Sequence[str]) -> Iterator[Finding]:
    where = ""
    block: list[str] = []
    for line in [*lines, "-" * 79]:
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
            kind = _kind(match[1])
            current = parts.setdefault(kind, [])
            reason = match[1] if match[1].startswith("because ") else reason
        elif _SIGNAL.match(line):
            continue  # the diagnosis says it, and what it means
        else:
            current.append(line)
    texts = {kind: _dedent(lines) for kind, lines in parts.items()}
    return Finding(
        where=where,
        expression=texts["expression"].replace(_NO_EXPRESSION, ""),
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
    return "message"  # also below a signal, and below an exception that did not come


def _dedent(lines: list[str]) -> str:
    return "\n".join(line.removeprefix("  ").rstrip() for line in lines).strip("\n")


def _tail(lines: Sequence[str]) -> tuple[str, ...]:
    """What was printed outside of Catch2's report."""
    printed: list[str] = []
    in_report = False
    for line in lines:
        if _RULE.match(line):
            in_report = True
        elif line.startswith("test cases: "):
            in_report = False
        elif not in_report and line.strip():
            printed.append(shorten(line.rstrip()))
    return tuple(printed[-_TAIL_LINES:])
