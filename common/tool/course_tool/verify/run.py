# SPDX-License-Identifier: MIT
"""Runs the items one after the other, shows progress, and ends with the table of what holds."""

from __future__ import annotations

import fcntl
import json
import os
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Self

from rich.text import Text

from course_tool import console, processes
from course_tool.errors import CourseError
from course_tool.paths import relative
from course_tool.verify import clang_tidy
from course_tool.verify.mistakes import prove_mistakes
from course_tool.verify.outcome import Context, Item, Outcome, Verdict, VerifyOptions
from course_tool.verify.solutions import prove_asan, prove_release, prove_tsan
from course_tool.verify.starters import prove_starters, prove_tasks
from course_tool.verify.style import (
    prove_format,
    prove_headers,
    prove_python,
    prove_rules,
    prove_tidy,
)
from course_tool.verify.suites import prove_pages, prove_site, prove_tool
from course_tool.verify.sync import prove_marks, prove_sync
from course_tool.verify.trees import WORK

SHOWN_FAILURES_MAX = 12
RESULT = WORK / "result.json"

# First what the course is made of, then that it works, then that it reads well.
ITEMS = (
    Item("sync", "chapters/ is what the generator makes of solutions/", prove_sync),
    Item("marks", "every mark has its pair, its use and its task", prove_marks),
    Item("release", "every solution passes, optimized, nothing skipped", prove_release),
    Item("asan", "every solution passes under ASan and UBSan", prove_asan),
    Item("tsan", "every solution without a ring passes under TSan", prove_tsan),
    Item("starters", "starters compile without a warning; all tasks are red", prove_starters),
    Item("tasks", "each task alone is red by its own TODO, in order", prove_tasks),
    Item("mistakes", "every catalogued mistake is caught, and named", prove_mistakes),
    Item("tool", "the tool's own tests pass", prove_tool),
    Item("site", "the site builds, links hold, no request leaves", prove_site),
    Item("pages", "pages work in a real browser", prove_pages),
    Item("format", "C++ is laid out as .clang-format says", prove_format),
    Item("tidy", "clang-tidy finds nothing", prove_tidy),
    Item("headers", "every header compiles alone", prove_headers),
    Item("python", "ruff finds nothing", prove_python),
    Item("style", "the rules for code and pages hold", prove_rules),
)


def select_items(names: Sequence[str], items: Sequence[Item] = ITEMS) -> list[Item]:
    """Those that were asked for, in the course's order; a name may hold several, with commas."""
    known = [item.name for item in items]
    names = [name.strip() for each in names for name in each.split(",") if name.strip()]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise CourseError(f"verify has no item {unknown[0]!r}. It has: {', '.join(known)}.")
    return [item for item in items if not names or item.name in names]


def list_items() -> int:
    """Prints the name of every item, and what it proves."""
    for item in ITEMS:
        console.out.print(f"{item.name:10} {item.claim}")
    return 0


def run_verify(options: VerifyOptions, items: Sequence[Item] = ITEMS, work: Path = WORK) -> int:
    """Proves every item, or those of options.only. 0 if all of them hold, else 1."""
    selected = select_items(options.only, items)
    work.mkdir(parents=True, exist_ok=True)
    with _alone_in(work):
        return _prove_all(selected, options, work)


@contextmanager
def _alone_in(work: Path) -> Iterator[None]:
    """Two runs would build in one folder, and each would judge what the other has written."""
    with open(work / "lock", "w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CourseError(
                "Another `./course verify` runs in this clone. Wait for it, or verify in a clone "
                "of its own: git clone . ../proof"
            ) from None
        yield


def _prove_all(selected: Sequence[Item], options: VerifyOptions, work: Path) -> int:
    (work / RESULT.name).unlink(missing_ok=True)
    verdicts: list[Verdict] = []
    started = time.monotonic()
    with _Beside(options, work) as beside, ExitStack() as ahead:
        for position, item in enumerate(selected, start=1):
            if item.name == "tidy":
                ahead.close()  # what it has not got to is left to the item
            elif _may_start_tidy(selected, position - 1):
                ahead.enter_context(_tidy_ahead(work))
            place = f"[{position}/{len(selected)}]"
            console.out.print(f"{place} {item.name}: {item.claim}", style="bold")
            beside.begin(item, selected)
            verdict = beside.verdict(item) or prove(item, options, work)
            verdicts.append(verdict)
            _show(verdict)
            if options.fail_fast and not verdict.outcome.holds:
                break
    seconds = time.monotonic() - started
    write_result(work / RESULT.name, verdicts, seconds)
    _show_table(verdicts, len(selected) - len(verdicts), seconds)
    return 0 if all(verdict.outcome.holds for verdict in verdicts) else 1


