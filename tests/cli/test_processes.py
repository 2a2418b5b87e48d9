# SPDX-License-Identifier: MIT
"""Children: what they give back, and that none of them stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ROOT, alive_with
from course_tool import processes
from course_tool.errors import CourseError
from course_tool.processes import Server, run
from live_course import eventually

PYTHON = sys.executable
PATIENT_S = 50  # for what ends in a second, unless the machine is busy


@pytest.fixture
def seconds() -> Iterator[str]:
    """A duration that no other process sleeps for: it names our grandchild, which has to end."""
    unique = sleeper()
    yield unique
    assert eventually(lambda: not alive_with(unique))


def sleeper() -> str:
    return f"{600 + time.monotonic_ns() % 10**9 / 10**9:.9f}"


def has_begun_to_sleep(seconds: str) -> bool:
    return eventually(lambda: any(each.startswith("sleep") for each in alive_with(seconds)))


# own_age_s()


def test_a_process_counts_what_it_was_before_an_exec() -> None:
    """`./course start` says how long all of it took, with the packages before the tool."""
    later = (
        f"import sys, time; sys.path.insert(0, {str(ROOT / 'common' / 'tool')!r})\n"
        "from course_tool.processes import own_age_s\n"
        "print(own_age_s() - (time.monotonic() - float(sys.argv[1])))"
    )
    first = "import os, sys, time; os.execv(sys.executable, [sys.executable, '-c', sys.argv[1], "
    first += "str(time.monotonic())])"
    older_by_s = float(run([PYTHON, "-c", first, later], timeout_s=PATIENT_S, check=True).stdout)
    assert older_by_s > -0.02, "the age began with the second program"  # a tick is 0.01


# beside()


@pytest.mark.parametrize("own_group", [False, True])
def test_what_runs_beside_ends_with_the_block(own_group: bool, seconds: str) -> None:
    sleep = f"{'setsid ' if own_group else ''}sleep {seconds}"
    with pytest.raises(KeyboardInterrupt), processes.beside(["sh", "-c", f"{sleep} & wait"]):
        assert eventually(lambda: len(alive_with(f"sleep {seconds}")) > 0)
        raise KeyboardInterrupt


def test_a_grandchild_that_takes_a_group_of_its_own_meanwhile_ends_too() -> None:
    for attempt in range(60):  # at another moment of its start each time
        seconds = sleeper()
        with processes.beside(["sh", "-c", f"setsid sleep {seconds} & wait"]):
            time.sleep(attempt / 10_000)
        assert eventually(lambda seconds=seconds: not alive_with(seconds))


def test_what_runs_beside_may_end_first_and_has_its_environment(tmp_path: Path) -> None:
    note = tmp_path / "note"
    with processes.beside(["sh", "-c", f'echo "$WORD" > "{note}"; exit 3'], {"WORD": "hello"}):
        assert eventually(lambda: note.is_file() and note.read_text() == "hello\n")


# run()


def test_run_gives_back_what_a_command_did() -> None:
    script = 'read line; echo "out $line $EXTRA"; echo err >&2; exit 3'
    done = run(["sh", "-c", script], timeout_s=10, env={"EXTRA": "x"}, input_text="in\n")
    assert (done.returncode, done.stdout, done.stderr) == (3, "out in x\n", "err\n")
    assert done.args[0] == "sh"
    assert 0 < done.seconds < 10


def test_run_survives_output_that_is_no_text_and_larger_than_any_pipe() -> None:
    done = run([PYTHON, "-c", "import os; os.write(1, b'\\xff' * 300_000)"], timeout_s=20)
    assert len(done.stdout) == 300_000


def test_a_checked_run_says_how_it_ended_and_what_it_printed() -> None:
    with pytest.raises(CourseError, match="exited with 3.*end of its output:\n  too bad"):
        run(["sh", "-c", "echo too bad >&2; exit 3"], timeout_s=10, check=True)
    with pytest.raises(CourseError, match="was killed by SIGSEGV. It printed nothing"):
        run(["sh", "-c", "kill -SEGV $$"], timeout_s=10, check=True)


def test_a_program_that_is_not_there_is_a_sentence() -> None:
    with pytest.raises(CourseError, match="Cannot run no-such-program: there is no such program"):
        run(["no-such-program"], timeout_s=10)
    with pytest.raises(CourseError, match="there is no folder /no/such"):
        run(["true"], timeout_s=10, cwd=Path("/no/such"))


def test_run_shows_the_output_while_it_grows(tmp_path: Path) -> None:
    seen: list[str] = []

    def see(line: str) -> None:
        seen.append(line)
        (tmp_path / line).touch()

    script = "echo one; until [ -e one ]; do sleep 0.01; done; echo two; printf rest"
    run(["sh", "-c", script], timeout_s=60, cwd=tmp_path, on_line=see)
    assert seen == ["one", "two"], "it goes on once its first line has been seen"


def test_a_command_out_of_time_is_killed_with_its_grandchildren(seconds: str) -> None:
    started = time.monotonic()
    with pytest.raises(CourseError, match=r"was stopped after 0.5 s.*\n  begun"):
        run(["sh", "-c", f"echo begun; sleep {seconds} & wait"], timeout_s=0.5)
    assert time.monotonic() - started < PATIENT_S


def test_a_grandchild_in_the_background_neither_delays_nor_outlives_its_command(
    seconds: str,
) -> None:
    done = run(["sh", "-c", f"sleep {seconds} & echo done"], timeout_s=20)
    assert done.stdout == "done\n"
    assert done.seconds < 10, "waited for the grandchild, which holds stdout open"


def test_a_command_that_must_not_be_cut_short_is_asked_first(tmp_path: Path) -> None:
    note = tmp_path / "note"
    script = f"trap 'echo asked > {note}; exit 0' INT; while :; do sleep 0.05; done"
    with pytest.raises(CourseError, match="was stopped"):
        run(["sh", "-c", script], timeout_s=0.5, asks_first_s=10)
    assert note.read_text() == "asked\n"


def test_runs_in_two_threads_do_not_disturb_each_other() -> None:
    results: list[str] = []

    def work(word: str) -> None:
        for _ in range(10):
            results.append(run(["echo", word], timeout_s=20).stdout)

    threads = [threading.Thread(target=work, args=(word,)) for word in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == ["a\n"] * 10 + ["b\n"] * 10
    assert not processes._running


# Ctrl-C and other ends of the tool

TOOL = """
import sys
from course_tool import __main__ as entry, cli, processes
def app(prog_name):
    {what}
