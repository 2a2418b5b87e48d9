# SPDX-License-Identifier: MIT
"""Runs the items one after the other, shows progress, and ends with the table of what holds."""

from __future__ import annotations

import json
import os
import platform
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Self

from rich.text import Text

from course_tool import builds, console, processes
from course_tool.errors import CourseError
from course_tool.files import locked
from course_tool.paths import relative
from course_tool.trace.proof import prove_traces
from course_tool.verify import clang_tidy
from course_tool.verify.headers import prove_headers
from course_tool.verify.mistakes import prove_mistakes
from course_tool.verify.outcome import Context, Item, Outcome, Verdict, VerifyOptions
from course_tool.verify.solutions import prove_asan, prove_release, prove_tsan
from course_tool.verify.starters import prove_starters, prove_tasks
from course_tool.verify.style import prove_format, prove_python, prove_rules, prove_tidy
from course_tool.verify.suites import prove_pages, prove_site, prove_slow, prove_tool
from course_tool.verify.sync import prove_marks, prove_sync
from course_tool.verify.trees import WORK

SHOWN_FAILURES_MAX = 12
RESULT = WORK / "result.json"

# First what the course is made of, then that it works, then that it reads well.
ITEMS = (
    Item("sync", "chapters/ is what the generator makes of solutions/", prove_sync, quick=True),
    Item("marks", "every mark has its pair, its use and its task", prove_marks, quick=True),
    Item("release", "every solution passes, optimized, nothing skipped", prove_release, quick=True),
    Item("asan", "every solution passes under ASan and UBSan", prove_asan),
    Item(
        "tsan", "solutions without a ring, and 12, pass under TSan", prove_tsan,
        leaves_out="data races beside a ring: TSan does not see the kernel's side",
    ),
    # Ahead of its turn, like tidy: while the solutions' tests wait, the starters are compiled.
    Item(
        "starters", "starters compile without a warning; all tasks are red", prove_starters,
        quick=True, ahead="marks",
    ),
    Item("tasks", "each task alone is red by its own TODO, in order", prove_tasks),
    Item("mistakes", "every catalogued mistake is caught, and named", prove_mistakes),
    Item("tool", "the tool's own tests pass", prove_tool, quick=True),
    Item("site", "the site builds, links hold, no request leaves", prove_site, quick=True),
    # A browser, a recording, a server that is soaked and the mistakes' tests wait, and leave
    # processors idle; what tool times needs them.
    Item(
        "pages", "pages work in a real browser", prove_pages,
        beside="mistakes", leaves_out="browsers other than Chromium",
    ),
    Item(
        "traces", "the pages' recordings, made anew, hold; strace agrees", prove_traces,
        beside="mistakes",
    ),
    Item(
        "slow", "a soaked server holds; chapter 01, built as a student does", prove_slow,
        beside="mistakes",
    ),
    Item("format", "C++ is laid out as .clang-format says", prove_format),
    # From the beginning: marks takes a moment, and from then on tests wait.
    Item(
        "tidy", "clang-tidy finds nothing", prove_tidy,
        ahead="marks", prepare=clang_tidy.ensure,
    ),
    Item("headers", "every header compiles alone", prove_headers),
    Item("python", "ruff finds nothing", prove_python),
    Item("style", "the rules for code and pages hold", prove_rules),
)  # fmt: skip


def select_items(options: VerifyOptions, items: Sequence[Item] = ITEMS) -> list[Item]:
    """A tier, or those that were asked for, in the course's order; a name may hold commas."""
    known = [item.name for item in items]
    names = [name.strip() for each in options.only for name in each.split(",") if name.strip()]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise CourseError(f"verify has no item {unknown[0]!r}. It has: {', '.join(known)}.")
    if names:
        return [item for item in items if item.name in names]
    return [item for item in items if item.quick or options.everything]


def list_items() -> int:
    """Prints the name of every item, and what it proves."""
    for item in ITEMS:
        console.out.print(f"{item.name:10} {'' if item.quick else '--all':6} {item.claim}")
    return 0


def run_verify(options: VerifyOptions, items: Sequence[Item] = ITEMS, work: Path = WORK) -> int:
    """Proves the items of a tier, or those of options.only. 0 if all of them hold, else 1."""
    selected = select_items(options, items)
    work.mkdir(parents=True, exist_ok=True)
    with _alone_in(work):
        (work / RESULT.name).unlink(missing_ok=True)
        started = time.monotonic()
        verdicts = list(_prove_all(selected, options, work))
        seconds = time.monotonic() - started
        write_result(work / RESULT.name, verdicts, seconds)
        _show_table(verdicts, items, len(selected) - len(verdicts), seconds)
    return 0 if all(verdict.outcome.holds for verdict in verdicts) else 1


