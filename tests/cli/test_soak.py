# SPDX-License-Identifier: MIT
"""./course soak: chapter 14's server holds a minute of it, and one that leaks is found out."""

from __future__ import annotations

import socket
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest
from conftest import ROOT
from test_bench_run import script

from course_tool import builds, console, processes, soaking
from course_tool.errors import CourseError
from course_tool.soaking import AtRest

# By the tests that read the course; see verify/suites.py.
READS = ("14-server", "solutions/14-http-server/chapter.toml", "solutions/01-blocking-echo/chapter")
SECONDS = 60
BUILD_AND_SOAK_S = 900

LEAKS = """\
import socket, sys, threading
listener = socket.create_server(("127.0.0.1", 0), backlog=1000)
print("listening on 127.0.0.1:%d" % listener.getsockname()[1], flush=True)
kept = []
def serve(client):
    text = b""
    while data := client.recv(4096):
        text += data
        while b"\\r\\n\\r\\n" in text:
            text = text.partition(b"\\r\\n\\r\\n")[2]
            client.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 1024\\r\\n\\r\\n" + b"x" * 1024)
    client.shutdown(socket.SHUT_WR)
def guarded(client):
    try: serve(client)
    except OSError: pass
while True:
    kept.append(listener.accept()[0])
    threading.Thread(target=guarded, args=[kept[-1]], daemon=True).start()
"""


def told(rests: list[AtRest], capsys: pytest.CaptureFixture[str], code: int = 0) -> str:
    """What is said of them; the exit code has to agree."""
    bad = soaking.report(rests, Counter({"came, and left": 12345}), code)
    text = " ".join(capsys.readouterr().out.split())
    assert "12,345" in text
    assert bad == (0 if "Both are flat" in text else 1)
    return text


def at_rest(*own_kib: int) -> list[AtRest]:
    return [AtRest(7, kib * 1024) for kib in own_kib]


def test_what_is_flat_is_said_to_be(capsys: pytest.CaptureFixture[str]) -> None:
    text = told(at_rest(9000, 9100, 9050, 9300), capsys)
    assert "Both are flat, and nobody who kept to the rules saw an error." in text
    assert "7, 7, 7, 7 descriptors; 9,000, 9,100, 9,050, 9,300 KiB of memory" in text
    fewer = [AtRest(descriptors, 9_000_000) for descriptors in (7, 9, 8, 5)]
    assert "Both are flat" in told(fewer, capsys)


def test_memory_that_grows_once_is_no_leak(capsys: pytest.CaptureFixture[str]) -> None:
    for last in ((20000, 20100, 20200), (9000, 9000, 20000), (16000, 32000, 32000)):
        assert "Both are flat" in told(at_rest(9000, *last), capsys)


def test_each_kind_of_leak_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    left = [AtRest(descriptors, 9) for descriptors in (7, 7, 7, 8)]
    assert "Descriptors were left open" in told(left, capsys)
    assert "Memory grows" in told(at_rest(9000, 9300, 9600, 9900), capsys)
    assert "Memory grows" in told(at_rest(9000, 9000, 9257, 9514), capsys)
    assert "was killed by SIGKILL" in told(at_rest(9, 9, 9, 9), capsys, code=-9)


def turned_away(after_s: float) -> Counter[str]:
    """What is counted of a client that is turned away so long after it came."""

    def act(client: socket.socket) -> bool:
        time.sleep(after_s)
        raise ConnectionResetError("reset by peer")

    done: Counter[str] = Counter()
    with socket.socket() as client:
        assert soaking._does(act, client, done) is False
    return done


def test_a_client_in_time_must_not_be_turned_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soaking, "LATE_S", 30.0)
    with pytest.raises(ConnectionResetError):
        turned_away(after_s=0)
    monkeypatch.setattr(soaking, "LATE_S", 0.01)
    assert turned_away(after_s=0.02) == {"was late itself, and turned away": 1}


@pytest.mark.reads_course
def test_an_echo_server_is_not_soaked() -> None:
    with pytest.raises(CourseError, match="echoes what clients send"):
        soaking.soak("01", 4, "release")


@pytest.mark.reads_course
@pytest.mark.slow
@pytest.mark.timeout(BUILD_AND_SOAK_S)
def test_a_server_that_keeps_its_sockets_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    builds.build("release", ["loadgen"])
    monkeypatch.setattr(soaking, "REST_S", 2.0)
    server = processes.Server([script(tmp_path, "leaks", LEAKS)])
    with server, console.progress("Soaking") as steps:
        rests, done = soaking.soak_server(server, 4, steps)
    assert done["reset within a head"] > 0
    assert "Descriptors were left open" in told(rests, capsys)


@pytest.mark.reads_course
@pytest.mark.slow
@pytest.mark.timeout(BUILD_AND_SOAK_S)
def test_the_last_server_holds_a_minute_of_it() -> None:
    # verify proves the mistakes beside it: they need the processors, and it only has to last.
    done = subprocess.run(
        [
            "nice", "-n", "10",
            ROOT / "course", "soak", "14", "--solution", "--seconds", str(SECONDS),
        ],
        capture_output=True, text=True, timeout=BUILD_AND_SOAK_S, check=False,
    )  # fmt: skip
    verdict = done.stdout.rpartition("At rest")[2]
    assert done.returncode == 0, f"{verdict or done.stderr}\n{done.stdout}"
    assert "Both are flat" in verdict
