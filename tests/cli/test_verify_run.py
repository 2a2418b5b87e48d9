# SPDX-License-Identifier: MIT
"""The frame of `./course verify`: what is run, what is said, and what it exits with."""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from course_tool.errors import CourseError
from course_tool.verify import run as verify_run
from course_tool.verify.outcome import Context, Item, Outcome, VerifyOptions, check_all
from course_tool.verify.run import ITEMS, list_items, run_verify, select_items


def holding(name: str, proved: int = 3) -> Item:
    return Item(name, f"{name} holds", lambda context: Outcome("tests", proved=proved))


def failing(name: str, count: int = 1) -> Item:
    sentences = [f"{name}.cpp:{number}: wrong." for number in range(1, count + 1)]
    return Item(name, f"{name} holds", lambda context: Outcome("tests", 2, list(sentences)))


def raising(name: str, error: Exception) -> Item:
    def prove(context: Context) -> Outcome:
        raise error

    return Item(name, f"{name} holds", prove)


@pytest.fixture
def verify(tmp_path: Path) -> Callable[..., int]:
    def run(*items: Item, everything: bool = True, **options: object) -> int:
        asked = VerifyOptions(everything, **options)  # type: ignore[arg-type]
        return run_verify(asked, items, tmp_path)

    return run


def read_result(tmp_path: Path) -> dict:
    return json.loads((tmp_path / "result.json").read_text())


def test_all_items_hold(verify: Callable[..., int], tmp_path: Path, capsys) -> None:
    assert verify(holding("one"), holding("two", 4)) == 0
    shown = capsys.readouterr().out
    assert "[1/2] one: one holds" in shown
    assert "All 2 items hold." in shown
    assert (read_result(tmp_path)["passed"], read_result(tmp_path)["failed"]) == (7, 0)