class _Beside:
    """Proves `pages` beside `mistakes`: a browser and tests that wait leave processors idle."""

    def __init__(self, options: VerifyOptions, work: Path) -> None:
        self._prove = lambda item: prove(item, options, work)
        self._pool = ThreadPoolExecutor(1)
        self._begun: dict[str, Future[Verdict]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if any(not each.done() for each in self._begun.values()):
            processes.kill_all()  # interrupted, or enough has failed: nobody asks for it any more
        self._pool.shutdown(cancel_futures=True)

    def begin(self, item: Item, selected: Sequence[Item]) -> None:
        """Called when an item's turn comes: starts the one that may run beside it."""
        pages = [each for each in selected if each.name == "pages"]
        if item.name == "mistakes" and pages:
            self._begun["pages"] = self._pool.submit(self._silently, pages[0])

    def _silently(self, item: Item) -> Verdict:
        with console.without_progress():
            return self._prove(item)

    def verdict(self, item: Item) -> Verdict | None:
        """Waits for it, if it was begun."""
        begun = self._begun.get(item.name)
        return begun.result() if begun else None


def _may_start_tidy(selected: Sequence[Item], position: int) -> bool:
    """True once: when release no longer builds, and tests that wait are still to come."""
    names = [item.name for item in selected]
    return {"release", "tidy"} <= set(names) and position == names.index("release") + 1


def _tidy_ahead(work: Path) -> AbstractContextManager[None]:
    """See style.tidy_ahead(). What has to be installed is installed here, where it is shown."""
    if not clang_tidy.installed() and clang_tidy.install():
        return nullcontext()  # the item says what was wrong
    code = "import sys; from pathlib import Path; from course_tool.verify.style import tidy_ahead; "
    args = [sys.executable, "-c", f"{code}tidy_ahead(Path(sys.argv[1]))", work]
    return processes.beside(args, {"PYTHONPATH": str(Path(__file__).parents[2])})


def prove(item: Item, options: VerifyOptions, work: Path) -> Verdict:
    """Runs one item; whatever it raises is its failure, and the next item's turn comes."""
    started, cpu_started = time.monotonic(), _cpu_seconds()
    context = Context(options, work, _say)
    try:
        outcome = item.prove(context)
    except CourseError as error:
        outcome = Outcome("checks", failures=[str(error)])
    except Exception as error:  # a fault of ours must not hide what the other items say
        log = context.write_log(f"{item.name}-traceback", traceback.format_exc())
        sentence = f"verify itself failed here: {type(error).__name__}: {error} (see {log})"
        outcome = Outcome("checks", failures=[sentence])
    if outcome.holds and outcome.proved == 0:
        outcome.failures.append(f"{item.name} found nothing to prove; is the clone whole?")
    return Verdict(item, outcome, time.monotonic() - started, _cpu_seconds() - cpu_started)


def _cpu_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _say(text: str) -> None:
    console.err.print(f"  {text}", style="dim")


def _show(verdict: Verdict) -> None:
    outcome = verdict.outcome
    for note in outcome.notes:
        console.out.print(f"  note: {note}")
    for failure in outcome.failures[:SHOWN_FAILURES_MAX]:
        console.out.print(Text("  ✗ ", style="red") + Text(failure.replace("\n", "\n    ")))
    hidden = len(outcome.failures) - SHOWN_FAILURES_MAX
    if hidden > 0:
        console.out.print(f"  … and {hidden} more, all in {relative(RESULT)}")
    if outcome.holds:
        line = f"  ✓ {outcome.proved} {outcome.unit} in {verdict.seconds:.1f} s"
        console.out.print(line, style="green")


def _show_table(verdicts: Sequence[Verdict], left_out: int, seconds: float) -> None:
    columns = ["item", "what it proves", "proved>", "failed>", "seconds>", "verdict"]
    rows = [
        [
            verdict.item.name,
            verdict.item.claim,
            f"{verdict.outcome.proved} {verdict.outcome.unit}",
            len(verdict.outcome.failures),
            f"{verdict.seconds:.1f}",
            _verdict_text(verdict),
        ]
        for verdict in verdicts
    ]
    console.out.print()
    console.out.print(console.table(None, columns, rows))
    failed = [verdict.item.name for verdict in verdicts if not verdict.outcome.holds]
    took = f"{seconds // 60:.0f} min {seconds % 60:.0f} s"
    if left_out:
        console.out.print(f"Stopped at the first failure; {left_out} items were not looked at.")
    if not failed:
        console.out.print(f"All {len(verdicts)} items hold. It took {took}.", style="green")
        return
    held = len(verdicts) - len(failed)
    console.out.print(f"{', '.join(failed)}: failed. The other {held} items hold. It took {took}.")
    console.out.print(f"Again, those alone: ./course verify --only {','.join(failed)}")


def _verdict_text(verdict: Verdict) -> Text:
    return (
        Text("holds", style="green") if verdict.outcome.holds else Text("FAILED", style="bold red")
    )


def write_result(file: Path, verdicts: Sequence[Verdict], seconds: float) -> None:
    """What .ci/run counts, and what a reader looks up when the screen was too short."""
    result = {
        "passed": sum(verdict.outcome.proved for verdict in verdicts),
        "failed": sum(len(verdict.outcome.failures) for verdict in verdicts),
        "seconds": round(seconds, 1),
        "items": [_as_json(verdict) for verdict in verdicts],
    }
    file.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _as_json(verdict: Verdict) -> dict[str, object]:
    return {
        "name": verdict.item.name,
        "claim": verdict.item.claim,
        "holds": verdict.outcome.holds,
        "proved": verdict.outcome.proved,
        "unit": verdict.outcome.unit,
        "seconds": round(verdict.seconds, 1),
        "cpu_seconds": round(verdict.cpu_seconds, 1),
        "failures": verdict.outcome.failures,
        "notes": verdict.outcome.notes,
    }
