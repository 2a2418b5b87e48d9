# SPDX-License-Identifier: MIT
"""./course run: a program on the reader's terminal, its signals, its exit code, its calls."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import alive_with
from live_course import LiveCourse, flat, wait_until
from terminal import CTRL_C, CTRL_Z, Terminal


def echo_once(announced: str) -> None:
    port = int(announced.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), timeout=5) as client:
        for _ in range(10):
            client.sendall(b"x")
            assert client.recv(1) == b"x"


def server_of(live: LiveCourse) -> str:
    return str(live.root / "build" / "student" / "bin" / "01-server")


def announced_by(tool: subprocess.Popen[str]) -> str:
    assert tool.stdout is not None
    line = tool.stdout.readline()
    assert line.startswith("listening on 127.0.0.1:"), line
    return line


def test_the_program_has_our_output_and_gets_our_signal_once(live: LiveCourse) -> None:
    tool = live.start("run", "01")
    echo_once(announced_by(tool))
    tool.send_signal(signal.SIGINT)
    out, _ = tool.communicate(timeout=60)
    assert out == "stopped in good order\n"
    assert tool.returncode == 0
    assert not alive_with(server_of(live))


@pytest.mark.parametrize(("args", "code"), [(["--exit", "0"], 0), (["--exit", "7"], 7)])
def test_the_exit_code_is_the_programs(live: LiveCourse, args: list[str], code: int) -> None:
    assert live.run("run", "01", "--", *args).code == code


def test_a_program_that_is_killed_by_a_signal_is_said(live: LiveCourse) -> None:
    done = live.run("run", "01", "--", "--abort")
    assert done.code == 128 + signal.SIGABRT
    assert "course: 01-server was killed by SIGABRT." in done.err


def test_it_reads_what_we_are_given(live: LiveCourse) -> None:
    done = live.run("run", "01:server", "--", "--ask", typed="good morning\n")
    assert "you said good morning" in done.out


def test_the_solution_is_another_build(live: LiveCourse) -> None:
    live.say("SYNTAX ERROR")
    assert live.run("run", "01", "--solution", "--", "--exit", "3").code == 3
    assert (live.root / "build" / "reference" / "bin" / "01-server").is_file()


def test_a_program_that_does_not_stop_is_killed(live: LiveCourse) -> None:
    tool = live.start("run", "01", "--", "--deaf")
    announced_by(tool)
    tool.send_signal(signal.SIGINT)
    tool.communicate(timeout=60)
    assert tool.returncode == 128 + signal.SIGKILL
    assert not alive_with(server_of(live))


def test_if_the_tool_is_killed_the_program_dies_too(live: LiveCourse) -> None:
    tool = live.start("run", "01")
    announced_by(tool)
    tool.kill()
    tool.communicate(timeout=60)
    wait_until(lambda: not alive_with(server_of(live)), "the server to be gone")


def test_ctrl_c_on_a_terminal_reaches_the_program_once(live: LiveCourse) -> None:
    with Terminal(live, "run", "01") as terminal:
        terminal.wait_for("listening on 127.0.0.1:")
        terminal.type(CTRL_C)
        code = terminal.wait()
    assert code == 0, terminal.text
    assert "stopped in good order" in terminal.text
    assert not alive_with(server_of(live))


def test_ctrl_z_stops_both_and_they_go_on_together(live: LiveCourse) -> None:
    command = shlex.join(live.command("run", "01", "--", "--ask"))
    with Terminal(live, program=["bash", "--norc", "--noprofile", "-i"]) as shell:
        shell.type(f"{command}\n")
        wait_until(lambda: alive_with(server_of(live)), "the program to run")
        shell.type(CTRL_Z)
        shell.wait_for("Stopped")
        shell.type("fg\n")
        shell.wait_for("fg\n")
        shell.type("still here\n")
        shell.wait_for("you said still here")
        shell.type("echo it was $?; exit\n")
        shell.wait_for("it was 0")
        assert shell.wait() == 0


def test_counting_shows_the_calls_when_the_program_has_ended(live: LiveCourse) -> None:
    tool = live.start("run", "01", "--count-syscalls")
    echo_once(announced_by(tool))
    tool.send_signal(signal.SIGINT)
    out, err = tool.communicate(timeout=60)
    assert tool.returncode == 0, err
    assert "System calls of 01-server, from its start to its end" in out
    words = flat(out).split()
    assert words[words.index("sendto") + 1] == "10"
    assert words[words.index("recvfrom") + 1] in ("10", "11")  # one more if it saw the end
    assert "stopped in good order" in out
    assert not alive_with(server_of(live))


def test_counting_keeps_the_exit_code(live: LiveCourse) -> None:
    done = live.run("run", "01", "--count-syscalls", "--", "--exit", "7")
    assert done.code == 7
    assert "total" in done.out


def test_counting_after_ctrl_c_on_a_terminal(live: LiveCourse) -> None:
    with Terminal(live, "run", "01", "--count-syscalls") as terminal:
        terminal.wait_for("listening on 127.0.0.1:")
        terminal.type(CTRL_C)
        code = terminal.wait()
    assert code == 0, terminal.text
    assert "stopped in good order" in terminal.text and "total" in terminal.text


def test_where_strace_may_not_trace_it_says_why(
    live: LiveCourse, scripts: Callable[[str, str], Path]
) -> None:
    folder = scripts(
        "strace",
        "#!/bin/sh\n"
        "echo 'strace: attach: ptrace(PTRACE_SEIZE, 17): Operation not permitted' >&2\nexit 1\n",
    )
    done = live.refused(
        "run",
        "01",
        "--count-syscalls",
        env={"PATH": f"{folder}:{os.environ['PATH']}"},
        said="strace may not trace here (strace: attach: ptrace(PTRACE_SEIZE",
    )
    assert "--cap-add=SYS_PTRACE" in done.err
    assert not (live.root / "build").exists()


def test_without_strace_it_says_what_to_install(live: LiveCourse, tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("cmake", "ninja", "c++"):
        found = shutil.which(name)
        assert found
        (folder / name).symlink_to(found)
    live.refused(
        "run",
        "01",
        "--count-syscalls",
        env={"PATH": str(folder)},
        said=("there is none here", "apt install strace"),
    )


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (["01:nothing"], 1, "Chapter 01 has no program 'nothing'. It has: server."),
        (["99"], 1, "There is no chapter 99. Try 01 to 02."),
        (["01", "--port", "9000"], 2, "No such option: --port"),
        ([], 2, "Missing argument"),
    ],
)
def test_bad_input(live: LiveCourse, args: list[str], code: int, said: str) -> None:
    live.refused("run", *args, said=said, code=code)


def test_a_program_that_does_not_compile_is_not_run(live: LiveCourse) -> None:
    (live.root / "cmake" / "server").unlink()
    live.refused("run", "01", said=("course: ", "server"))