def test_an_item_is_tried_ahead_until_its_turn_comes(
    verify: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []

    @contextmanager
    def ahead(item: Item, work: Path) -> Iterator[None]:
        events.append(f"{item.name} ahead")
        yield
        events.append(f"{item.name} ended")

    def noted(name: str, **more: object) -> Item:
        def prove(context: Context) -> Outcome:
            events.append(name)
            return Outcome("tests", proved=1)

        return Item(name, name, prove, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(verify_run, "_proved_ahead", ahead)
    tidy = noted("tidy", ahead="release", prepare=lambda: events.append("prepared"))
    everything = [noted("release"), noted("asan"), tidy, noted("style")]
    assert verify(*everything) == 0
    wanted = ["prepared", "release", "tidy ahead", "asan", "tidy ended", "tidy", "style"]
    assert events == wanted
    events.clear()
    assert verify(*everything, only=("asan", "tidy")) == 0
    assert events == ["prepared", "asan", "tidy"], "only what comes after a release leaves time"
    events.clear()
    assert verify(noted("release"), failing("asan"), tidy, fail_fast=True) == 1
    assert events == ["prepared", "release", "tidy ahead", "tidy ended"]


def test_what_is_tried_ahead_is_at_idle_priority(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a child: a process cannot always come back from this priority."""

    def prove(context: Context) -> Outcome:
        said = os.sched_getscheduler(0) == os.SCHED_IDLE
        (context.work / "idle").write_text(str(said))
        return Outcome("files")

    monkeypatch.setattr(verify_run, "ITEMS", [Item("tidy", "tidy", prove)])
    child = os.fork()
    if child == 0:
        try:
            verify_run.work_ahead("tidy", str(tmp_path))
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert (tmp_path / "idle").read_text() == "True"


def test_an_item_is_proved_beside_another_one(
    verify: Callable[..., int], tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    mistakes_run, pages_runs = threading.Event(), threading.Event()

    def meets(
        name: str, mine: threading.Event, other: threading.Event, beside: str = ""
    ) -> Item:
        def prove(context: Context) -> Outcome:
            mine.set()
            met = other.wait(5)
            return Outcome("tests", 1, [] if met else [f"{name} was alone."])

        return Item(name, name, prove, beside=beside)

    mistakes = meets("mistakes", mistakes_run, pages_runs)
    pages = meets("pages", pages_runs, mistakes_run, beside="mistakes")
    assert verify(mistakes, holding("site"), pages) == 0
    shown = capsys.readouterr().out
    assert shown.index("[1/3] mistakes") < shown.index("[2/3] site") < shown.index("[3/3] pages")
    names = [item["name"] for item in read_result(tmp_path)["items"]]
    assert names == ["mistakes", "site", "pages"]
    assert verify(pages) == 0, "alone it runs in its turn"


def test_interrupted_it_does_not_wait_for_what_runs_beside(
    verify: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = threading.Event()
    monkeypatch.setattr(verify_run.processes, "kill_all", killed.set)

    def until_killed(context: Context) -> Outcome:
        return Outcome("tests", 1, [] if killed.wait(5) else ["It was waited for."])

    def interrupted(context: Context) -> Outcome:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        verify(
            Item("mistakes", "mistakes", interrupted),
            Item("pages", "pages", until_killed, beside="mistakes"),
        )
    assert killed.is_set()


def test_a_failed_item_does_not_hide_the_next(
    verify: Callable[..., int], tmp_path: Path, capsys
) -> None:
    assert verify(failing("one"), holding("two")) == 1
    shown = capsys.readouterr().out
    assert "one.cpp:1: wrong." in shown
    assert "✓ 3 tests" in shown
    assert "one: failed. The other 1 items hold." in shown
    assert "./course verify --only one" in shown
    result = read_result(tmp_path)
    assert (result["passed"], result["failed"]) == (5, 1)
    assert [item["holds"] for item in result["items"]] == [False, True]


def test_fail_fast_stops_and_says_so(verify: Callable[..., int], tmp_path: Path, capsys) -> None:
    assert verify(failing("one"), holding("two"), fail_fast=True) == 1
    assert "Stopped at the first failure; 1 items were left." in capsys.readouterr().out
    assert len(read_result(tmp_path)["items"]) == 1


def test_many_failures_are_counted_and_kept(
    verify: Callable[..., int], tmp_path: Path, capsys
) -> None:
    assert verify(failing("one", count=20)) == 1
    shown = capsys.readouterr().out
    assert "one.cpp:12: wrong." in shown
    assert "one.cpp:13: wrong." not in shown
    assert "… and 8 more" in shown
    assert len(read_result(tmp_path)["items"][0]["failures"]) == 20


def test_the_end_names_what_failed_once_more(verify: Callable[..., int], capsys) -> None:
    assert verify(failing("one"), holding("two")) == 1
    end = capsys.readouterr().out.partition("Nothing looked at")[2]
    assert "✗ one: one.cpp:1: wrong." in end


def tried(*tries_to_hold: int) -> tuple[Outcome, list[int]]:
    """What comes of things that hold from such a try on, and how often each was tried."""
    those = [holding(str(number)) for number in range(len(tries_to_hold))]
    tries = [0] * len(those)

    def problem(item: Item) -> str | None:
        number = int(item.name)
        tries[number] += 1
        return None if tries[number] >= tries_to_hold[number] else f"{number} failed\nat length"

    outcome = Outcome("things")
    check_all(outcome, "Checking", those, problem)
    return outcome, tries


def test_what_fails_beside_others_is_checked_again_alone() -> None:
    outcome, tries = tried(1, 2, 3, 1)
    assert (outcome.proved, outcome.failures, tries) == (3, ["2 failed\nat length"], [1, 2, 2, 1])
    assert outcome.notes == ["1 was in order only at the second try: 1 failed"]


def test_where_many_fail_none_is_checked_again() -> None:
    outcome, tries = tried(*[2] * 21)
    assert (outcome.proved, len(outcome.failures), set(tries)) == (0, 21, {1})


def test_an_error_of_the_course_is_the_items_failure(verify: Callable[..., int], capsys) -> None:
    assert verify(raising("one", CourseError("There is no ninja here.")), holding("two")) == 1
    shown = capsys.readouterr().out
    assert "✗ There is no ninja here." in shown
    assert "✓ 3 tests" in shown


def test_a_fault_of_verify_itself_is_said_and_logged(
    verify: Callable[..., int], tmp_path: Path, capsys
) -> None:
    assert verify(raising("one", ValueError("oh"))) == 1
    assert "verify itself failed here: ValueError: oh" in capsys.readouterr().out
    assert "Traceback" in (tmp_path / "logs" / "one-traceback.log").read_text()


def test_an_item_that_proves_nothing_does_not_hold(verify: Callable[..., int], capsys) -> None:
    assert verify(holding("one", proved=0)) == 1
    assert "one found nothing to prove" in capsys.readouterr().out


def test_an_old_result_does_not_outlive_a_new_run(
    verify: Callable[..., int], tmp_path: Path
) -> None:
    (tmp_path / "result.json").write_text("{}")
    with pytest.raises(KeyboardInterrupt):
        verify(raising("one", KeyboardInterrupt()))  # type: ignore[arg-type]
    assert not (tmp_path / "result.json").exists()


def names_of(options: VerifyOptions, items: Sequence[Item]) -> list[str]:
    return [item.name for item in select_items(options, items)]


def test_items_are_chosen_by_name_in_the_course_order() -> None:
    items = [holding("one"), holding("two"), holding("three")]
    assert names_of(VerifyOptions(only=("three,one",)), items) == ["one", "three"]
    assert names_of(VerifyOptions(only=("three", "one")), items) == ["one", "three"]
    with pytest.raises(CourseError, match="has no item 'four'. It has: one, two, three."):
        select_items(VerifyOptions(only=("one", "four")), items)


def test_a_tier_is_the_quick_items_or_all_of_them() -> None:
    quick = ["sync", "marks", "release", "starters", "tool", "site"]
    assert names_of(VerifyOptions(), ITEMS) == quick
    assert select_items(VerifyOptions(everything=True), ITEMS) == list(ITEMS)


def test_the_end_says_what_nothing_looked_at(verify: Callable[..., int], capsys) -> None:
    quick = Item("one", "one holds", lambda context: Outcome("tests", 1), quick=True)
    slow = Item("two", "two", lambda context: Outcome("tests", 1), leaves_out="what rings share")
    assert verify(quick, slow, everything=False) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "Left out: two. All of it: ./course verify --all" in shown
    assert f"Nothing looked at kernels other than {os.uname().release}" in shown
    assert "what rings share" not in shown
    assert verify(quick, slow) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "Left out" not in shown and "what rings share" in shown


def test_every_item_that_waits_for_another_names_one() -> None:
    names = [item.name for item in ITEMS]
    for item in ITEMS:
        for other in filter(None, (item.beside, item.ahead)):
            assert names.index(other) < names.index(item.name)


def test_the_list_names_every_item(capsys) -> None:
    assert list_items() == 0
    shown = capsys.readouterr().out
    assert [line.split()[0] for line in shown.splitlines()] == [item.name for item in ITEMS]
    assert len({item.name for item in ITEMS}) == len(ITEMS)


def test_two_runs_in_one_clone_are_refused(verify: Callable[..., int], tmp_path: Path) -> None:
    with open(tmp_path / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(CourseError, match="Another `./course verify` runs in this clone"):
            verify(holding("one"))
    assert verify(holding("one")) == 0
