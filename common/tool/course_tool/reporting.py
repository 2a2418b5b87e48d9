# SPDX-License-Identifier: MIT
"""What the reader sees of a test run: a red test's own words first, then where to read about it."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from course_tool import builds, console
from course_tool.chapters import Chapter, Task
from course_tool.ctests import TestResult
from course_tool.diagnosis import Diagnosis, Finding, SanitizerReport, Todo
from course_tool.errors import CourseError
from course_tool.groups import Group, Result, contract_key
from course_tool.paths import relative
from course_tool.places import todos_of
from course_tool.trace.commands import can_trace

FINDINGS_SHOWN = 2  # of a task, whole; of the next tests the first sentence
TESTS_SHOWN = 5  # of a task; --verbose shows all
WARNINGS_SHOWN = 3
COLUMNS_SHOWN = 200
EXCEPTION_LINES_SHOWN = 10  # a server's last words may be among them
CONTRACT_PAGE = "docs/reference/servers.md"

_STYLES: dict[Result, str] = {"green": "green", "red": "red", "todo": "yellow", "skipped": "yellow"}


def show_warnings(warnings: Sequence[str], preset: str) -> None:
    """The compiler's, of the student's own files."""
    if not warnings:
        return
    console.out.print("The compiler warns:", style="bold")
    for warning in warnings[:WARNINGS_SHOWN]:
        console.out.print(f"  {warning}", style="yellow")
    more = len(warnings) - WARNINGS_SHOWN
    if more > 0:
        log = relative(builds.log_of(preset))
        console.out.print(f"  …and {more} more in {log}", style="dim")
    console.out.print()


def show_red(group: Group, chapter: Chapter, preset: str, *, verbose: bool) -> None:
    """Prints what a group's red tests say; nothing if there are none. Long logs go to a file."""
    if not group.red:
        return
    if group.key in group.todos and not verbose:
        where = _where_to_write(group.todos[group.key], chapter)
        console.out.print(f"{group.key} not written yet: write it at {where}", style="yellow")
        return
    console.out.print(f"{group.key}  {group.title}", style="bold")
    for todo in group.todos.values():
        waits = "" if todo.task == group.key else f"waits for {todo.task}, which is "
        where = _where_to_write(todo, chapter)
        console.out.print(f"  {waits}not written yet: write it at {where}", style="yellow")
    if not group.only_todos:
        _show_tests(group, preset, None if verbose else FINDINGS_SHOWN)
        if preset not in builds.SANITIZER_PRESETS and any(_fell_over(*red) for red in group.red):
            whose = " --solution" if preset == "reference" else ""
            console.out.print(
                f"  It crashed: ./course test {chapter.number}{whose} --sanitize names the line "
                "that touched what it must not, and whose memory that was."
            )
        if any(_says_no_reason(*red) for red in group.red) and can_trace(chapter, group.key):
            whose = " --solution" if preset == "reference" else ""
            console.out.print(
                f"  What leads to it? ./course trace {chapter.number}{whose} records a run, names "
                "the rule that it breaks, and lets you step through it."
            )
        console.out.print(_where_to_read(group, chapter), style="dim")
    console.out.print()


def _where_to_write(todo: Todo, chapter: Chapter) -> str:
    """Every place of the task; the test itself ran into one of them."""
    return todos_of(chapter, todo.task) or todo.where


def _show_tests(group: Group, preset: str, findings_max: int | None) -> None:
    """The first findings whole, then a sentence a test."""
    hidden = shown = 0
    left = findings_max
    for test, diagnosis in sorted(group.red, key=_rank):
        if diagnosis.todo:
            continue
        count = max(1, len(diagnosis.findings))
        shown += 1
        if findings_max is not None and shown > TESTS_SHOWN:
            hidden += count
        elif left == 0:
            _show_first_sentence(test, diagnosis)
            hidden += count - 1
        else:
            _show_test(test, diagnosis, preset, left)
            if left is not None:
                hidden += max(0, count - left)
                left = max(0, left - count)
    if hidden:
        console.out.print(f"  … and {hidden} more; --verbose shows all of it", style="dim")


def _fell_over(test: TestResult, diagnosis: Diagnosis) -> bool:
    """It, or a program that it had started; an exception that nobody caught says enough."""
    if diagnosis.todo or diagnosis.uncaught:
        return False
    signals = ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGILL")
    said = [diagnosis.signal or "", *(child.state for child in diagnosis.children)]
    return test.status == "crashed" or any(signal in each for each in said for signal in signals)


def _says_no_reason(test: TestResult, diagnosis: Diagnosis) -> bool:
    """A crash or a time limit is all that it could say."""
    ended = test.status in ("crashed", "timeout")
    return ended and not (diagnosis.todo or diagnosis.findings or diagnosis.uncaught)


def _rank(red: tuple[TestResult, Diagnosis]) -> int:
    """First what causes what the other tests say: a sanitizer's finding with its line, then an
    exception or an assertion that ended the program. The others stay in order."""
    diagnosis = red[1]
    if diagnosis.sanitizer and diagnosis.sanitizer.frames:
        return 0
    return 1 if diagnosis.uncaught or diagnosis.assertion else 2


def _show_first_sentence(test: TestResult, diagnosis: Diagnosis) -> None:
    console.out.print(f"  {test.name}", style="red")
    sanitizer = diagnosis.sanitizer
    ending = sanitizer.headline if sanitizer else _ending(test, diagnosis)
    if ending:
        _say(ending)
    if _says_nothing_else(test, diagnosis):
        _say(diagnosis.tail[-1])  # such as a watchdog's sentence
    for finding in diagnosis.findings[:1]:
        said = finding.message or finding.expression or finding.exception or finding.reason
        if said or not ending:
            _say(said.splitlines()[0] if said else "red, without a word")
        console.out.print(f"    {finding.where}", style="dim")