def _alone_in(work: Path) -> AbstractContextManager[None]:
    """Two runs would build in one folder, and each would judge what the other has written."""

    def refuse() -> None:
        raise CourseError(
            "Another `./course verify` runs in this clone. Wait for it, or verify in a clone "
            "of its own: git clone . ../proof"
        )

    return locked(work / "lock", on_wait=refuse)


def _prove_all(selected: Sequence[Item], options: VerifyOptions, work: Path) -> Iterator[Verdict]:
    for item in selected:
        item.prepare()
    with _Beside(options, work) as beside, ExitStack() as all_ahead:
        ahead: dict[str, ExitStack] = {}
        for position, item in enumerate(selected, start=1):
            if item.name in ahead:
                ahead[item.name].close()  # what it has not got to is left to the item's turn
            place = f"[{position}/{len(selected)}]"
            console.out.print(f"{place} {item.name}: {item.claim}", style="bold")
            beside.begin([each for each in selected if each.beside == item.name])
            verdict = beside.verdict(item) or prove(item, options, work)
            _show(verdict)
            yield verdict
            if options.fail_fast and not verdict.outcome.holds:
                return
            for later in (each for each in selected if each.ahead == item.name):
                ahead[later.name] = all_ahead.enter_context(ExitStack())
                ahead[later.name].enter_context(_proved_ahead(later, work))


class _Beside:
    """Proves items beside another one, which has the terminal."""

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

    def begin(self, items: Sequence[Item]) -> None:
        for item in items:
            self._begun[item.name] = self._pool.submit(self._silently, item)

    def _silently(self, item: Item) -> Verdict:
        with console.without_progress():
            return self._prove(item)

    def verdict(self, item: Item) -> Verdict | None:
        """Waits for it, if it was begun."""
        begun = self._begun.get(item.name)
        return begun.result() if begun else None


def _proved_ahead(item: Item, work: Path) -> AbstractContextManager[None]:
    """For as long as the block runs: see work_ahead()."""
    code = "import sys; from course_tool.verify.run import work_ahead; work_ahead(*sys.argv[1:])"
    args = [sys.executable, "-c", code, item.name, work]
    return processes.beside(args, {"PYTHONPATH": str(Path(__file__).parents[2])})


def work_ahead(name: str, work: str) -> None:
    """Proves an item that remembers what holds, so that its turn finds most of it known or built.

    Nothing waits for it: at this priority it gets what tests that wait leave of the processors.
    """
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    item = next(item for item in ITEMS if item.name == name)
    item.prove(Context(VerifyOptions(), Path(work), lambda text: None))


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


def _show_table(
    verdicts: Sequence[Verdict], items: Sequence[Item], stopped_before: int, seconds: float
) -> None:
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
    for sentence in not_looked_at([verdict.item for verdict in verdicts], items):
        console.out.print(sentence)
    failed = [verdict.item.name for verdict in verdicts if not verdict.outcome.holds]
    took = "{} min {} s".format(*divmod(round(seconds), 60))
    if stopped_before:
        console.out.print(f"Stopped at the first failure; {stopped_before} items were left.")
    if not failed:
        console.out.print(f"All {len(verdicts)} items hold. It took {took}.", style="green")
        return
    for verdict in verdicts:  # what was said above is far away by now
        for failure in verdict.outcome.failures[:SHOWN_FAILURES_MAX]:
            console.out.print(Text(f"  ✗ {verdict.item.name}: ", style="red") + Text(failure))
    held = len(verdicts) - len(failed)
    console.out.print(f"{', '.join(failed)}: failed. The other {held} items hold. It took {took}.")
    console.out.print(f"Again, those alone: ./course verify --only {','.join(failed)}")


def not_looked_at(proved: Sequence[Item], items: Sequence[Item]) -> list[str]:
    """What a reader of the table could take for proved, and is not."""
    left = [item.name for item in items if item not in proved]
    compiler = " ".join(map(str, builds.compiler_version("c++") or ("compiler",)))
    beyond = [
        f"kernels other than {platform.release()}, compilers other than this machine's {compiler}",
        *(item.leaves_out for item in proved if item.leaves_out),
        "speed, which `./course bench` shows",
    ]
    said = [f"Nothing looked at {'; '.join(beyond)}."]
    if left:
        said.insert(0, f"Left out: {', '.join(left)}. All of it: ./course verify --all")
    return said


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
        "slowest_tests": verdict.outcome.slowest,
    }
