# SPDX-License-Identifier: MIT
"""./course watch: the tests again at every save, also at one that comes while they run."""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from conftest import alive_with
from live_course import LiveCourse, flat, wait_until

WAITING = "Waiting for the next save"


class Watcher:
    """A running ./course watch, and all that it has printed."""

    def __init__(self, tool: subprocess.Popen[str]) -> None:
        self.tool = tool
        self.text = ""
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.tool.stdout is not None
        for line in self.tool.stdout:
            self.text += line

    def wait_for_rounds(self, count: int) -> None:
        wait_until(lambda: self.text.count(WAITING) >= count, f"round {count}")

    def close(self) -> None:
        self.tool.kill()
        self.tool.wait()
        self._reader.join()


@contextmanager
def watching(live: LiveCourse, *args: str) -> Iterator[Watcher]:
    watcher = Watcher(live.start("watch", "01", *args))
    try:
        yield watcher
    finally:
        watcher.close()


def test_each_save_is_a_round(live: LiveCourse) -> None:
    with watching(live) as watcher:
        watcher.wait_for_rounds(1)
        assert "01.1 not written yet" in watcher.text
        live.solve()
        watcher.wait_for_rounds(2)
        assert "Saved: " in watcher.text and "work.hpp" in watcher.text
        assert "Chapter 01 is green" in watcher.text
        assert "\x1b" not in watcher.text


def test_a_chapter_that_does_not_compile_is_a_round_like_any_other(live: LiveCourse) -> None:
    live.solve()
    live.say("SYNTAX ERROR")
    with watching(live) as watcher:
        watcher.wait_for_rounds(1)
        assert "error: expected ';'" in watcher.text
        work = live.yours / "work.hpp"
        work.write_text(work.read_text().replace("// SYNTAX ERROR\n", ""))
        watcher.wait_for_rounds(2)
        assert "Chapter 01 is green" in watcher.text


def test_a_save_during_a_round_starts_another(live: LiveCourse) -> None:
    live.solve()
    live.say("01.2: hang")  # for three seconds, until CTest stops it
    with watching(live) as watcher:
        wait_until((live.root / "hanging").exists, "a test to run")
        work = live.yours / "work.hpp"
        work.write_text(work.read_text().replace("// 01.2: hang\n", ""))
        watcher.wait_for_rounds(2)
        assert "Still running after" in flat(watcher.text)
        assert "Chapter 01 is green" in watcher.text.partition(WAITING)[2]


def test_backup_files_of_editors_start_nothing(live: LiveCourse) -> None:
    with watching(live) as watcher:
        watcher.wait_for_rounds(1)
        for name in ("work.hpp~", ".work.hpp.swp", "#work.hpp#", "work.hpp.orig"):
            (live.yours / name).write_text("x")
        live.solve("01.1")
        watcher.wait_for_rounds(2)
    assert watcher.text.count("Saved: ") == 1
    assert "Saved: work.hpp" in watcher.text


@pytest.mark.parametrize("when", ["waiting", "testing"])
def test_ctrl_c_ends_it(live: LiveCourse, when: str) -> None:
    live.solve()
    case = str(live.root / "tests" / "case.py")
    if when == "testing":
        live.say("01.2: hang")
    with watching(live) as watcher:
        if when == "testing":
            wait_until((live.root / "hanging").exists, "a test to run")
        else:
            watcher.wait_for_rounds(1)
        watcher.tool.send_signal(signal.SIGINT)
        assert watcher.tool.wait(timeout=60) == 130
        assert watcher.tool.stderr is not None
        assert watcher.tool.stderr.read().count("interrupted") == 1
    assert not alive_with(case)


def test_bad_input(live: LiveCourse) -> None:
    live.refused("watch", "99", said="There is no chapter 99")