def _says_nothing_else(test: TestResult, diagnosis: Diagnosis) -> bool:
    """It ended its own program: why is what it printed last."""
    told = diagnosis.findings or diagnosis.sanitizer or test.status in ("crashed", "timeout")
    return bool(diagnosis.tail) and not told


def _ending(test: TestResult, diagnosis: Diagnosis) -> str | None:
    if test.status == "crashed" and not diagnosis.sanitizer:
        if diagnosis.uncaught:
            return f"It crashed by an exception that nobody caught: {diagnosis.uncaught}"
        if diagnosis.assertion:
            return f"It crashed at an assertion: {diagnosis.assertion}"
        return f"It crashed: ended by {diagnosis.signal or 'a signal'}."
    if test.status == "timeout":
        return (
            f"Still running after {test.seconds:.0f} s, so it was stopped: something waits for "
            "what never comes, or a loop does not end."
        )
    if not diagnosis.findings and not diagnosis.sanitizer:
        return "Its program ended before the test did."
    return None


def _show_test(
    test: TestResult, diagnosis: Diagnosis, preset: str, findings_max: int | None
) -> None:
    console.out.print(f"  {test.name}", style="red")
    if diagnosis.sanitizer:
        _show_sanitizer(test, diagnosis.sanitizer, preset)
    ending = _ending(test, diagnosis)
    if ending:
        _say(ending)
    for finding in diagnosis.findings[:findings_max]:
        _show_finding(finding)
    if diagnosis.sanitizer and findings_max is not None:
        return  # the rest of what was printed is the rest of its report
    for child in diagnosis.children:
        if child.tells or findings_max is None:
            _show_printed(f"{child.state}{'; its stderr:' if child.stderr else ''}", child.stderr)
    no_word = test.status in ("crashed", "timeout") or not diagnosis.findings
    if diagnosis.tail and (no_word or findings_max is None):
        _show_printed("It printed:", diagnosis.tail)


def _show_sanitizer(test: TestResult, report: SanitizerReport, preset: str) -> None:
    _say(report.headline)
    for frame in report.frames:
        console.out.print(f"      {frame}")
    try:
        log = builds.keep_log(preset, test.name, test.output)
    except CourseError as error:
        console.out.print(f"    The full report is lost: {error}", style="dim")
        return
    console.out.print(f"    The full report: {relative(log)}", style="dim")


def _show_printed(title: str, lines: Sequence[str]) -> None:
    console.out.print(f"    {title}")
    for line in lines:
        console.out.print(f"      {line}", style="dim")


def _say(text: str) -> None:
    console.out.print(f"    {text}", style="bold")


def _show_finding(finding: Finding) -> None:
    for line in finding.message.splitlines():
        _say(line)
    if finding.expression:
        console.out.print(f"    {_one_line(finding.expression)}")
    if finding.exception:
        first, *more = finding.exception.splitlines()
        console.out.print(f"      it threw: {first}")
        for line in more[:EXCEPTION_LINES_SHOWN]:
            console.out.print(f"        {line}")
    elif finding.expansion or finding.reason:
        came = f"it was: {finding.expansion}" if finding.expansion else finding.reason
        console.out.print(f"      {_one_line(came)}")
    console.out.print(f"    {finding.where}", style="dim")


def _one_line(text: str) -> str:
    line = " ".join(each.strip() for each in text.splitlines())
    return line if len(line) <= COLUMNS_SHOWN else f"{line[: COLUMNS_SHOWN - 1]}…"


def _where_to_read(group: Group, chapter: Chapter) -> str:
    if group.key == contract_key(chapter):
        return f"  Read: {CONTRACT_PAGE}"
    if group.key.endswith(" whole"):
        return f"  Read: {chapter.page_name}"
    anchor = "task-" + group.key.replace(".", "-")
    return f"  Read: {chapter.page_name}#{anchor}   A hint: ./course hint {group.key}"


def show_whole_waits() -> None:
    console.out.print("The tests of the whole chapter wait until these are green.")


def show_table(chapter: Chapter, groups: Sequence[Group]) -> None:
    rows = [
        (
            each.key.removeprefix(f"{chapter.number} "),
            each.title,
            f"{each.green_count} of {len(each.tests)}",
            Text(_result_text(each), _STYLES[each.result]),
        )
        for each in groups
    ]
    title = f"Chapter {chapter.number}: {chapter.title}"
    console.out.print(console.table(title, ("task", "", "green>", "result"), rows))
    for test in (test for each in groups for test in each.tests if test.status == "skipped"):
        console.out.print(f"skipped: {test.name}: {test.output}", style="yellow")


def _result_text(group: Group) -> str:
    if group.result == "todo":
        return "red: not written yet"
    if group.only_todos:
        return f"red: waits for {', '.join(sorted(group.todos))}"
    return group.result


def show_next(chapter: Chapter, only: Task | None, *, students: bool) -> None:
    """One line, once everything that was asked for is green."""
    number = chapter.number
    if only:
        console.out.print(f"Task {only.id} is green. The whole chapter: ./course test {number}")
    elif students:
        console.out.print(
            f"Chapter {number} is green, every test of it: well done. "
            f"Go on with the page, up to its checkpoint: ./course bench {number}",
            style="bold green",
        )
    else:
        console.out.print(f"The solution of chapter {number} is green, every test of it.")
