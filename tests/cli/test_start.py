# SPDX-License-Identifier: MIT
"""./course start: from a clone to the first red, and on from there."""

from __future__ import annotations

import pytest
from live_course import LiveCourse, flat


@pytest.fixture
def prepared(live: LiveCourse) -> LiveCourse:
    live.link_dependencies()
    return live


def test_it_ends_with_the_expected_red_and_what_to_do(prepared: LiveCourse) -> None:
    done = prepared.run("start", "--yes")
    assert done.code == 0, done.err
    out = flat(done.out)
    for step in range(1, 5):
        assert f"[{step}/4]" in out and f"[{step}/4] done in" in out
    assert "01.1 Add 0 of 2 red: not written yet" in out
    assert "The red above is the starting point" in out
    assert "./course serve, then http://127.0.0.1:8000/chapters/01-first/" in out
    assert "chapters/01-first/work.hpp: 01.1 Add" in out
    assert "./course test 01" in out


def test_the_second_run_knows_where_you_are(prepared: LiveCourse) -> None:
    prepared.run("start")
    prepared.solve("01.1")
    out = flat(prepared.run("start").out)
    assert "starting point" not in out
    assert '01.2 Say "yes"' in out and "chapters/01-first/more.hpp: 01.2" in out


def test_with_chapter_01_done_it_points_on(prepared: LiveCourse) -> None:
    prepared.solve()
    done = prepared.run("start")
    assert done.code == 0
    assert "Chapter 01 is done; ./course status says what is next." in done.out


def test_a_chapter_that_does_not_compile_is_said(prepared: LiveCourse) -> None:
    prepared.say("SYNTAX ERROR")
    prepared.refused("start", said="course: chapters/01-first/work.hpp:12:5: error: expected ';'")
