# SPDX-License-Identifier: MIT
"""The command line as a whole: help, usage errors, and the commands whose work others test."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, edit
from course_tool import __main__ as entry
from course_tool import console
from course_tool.cli import app
from live_course import LiveCourse

COMMANDS = [
    "start", "serve", "status", "test", "watch", "run", "trace", "hint", "diff", "reset", "bench",
    "fuzz", "soak", "doctor", "grade", "sync", "verify",
]  # fmt: skip


def test_help_names_every_command_with_its_whole_first_line(live: LiveCourse) -> None:
    done = live.run("--help")
    assert done.code == 0
    shown = {line.split()[0]: line for line in done.out.splitlines() if line.startswith("  ")}
    assert [name for name in shown if name in COMMANDS] == COMMANDS
    assert not any(line.endswith("...") for line in shown.values())
    assert "grade-copy" not in done.out


def test_the_list_above_is_whole() -> None:
    names = [command.name or command.callback.__name__ for command in app.registered_commands]
    assert sorted(names) == sorted([*COMMANDS, "grade-copy"])


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(live: LiveCourse, command: str) -> None:
    for flag in ("--help", "-h"):
        done = live.run(command, flag)
        assert done.code == 0
        assert f"\n      ./course {command}" in done.out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_takes_yes_for_what_its_first_start_may_install(
    live: LiveCourse, command: str
) -> None:
    assert live.run(command, "--yes", "--help").code == 0


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["nonsense"], "No such command 'nonsense'"),
        (["status", "--nonsense"], "No such option: --nonsense"),
        (["status", "01"], "Got unexpected extra argument"),
        ([], "Usage: ./course"),
    ],
)
def test_usage_errors_exit_with_2(live: LiveCourse, args: list[str], said: str) -> None:
    done = live.run(*args)
    assert done.code == 2
    assert said in done.err + done.out


def test_a_pipe_that_closes_early_is_no_disaster(live: LiveCourse) -> None:
    tool = live.start("diff", "01", "--yes")
    assert tool.stdout is not None and tool.stderr is not None
    tool.stdout.close()
    assert "Traceback" not in tool.stderr.read()
    tool.wait(timeout=20)


def test_a_pipe_that_closes_before_the_last_flush_is_none_either(live: LiveCourse) -> None:
    tool = live.start("verify", "--list")
    assert tool.stdout is not None and tool.stderr is not None
    tool.stdout.close()
    assert tool.stderr.read() == ""
    tool.wait(timeout=20)


@pytest.mark.parametrize("command", [["status"], ["diff", "01", "--yes"]])
def test_output_that_nobody_has_room_for_is_said_in_a_line(
    live: LiveCourse, command: list[str]
) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            live.command(*command),
            cwd=live.root,
            env=live.environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=30,
        )
    assert done.returncode == 1
    assert done.stderr == "course: No space left on device. Make room, and run it again.\n"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_clone_that_cannot_be_written_is_said_in_a_line(
    capsys: pytest.CaptureFixture[str], number: int
) -> None:
    def fail(**_: object) -> None:
        raise OSError(number, os.strerror(number), "build")

    assert entry._run(fail, console.err) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"course: build: {os.strerror(number)}. ") and said.count("\n") == 1


def test_no_command_loads_what_another_one_needs() -> None:
    script = (
        "import sys; import course_tool.cli; "
        "print([name for name in ('mkdocs', 'matplotlib', 'watchfiles', 'course_tool.bench', "
        "'course_tool.verify', 'course_tool.doctor') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT / "common" / "tool",
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert done.stdout.strip() == "[]"


# ---- sync ----


def test_sync_makes_starters_right_and_check_only_says_so(live: LiveCourse) -> None:
    solution = live.root / "solutions" / "01-first" / "work.hpp"
    (live.root / "common" / "runtime").mkdir(parents=True, exist_ok=True)
    live.run("sync")
    assert live.run("sync", "--check").code == 0
    edit(solution, "// Add.", "// Add two numbers.")
    checked = live.run("sync", "--check")
    assert checked.code == 1
    assert "chapters/01-first/work.hpp:4" in checked.out
    assert "// Add.\n" in (live.yours / "work.hpp").read_text()
    assert live.run("sync").code == 0
    assert "// Add two numbers.\n" in (live.yours / "work.hpp").read_text()
    again = live.run("sync")
    assert again.code == 0 and "is what solutions/ makes of it" in again.out


def test_sync_says_where_a_mark_is_wrong(live: LiveCourse) -> None:
    edit(live.root / "solutions" / "01-first" / "work.hpp", "// --8<-- [end:task-01-1]\n", "")
    live.refused("sync", said="task-01-1")


# ---- bench, verify: what they do is tested in test_bench_*.py and test_verify_*.py ----


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["99"], "There is no chapter 99. Try 01 to 02."),
        (["--ladder", "--matrix"], "name one"),
        (["01", "--ladder"], "leave out '01'"),
        (["01", "02"], "There is no chapter 01 02."),
        (["01", "--json", "a.json"], "--json is for --claims"),
        ([], "Name a chapter"),
        (["01", "--rounds", "0"], "--rounds 0: takes 1 to"),
    ],
)
def test_bad_input_of_bench(live: LiveCourse, args: list[str], said: str) -> None:
    live.link_dependencies()
    live.refused("bench", *args, said=said)
    assert not (live.root / "build").exists()


@pytest.fixture
def bench_that_passes(live: LiveCourse) -> LiveCourse:
    """Its checkpoint says what it was asked for, and measures nothing."""
    live.link_dependencies()
    commands = live.root / "common" / "tool" / "course_tool" / "bench" / "commands.py"
    commands.write_text(
        commands.read_text() + "\n\n"
        "def run_bench(options):\n"
        "    import json\n"
        "    given = {name: value for name, value in vars(options).items() if value}\n"
        "    print(json.dumps([given.pop('chapter'), given], default=str))\n"
        "    return options.rounds or 0\n"
    )
    return live


def test_a_checkpoint_that_holds_is_remembered(bench_that_passes: LiveCourse) -> None:
    live = bench_that_passes
    done = live.run("bench", "1", "--out", "here")
    assert (done.code, json.loads(done.out)) == (0, ["01", {"out": "here"}])
    assert live.state()["checkpoints"] == ["01"]


@pytest.mark.parametrize("args", [["--solution"], ["--quick"], ["--matrix"], ["--rounds", "1"]])
def test_other_benchmarks_and_counts_that_fail_are_not(
    bench_that_passes: LiveCourse, args: list[str]
) -> None:
    done = bench_that_passes.run("bench", "01", *args)
    assert done.code == (1 if "--rounds" in args else 0)
    assert not (bench_that_passes.root / ".course" / "state.json").exists()


def test_verify_lists_its_items(live: LiveCourse) -> None:
    done = live.run("verify", "--list")
    assert done.code == 0
    assert {"sync", "mistakes", "style"} <= {line.split()[0] for line in done.out.splitlines()}


def test_doctor_exits_with_what_it_found(live: LiveCourse, tmp_path: Path) -> None:
    module = live.root / "common" / "tool" / "course_tool" / "doctor" / "__init__.py"
    module.write_text("def run_doctor(*, as_json):\n    print(as_json)\n    return 1\n")
    for args, printed in (([], "False"), (["--json"], "True")):
        done = live.run("doctor", *args, cwd=tmp_path)
        assert (done.code, done.out.strip()) == (1, printed)
