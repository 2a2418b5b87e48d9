# SPDX-License-Identifier: MIT
"""`./course doctor`: what this machine can do, chapter by chapter, and the fix for the rest."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import Enum

from rich.text import Text

from course_tool import console
from course_tool.chapters import Chapter, all_chapters
from course_tool.doctor import host as this_host
from course_tool.doctor import kernel as this_kernel
from course_tool.doctor.host import Check, State
from course_tool.doctor.kernel import Feature, Kernel
from course_tool.errors import CourseError

SCHEMA = 1
HOST_KEYS = ("name", "state", "value", "why", "fix")  # of a check, in the JSON


class Answer(Enum):
    """Can this chapter be done here? The value is what the reader sees."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"  # it needs io_uring, and the doctor's program could not be run


@dataclass(frozen=True)
class Verdict:
    """Of one chapter."""

    number: str
    title: str
    kernel: str  # what the chapter was written for; says something, decides nothing
    needs: tuple[str, ...]  # names of features
    answer: Answer
    missing: tuple[Feature, ...] = ()


@dataclass(frozen=True)
class Report:
    """All that was found."""

    host: tuple[Check, ...]
    kernel: Kernel
    chapters: tuple[Verdict, ...]

    @property
    def ok(self) -> bool:
        """Every chapter that there is can be done here."""
        return all(each.answer is Answer.YES for each in self.chapters)

    def verdict(self) -> str:
        """One line for `./course start`, and the last of `./course doctor`."""
        lacking = [check for check in self.host if check.state is State.MISSING]
        if lacking:
            names = ", ".join(check.name for check in lacking)
            return f"This machine cannot build the course yet. It lacks: {names}."
        if self.ok:
            ahead = self._ahead()
            return f"{self._can()} {ahead}" if ahead else "This machine can do every chapter."
        return f"{self._can()} {self._cannot()}".strip()

    def _ahead(self) -> str:
        """What chapters that are still to come will need, and may not find."""
        ring = self.kernel.forbidden
        if ring and not any(chapter.needs for chapter in self.chapters):
            return f"But io_uring does not work here ({ring.errno}): chapters from 04 on need it."
        if self.kernel.problem:
            return "Whether io_uring works here is unknown: ./course doctor says why."
        return ""

    def _can(self) -> str:
        numbers = [each.number for each in self.chapters if each.answer is Answer.YES]
        return f"You can do {in_words(numbers)}." if numbers else ""

    def _cannot(self) -> str:
        sentences = []
        for each in self.chapters:
            if each.missing:
                first = each.missing[0]
                more = f" and {len(each.missing) - 1} more" if len(each.missing) > 1 else ""
                came = f": {first.errno}" if first.errno else ""
                sentences.append(f"{each.number} needs {first.name}{more}{came}.")
        unknown = [each.number for each in self.chapters if each.answer is Answer.UNKNOWN]
        if unknown:
            sentences.append(f"Whether {in_words(unknown)} can be done is unknown.")
        return " ".join(sentences)


def in_words(numbers: Sequence[str]) -> str:
    """'chapters 01–05 and 07': neighbors become ranges."""
    runs: list[list[str]] = []
    for number in numbers:
        if runs and int(number) == int(runs[-1][-1]) + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    parts = [run[0] if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs]
    joined = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
    return f"{'chapter' if len(numbers) == 1 else 'chapters'} {joined}"


def judge(chapter: Chapter, kernel: Kernel, host: Sequence[Check] = ()) -> Verdict:
    """By what the chapter's chapter.toml says it needs."""
    about = (chapter.number, chapter.title, chapter.kernel, chapter.features)
    if kernel.problem:
        answer = Answer.UNKNOWN if chapter.features else Answer.YES
        missing: tuple[Feature, ...] = ()
    else:
        features = [_named(name, chapter, kernel) for name in chapter.features]
        missing = tuple(each for each in features if not each.ok)
        answer = Answer.NO if missing else Answer.YES
    if any(check.state is State.MISSING for check in host):
        answer = Answer.NO  # no compiler, no chapter
    return Verdict(*about, answer, missing)


def _named(name: str, chapter: Chapter, kernel: Kernel) -> Feature:
    feature = kernel.feature(name)
    if feature is None:
        raise CourseError(
            f"solutions/{chapter.folder}/chapter.toml: features names {name!r}, and the doctor "
            "tries nothing of that name. docs/reference/features.md lists what it tries."
        )
    return feature


def collect() -> Report:
    """Looks at everything; builds the doctor's program if it is not built yet."""
    kernel = this_kernel.ask()
    with console.progress("Looking at this machine"):
        host = this_host.all_checks()
    verdicts = tuple(judge(each, kernel, host) for each in all_chapters())
    return Report(tuple(host), kernel, verdicts)


def short_verdict() -> str:
    """One line: can this machine do every chapter, or what is missing?"""
    return collect().verdict()


def run_doctor(*, as_json: bool) -> int:
    """Shows the report; 0 if every chapter that there is can be done."""
    report = collect()
    if as_json:
        print(to_json(report))
    else:
        render(report)
    return 0 if report.ok else 1


