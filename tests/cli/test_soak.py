# SPDX-License-Identifier: MIT
"""./course soak: chapter 14's server holds a minute of it, and one that leaks is found out."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import pytest
from conftest import ROOT
from test_bench_run import script

from course_tool import builds, console, processes, soaking
from course_tool.errors import CourseError
from course_tool.soaking import AtRest

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


def told(before: AtRest, after: AtRest, capsys: pytest.CaptureFixture[str], code: int = 0) -> str:
    """What is said of them; the exit code has to agree."""
    bad = soaking.report(before, after, Counter({"came, and left": 12345}), code)
    text = " ".join(capsys.readouterr().out.split())
    assert "12,345" in text
    assert bad == (0 if "Both are flat" in text else 1)
    return text


def test_what_is_flat_is_said_to_be(capsys: pytest.CaptureFixture[str]) -> None:
    text = told(AtRest(7, 9_000_000), AtRest(7, 9_500_000), capsys)
    assert "Both are flat, and nobody who kept to the rules saw an error." in text
    assert "Both are flat" in told(AtRest(7, 9_000_000), AtRest(5, 8_000_000), capsys)


def test_each_kind_of_leak_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert "Descriptors were left open" in told(AtRest(7, 9), AtRest(8, 9), capsys)
    assert "Memory grows" in told(AtRest(7, 0), AtRest(7, 1024 * 1024 + 1), capsys)
    assert "was killed by SIGKILL" in told(AtRest(7, 9), AtRest(7, 9), capsys, code=-9)


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
        before, after, done = soaking.soak_server(server, 4, steps)
    assert done["reset within a head"] > 0
    assert "Descriptors were left open" in told(before, after, capsys)


@pytest.mark.reads_course
@pytest.mark.slow
@pytest.mark.timeout(BUILD_AND_SOAK_S)
def test_the_last_server_holds_a_minute_of_it() -> None:
    # It takes all processor time that it gets: the other tests go first.
    done = subprocess.run(
        ["nice", ROOT / "course", "soak", "14", "--solution", "--seconds", str(SECONDS)],
        capture_output=True, text=True, timeout=BUILD_AND_SOAK_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Both are flat" in done.stdout
