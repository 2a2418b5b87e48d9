# SPDX-License-Identifier: MIT
"""What the reader sees: text as it is, and progress with and without a terminal."""

from __future__ import annotations

import io
import time

import pytest
from course_tool import console
from rich.console import Console


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """Takes the place of stderr; a test decides whether it is a terminal."""
    text = io.StringIO()
    show_on(monkeypatch, text, terminal=False)
    return text


def show_on(monkeypatch: pytest.MonkeyPatch, text: io.StringIO, *, terminal: bool) -> None:
    made = Console(
        file=text, force_terminal=terminal, width=100, markup=False, highlight=False, emoji=False
    )
    monkeypatch.setattr(console, "err", made)


def test_outside_text_is_never_markup(capsys: pytest.CaptureFixture[str]) -> None:
    text = "[bold][start:task-01-1] :smile: 01.1" + " a/long/path" * 20
    console.out.print(text)
    console.err.print(text)
    assert capsys.readouterr() == (f"{text}\n", f"{text}\n")


def test_without_a_terminal_every_step_is_a_line(screen: io.StringIO) -> None:
    with console.progress("Measuring", total=2) as steps:
        steps.step("one")
        steps.step("[two]")
    assert screen.getvalue().splitlines() == [
        "Measuring: 1 of 2  one",
        "Measuring: 2 of 2  [two]",
    ]


def test_without_a_terminal_work_that_counts_itself_speaks_now_and_then(
    screen: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    with console.progress("Building", total=0) as steps:
        steps.at(1, 40, "a.o")
        monkeypatch.setattr(console, "LINE_EVERY_S", 0.0)
        steps._next_line_s = 0.0  # type: ignore[attr-defined]  # ten seconds later
        steps.at(9, 40, "b.o")
        steps.at(0, 0, "no count yet")
    assert screen.getvalue().splitlines() == [
        "Building: 9 of 40  b.o",
        "Building: no count yet",
    ]


def test_only_what_takes_long_says_that_it_has_begun(
    screen: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    with console.progress("Building"):
        pass
    assert screen.getvalue() == ""
    monkeypatch.setattr(console, "SILENT_S", 0.0)
    with console.progress("Building"):
        deadline = time.monotonic() + 60
        while not screen.getvalue() and time.monotonic() < deadline:
            time.sleep(0.01)
    assert screen.getvalue() == "Building …\n"


def test_on_a_terminal_progress_leaves_nothing_behind(
    screen: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    show_on(monkeypatch, screen, terminal=True)
    with console.progress("Building", total=0) as steps:
        steps.at(3, 12, "[x].o")
    shown = screen.getvalue()
    assert "3/12" in shown
    assert "[x].o" in shown
    assert shown.endswith("\x1b[2K"), "the last thing it does is to clear its line"


def test_a_table_aligns_numbers_and_keeps_text_as_it_is() -> None:
    text = io.StringIO()
    made = console.table("Costs", ["what", "ns>"], [["[a]", 5], ["b", 12345]])
    Console(file=text, width=60).print(made)
    rows = text.getvalue().splitlines()
    assert rows[0].strip() == "Costs"
    assert "│ [a]  │     5 │" in text.getvalue()
    assert "│ b    │ 12345 │" in text.getvalue()


def test_a_thread_can_be_told_to_say_nothing_of_its_progress(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with console.without_progress(), console.progress("Quiet", total=2) as steps:
        steps.step("one")
        steps.at(2)
    with console.progress("Loud", total=2) as steps:
        steps.step("one")
    assert capsys.readouterr().err == "Loud: 1 of 2  one\n"
