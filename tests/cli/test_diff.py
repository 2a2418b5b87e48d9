# SPDX-License-Identifier: MIT
"""./course diff: the solution beside the student's own, and a question before it is due."""

from __future__ import annotations

from live_course import LiveCourse, flat
from terminal import CTRL_C, Terminal


def test_before_green_it_needs_a_yes(live: LiveCourse) -> None:
    done = live.refused("diff", "01", said="Chapter 01 is not green: 01.1 is not started")
    assert "./course diff 01 --yes" in done.err
    assert "step(0)" not in done.out


def test_with_yes_it_shows_the_solution_without_its_marks(live: LiveCourse) -> None:
    done = live.run("diff", "01", "--yes")
    assert done.code == 0
    lines = done.out.splitlines()
    assert "--- chapters/01-first/work.hpp" in lines
    assert "+++ solutions/01-first/work.hpp" in lines
    assert '-  COURSE_TODO("01.1");' in lines and "+  step(0);" in lines
    assert "--8<--" not in done.out and "chapter.toml" not in done.out


def test_a_green_chapter_is_not_asked_about(live: LiveCourse) -> None:
    live.solve()
    live.run("test", "01")
    done = live.run("diff", "01")
    assert done.code == 0
    assert "-  solved();" in done.out


def test_files_of_your_own_are_named_and_deleted_ones_shown(live: LiveCourse) -> None:
    (live.yours / "notes.md").write_text("mine")
    (live.yours / "more.hpp").unlink()
    out = live.run("diff", "01", "-y").out
    assert "Only in yours: chapters/01-first/notes.md" in out
    assert "--- /dev/null" in out and "+++ solutions/01-first/more.hpp" in out


def test_equal_to_the_solution_is_said(live: LiveCourse) -> None:
    for name in ("work.hpp", "more.hpp"):
        text = (live.root / "solutions" / "01-first" / name).read_text()
        kept = [line for line in text.splitlines() if "--8<--" not in line]
        (live.yours / name).write_text("\n".join(kept) + "\n")
    done = live.run("diff", "01", "--yes")
    assert flat(done.out) == "Your chapter 01 is the solution, line by line."


def test_on_a_terminal_it_asks(live: LiveCourse) -> None:
    for answer, shown in (("n", False), ("", False), ("y", True)):
        with Terminal(live, "diff", "01") as terminal:
            terminal.wait_for("[y/N]")
            terminal.type(f"{answer}\n")
            code = terminal.wait()
        assert code == (0 if shown else 1)
        assert ("step(0);" in terminal.text) == shown


def test_ctrl_c_at_the_question(live: LiveCourse) -> None:
    with Terminal(live, "diff", "01") as terminal:
        terminal.wait_for("[y/N]")
        terminal.type(CTRL_C)
        assert terminal.wait() == 130
    assert terminal.text.count("interrupted") == 1


def test_bad_input(live: LiveCourse) -> None:
    assert "There is no chapter 99" in live.run("diff", "99").err
