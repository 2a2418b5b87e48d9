# SPDX-License-Identifier: MIT
"""./course hint: one further each time, and no further than three."""

from __future__ import annotations

import pytest
from live_course import LiveCourse, flat


def test_each_time_one_further_and_then_the_way_to_the_solution(live: LiveCourse) -> None:
    hints = [flat(live.run("hint", "01.2").out) for _ in range(4)]
    assert "Hint 1 of 3: What?" in hints[0] and "So." not in hints[0]
    assert "Hint 2 of 3: So." in hints[1] and "What?" not in hints[1]
    assert "Hint 3 of 3: Thus." in hints[2]
    assert "no more hints" in hints[2] and "./course diff 01" in hints[2]
    assert hints[3] == hints[2]
    assert live.state()["hints"] == {"01.2": 3}


def test_tasks_count_on_their_own(live: LiveCourse) -> None:
    live.run("hint", "01.2")
    assert "Hint 1 of 3" in live.run("hint", "01.1").out
    assert "Hint 2 of 3" in live.run("hint", "1.2").out


def test_again_repeats_and_all_shows_all(live: LiveCourse) -> None:
    assert "Hint 1 of 3" in live.run("hint", "01.1", "--again").out
    live.run("hint", "01.1")
    assert "Hint 2 of 3" in live.run("hint", "01.1", "--again").out
    out = live.run("hint", "01.1", "--all").out
    assert all(f"Hint {number} of 3" in out for number in (1, 2, 3))


def test_of_a_chapter_it_is_the_first_task_that_is_not_green(live: LiveCourse) -> None:
    assert "01.1 Add" in live.run("hint", "01").out
    live.solve("01.1")
    live.run("test", "01")
    assert '01.2 Say "yes"' in live.run("hint", "01").out
    live.solve()
    live.run("test", "01")
    done = live.run("hint", "01")
    assert done.code == 0
    assert "Every task of chapter 01 is green" in done.out


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("01.9", "There is no task 01.9. Chapter 01 has 01.1 to 01.3."),
        ("99.1", "There is no chapter 99. Try 01 to 02."),
        ("99", "There is no chapter 99. Try 01 to 02."),
        ("one", "There is no chapter one. Try 01 to 02."),
        ("01.two", "'01.two' is not a task."),
    ],
)
def test_bad_input(live: LiveCourse, task: str, said: str) -> None:
    live.refused("hint", task, said=said)
    assert not (live.root / ".course" / "state.json").exists()
