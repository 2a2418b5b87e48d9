# SPDX-License-Identifier: MIT
"""What `./course verify` is made of: an item proves one claim and comes back with an outcome."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar

from course_tool import console
from course_tool.paths import relative
from course_tool.verify.trees import cores


@dataclass(frozen=True)
class VerifyOptions:
    everything: bool = False  # the tier: all items, or the quick ones
    only: tuple[str, ...] = ()  # names of items, of whichever tier; empty: the tier's
    fail_fast: bool = False  # stop after the first item that fails
    student: bool = False  # chapters/ holds a student's work: say so, and do not count it

    @property
    def thorough(self) -> bool:
        """Whether an item of both tiers proves what takes it a minute, too."""
        return self.everything or bool(self.only)


@dataclass
class Outcome:
    """How an item ended: it holds if nothing failed."""

    unit: str  # what `proved` counts: "tests", "files"
    proved: int = 0
    failures: list[str] = field(default_factory=list)  # a sentence each: where, what, what to do
    notes: list[str] = field(default_factory=list)  # worth saying, and no failure
    slowest: list[dict[str, object]] = field(default_factory=list)  # tests beside their limit

    @property
    def holds(self) -> bool:
        return not self.failures

    def check(self, sentence: str | None) -> None:
        """Counts one check: None if it held, else what is wrong."""
        if sentence is None:
            self.proved += 1
        else:
            self.failures.append(sentence)

    def fail_all(self, sentences: Iterable[str]) -> None:
        self.failures.extend(sentences)


@dataclass(frozen=True)
class Context:
    """What the items share: the options, a folder for their builds, and how to say where they are.

    `step` shows one line of progress. `write_log` keeps the long text of a failure in a file and
    returns how that file is called from the clone's root.
    """

    options: VerifyOptions
    work: Path
    step: Callable[[str], None]

    @property
    def logs(self) -> Path:
        return self.work / "logs"

    def write_log(self, name: str, text: str) -> str:
        self.logs.mkdir(parents=True, exist_ok=True)
        file = self.logs / f"{name}.log"
        file.write_text(text, encoding="utf-8")
        return relative(file)


def _nothing() -> None:
    pass


@dataclass(frozen=True)
class Item:
    name: str  # what --only takes
    claim: str  # what the table says was proved
    prove: Callable[[Context], Outcome]
    quick: bool = False  # `./course verify` proves it too, not --all alone
    beside: str = ""  # the item during whose turn it is proved, if both are wanted
    ahead: str = ""  # the item after which it is tried at idle priority, for its turn to be short
    prepare: Callable[[], None] = _nothing  # installs what the other items need not wait for
    leaves_out: str = ""  # what its claim might seem to hold, and does not


@dataclass(frozen=True)
class Verdict:
    """An item that ran, for the table and for result.json."""

    item: Item
    outcome: Outcome
    seconds: float
    cpu_seconds: float  # of all its processes: what is left on a machine that does other things


class _HasName(Protocol):
    @property
    def name(self) -> str: ...


_Named = TypeVar("_Named", bound=_HasName)
AGAIN_MAX = 20  # where more fail, it is not the machine


def check_all(
    outcome: Outcome, what: str, those: Sequence[_Named], problem: Callable[[_Named], str | None]
) -> None:
    """Checks each by `problem`, two at a time for each processor: many of them wait for a
    deadline. A busy machine can make one miss it, so what fails is checked again, alone."""
    wrong: list[tuple[_Named, str]] = []
    with (
        console.progress(what, total=len(those)) as steps,
        ThreadPoolExecutor(2 * cores()) as pool,
    ):
        for done, (each, found) in enumerate(zip(those, pool.map(problem, those), strict=True), 1):
            steps.at(done, len(those), each.name)
            if found is None:
                outcome.check(None)
            else:
                wrong.append((each, found))
    with console.progress(f"{what}, again", total=len(wrong)) as steps:
        for done, (each, found) in enumerate(wrong, start=1):
            steps.at(done, len(wrong), each.name)
            again = problem(each) if len(wrong) <= AGAIN_MAX else found
            outcome.check(again)
            if again is None:
                first = found.splitlines()[0]
                outcome.notes.append(f"{each.name} was in order only at the second try: {first}")