# --- for programs ---


def to_json(report: Report) -> str:
    """One document; docs/reference/features.md describes its keys."""
    host = [
        {**{key: getattr(check, key) for key in HOST_KEYS}, "state": check.state.value}
        for check in report.host
    ]
    chapters = [
        {
            **{key: getattr(each, key) for key in ("number", "title", "kernel", "needs")},
            "can": each.answer.value,
            "missing": [asdict(feature) for feature in each.missing],
        }
        for each in report.chapters
    ]
    document = {
        "schema": SCHEMA,
        "ok": report.ok,
        "verdict": report.verdict(),
        "host": host,
        "io_uring": asdict(report.kernel),
        "chapters": chapters,
    }
    return json.dumps(document, indent=2, ensure_ascii=False)


# --- for readers ---

_STYLES = {
    State.GOOD: "green",
    State.LIMITED: "yellow",
    State.MISSING: "red",
    Answer.YES: "green",
    Answer.NO: "red",
    Answer.UNKNOWN: "yellow",
}


def render(report: Report) -> None:
    """Tables of what is there, then what is not, with its fix; the verdict comes last."""
    _show_host(report.host)
    _show_kernel(report)
    _show_chapters(report.chapters)
    console.out.print(report.verdict(), style="bold")


def _mark(value: State | Answer) -> Text:
    return Text(value.value, style=_STYLES[value])


def _show_trouble(name: str, came: str, why: str, fix: str) -> None:
    """Whole lines, wrapped by the terminal: a fix can be copied."""
    console.out.print(f"{name}: {came}" if came else name, style="bold")
    if why:
        console.out.print(f"  why: {why}")
    console.out.print(f"  fix: {fix}")


def _show_host(checks: Sequence[Check]) -> None:
    rows = [(check.name, _mark(check.state), check.value) for check in checks]
    _print_table(("this machine", "", "found"), rows)
    _show_packages(checks, State.MISSING, "Every chapter needs these; ./course start installs them")
    _show_packages(checks, State.LIMITED, "Only ./course bench and ./course verify need these")
    for check in checks:
        if check.state is not State.GOOD and check.need is None:
            _show_trouble(check.name, check.value, check.why, check.fix)
    console.out.print()


def _show_packages(checks: Sequence[Check], state: State, heading: str) -> None:
    """One command for all of them."""
    absent = [check for check in checks if check.state is state and check.need]
    if not absent:
        return
    console.out.print(f"{heading}:", style="bold")
    for check in absent:
        console.out.print(f"  {check.name}: {check.why}")
    needs = [check.need for check in absent if check.need]
    console.out.print(f"  fix: {this_host.install_fix(needs)}")


def _show_kernel(report: Report) -> None:
    kernel = report.kernel
    if kernel.problem:
        _show_trouble("io_uring", "not tried", kernel.problem, "./course start, then this again")
        console.out.print()
        return
    console.out.print(f"Tried on Linux {kernel.release}, with liburing {kernel.liburing}:")
    if kernel.forbidden:
        came = "none of it works"
        _show_trouble("io_uring", came, kernel.forbidden.reason, kernel.forbidden.fix)
    else:
        _print_table(("io_uring", "works", "of"), _group_rows(kernel))
        _show_missing_features(report)
    console.out.print()


def _group_rows(kernel: Kernel) -> list[tuple[str, Text, str]]:
    groups = dict.fromkeys(each.group for each in kernel.features)
    rows = []
    for group in groups:
        tried = [each for each in kernel.features if each.group == group]
        working = sum(each.ok for each in tried)
        style = _STYLES[State.GOOD if working == len(tried) else State.LIMITED]
        rows.append((group, Text(str(working), style=style), str(len(tried))))
    return rows


def _show_missing_features(report: Report) -> None:
    """In full, but for what is newer than the course's floor and what no chapter needs."""
    needed = {name for chapter in report.chapters for name in chapter.needs}
    missing = [each for each in report.kernel.features if not each.ok]
    extras = [each for each in missing if each.is_extra and each.name not in needed]
    for each in missing:
        if each not in extras:
            _show_trouble(f"{each.name} ({each.summary})", "", each.reason, each.fix)
    if extras:
        names = ", ".join(f"{each.name} (Linux {each.since})" for each in extras)
        console.out.print(f"Not on this kernel, and needed by no chapter: {names}.")


def _show_chapters(chapters: Sequence[Verdict]) -> None:
    rows = [(each.number, each.title, _mark(each.answer)) for each in chapters]
    _print_table(("", "chapter", "can be done"), rows)
    for each in chapters:
        for feature in each.missing:
            name = f"{each.number} needs {feature.name}"
            _show_trouble(name, feature.summary, feature.reason, feature.fix)
    console.out.print()


def _print_table(columns: Sequence[str], rows: Sequence[Sequence[str | Text]]) -> None:
    # A narrow terminal folds long cells; the console's own soft wrapping would tear the frame.
    console.out.print(console.table(None, columns, rows), soft_wrap=False)