cli.app = app
sys.exit(entry.main())
"""


def start_tool(what: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [PYTHON, "-c", TOOL.format(what=what)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "common" / "tool")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def interrupt(tool: subprocess.Popen[str]) -> tuple[str, str]:
    tool.send_signal(signal.SIGINT)
    return tool.communicate(timeout=PATIENT_S)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_stopped_tool_kills_grandchildren_and_says_one_line(
    number: signal.Signals, code: int, seconds: str
) -> None:
    command = f"['sh', '-c', 'sleep {seconds} & wait']"
    tool = start_tool(f"processes.run({command}, timeout_s=60)")
    assert eventually(lambda: len(alive_with(f"sleep {seconds}")) >= 3)
    tool.send_signal(number)
    said = tool.communicate(timeout=PATIENT_S)[1]
    assert (tool.returncode, said) == (code, "course: interrupted\n")


def test_an_interrupt_ends_the_children_of_every_thread(seconds: str) -> None:
    what = (
        "import threading, time; threading.Thread(target=processes.run, args=(['sleep', "
        f"'{seconds}'],), kwargs=dict(timeout_s=60)).start(); time.sleep(60)"
    )
    tool = start_tool(what)
    assert has_begun_to_sleep(seconds)
    assert interrupt(tool) == ("", "course: interrupted\n")
    assert tool.returncode == 130


def test_an_interrupt_sees_a_child_that_another_thread_has_just_started(seconds: str) -> None:
    what = (
        "import os, threading, time; known = os.pidfd_open; "
        "os.pidfd_open = lambda pid: (time.sleep(1), known(pid))[1]; "
        "threading.Thread(target=processes.run, args=(['sleep', "
        f"'{seconds}'],), kwargs=dict(timeout_s=60)).start(); time.sleep(60)"
    )
    tool = start_tool(what)
    assert has_begun_to_sleep(seconds)
    assert interrupt(tool) == ("", "course: interrupted\n")
    assert not alive_with(seconds)


def test_after_an_interrupt_no_thread_starts_another_child(seconds: str) -> None:
    tool = start_tool(
        "import threading, time\n"
        "    def forever():\n"
        "        try:\n"
        "            while True:\n"
        f"                processes.run(['sleep', '{seconds}'], timeout_s=60)\n"
        "        except Exception as error:\n"
        "            print(error, flush=True)\n"
        "    threading.Thread(target=forever).start()\n"
        "    time.sleep(60)"
    )
    assert has_begun_to_sleep(seconds)
    out, err = interrupt(tool)
    assert out == "Cannot run sleep: the tool is ending.\n"
    assert err == "course: interrupted\n"


def test_the_kernel_kills_a_child_whose_tool_was_killed(seconds: str) -> None:
    tool = start_tool(f"processes.run(['sleep', '{seconds}'], timeout_s=60)")
    assert has_begun_to_sleep(seconds)
    tool.kill()
    tool.communicate(timeout=PATIENT_S)


def test_an_error_of_the_reader_is_one_line_and_exit_1() -> None:
    tool = start_tool(
        "from course_tool.errors import CourseError; raise CourseError('No [such] x.')"
    )
    out, err = tool.communicate(timeout=PATIENT_S)
    assert (tool.returncode, out, err) == (1, "", "course: No [such] x.\n")


# Server

SERVER = """
import signal, sys, time
{first}
print("listening on 127.0.0.1:4711", flush=True)
print("log line", file=sys.stderr, flush=True)
time.sleep(60)
"""


def server(first: str = "") -> list[str]:
    return [PYTHON, "-c", SERVER.format(first=first)]


def test_a_server_is_there_from_its_announcement_to_the_end_of_the_block() -> None:
    with Server(server()) as started:
        assert (started.host, started.port) == ("127.0.0.1", 4711)
        assert started.running()
        assert Path(f"/proc/{started.pid}").exists()
        assert eventually(lambda: started.stderr_text() == "log line\n")
    assert not Path(f"/proc/{started.pid}").exists()
    assert started.returncode == -signal.SIGTERM


def test_a_server_may_stop_by_itself_in_its_own_way() -> None:
    handler = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))"
    with Server(server(handler)) as started:
        assert started.stop() == 5
        assert not started.running()


def test_a_server_that_ignores_sigterm_is_killed() -> None:
    with Server(server("signal.signal(signal.SIGTERM, signal.SIG_IGN)")) as started:
        begun = time.monotonic()
        assert started.stop(grace_s=0.3) == -signal.SIGKILL
        assert 0.25 < time.monotonic() - begun < PATIENT_S


def test_a_server_runs_on_the_cpu_it_was_given() -> None:
    cpu = max(os.sched_getaffinity(0))
    with Server(server(), cpu=cpu) as started:
        assert os.sched_getaffinity(started.pid) == {cpu}


def test_a_server_takes_its_grandchildren_along(seconds: str) -> None:
    first = f"import subprocess; subprocess.Popen(['sleep', '{seconds}'])"
    with Server(server(first)):
        assert eventually(lambda: any(each.startswith("sleep") for each in alive_with(seconds)))


BAD_SERVERS = [
    (
        "print('no', file=sys.stderr); sys.exit(1)",
        "exited with 1 before it listened.*stderr:\n  no",
    ),
    ("import os; os.abort()", "was killed by SIGABRT before it listened"),
    ("print('hello', flush=True)", "began with 'hello' instead of 'listening on HOST:PORT'"),
    ("time.sleep(60)", "did not print 'listening on HOST:PORT' within 0.4 s"),
]


@pytest.mark.parametrize(("first", "said"), BAD_SERVERS)
def test_a_server_that_does_not_start_says_why_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, first: str, said: str
) -> None:
    monkeypatch.setattr(processes, "ANNOUNCE_DEADLINE_S", 0.4 if "sleep" in first else 20)
    with pytest.raises(CourseError, match=f"(?s){said}"), Server(server(first)):
        pass
    assert not processes._running


def test_a_server_is_gone_when_its_block_raises() -> None:
    with pytest.raises(ZeroDivisionError), Server(server()) as started:
        _ = 1 / 0
    assert not Path(f"/proc/{started.pid}").exists()


def test_an_interrupt_in_a_destructor_is_not_lost() -> None:
    tool = start_tool(
        "import signal, time; "
        "exec('def __del__(_): __import__(\"signal\").raise_signal(2)', globals()); "
        "type('Dying', (), {'__del__': __del__})(); "
        "time.sleep(90)"
    )
    assert tool.communicate(timeout=PATIENT_S)[1] == "course: interrupted\n"
    assert tool.returncode == 130


def test_an_interrupt_at_any_moment_of_a_start_loses_no_child(seconds: str) -> None:
    for delay_ms in range(0, 12, 3):
        what = (
            "import signal, time; "
            "signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT)); "
            f"signal.setitimer(signal.ITIMER_REAL, 0.02 + {delay_ms} / 1000); "
            f"[processes.run(['sh', '-c', 'sleep {seconds} & '], timeout_s=9) for _ in range(99)]"
        )
        tool = start_tool(what)
        assert tool.communicate(timeout=PATIENT_S)[1] == "course: interrupted\n"
        assert tool.returncode == 130
