# SPDX-License-Identifier: MIT
"""Runs a program that records itself: a server with clients that talk to it, or one that ends."""

from __future__ import annotations

import os
import re
import signal
import socket
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from course_tool import processes
from course_tool.errors import CourseError
from course_tool.trace.events import Recording, read

DEADLINE_S = 10.0
ANSWER_S = 5.0
STUCK_S = 0.2
QUIET_S, SETTLED_S = 0.02, 1.0  # it has done nothing for a while; or is busy all the time
MESSAGE = b"ping\n"
STATUS = r"(?m)^(?:State|\w+_switches):\s+(\w+)"
SEGMENT, CHUNK, SLOW_BYTES = 536, 2048, 200_000


@dataclass(frozen=True)
class Run:
    recording: Recording
    trouble: str  # how it ended, if not as it should have; else ""


@dataclass(frozen=True)
class Clients:
    """Who talks to a server, and how."""

    count: int = 2
    stay: bool = False  # they hang up after the server does
    at_once: bool = False  # the server is stopped while all send, and finds it all at one time
    slow: bool = False  # one that writes much, and reads only when it can write no more
    says: str = ""  # by each, whom the server answers and hangs up; in the place of an echo


def run(
    program: Path, args: Sequence[str], file: Path, clients: Clients | None,
    before: Sequence[str | Path] = (),
) -> Run:  # fmt: skip
    """Runs it, a server with clients, and with `file` for its recording; `before` are words such
    as strace's."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    words = [*before, program, *args]
    env = {"COURSE_TRACE": str(file)}
    try:
        if clients:
            trouble = _serve(words, env, program.name, clients)
        else:
            ended = processes.run(words, timeout_s=DEADLINE_S, env=env)
            trouble = _ending(program.name, ended.returncode, ended.stderr)
    except CourseError as error:
        trouble = str(error)
    if not file.is_file():
        raise CourseError(f"{program.name} has recorded nothing. {trouble}")
    return Run(read(file), trouble)


def _ending(name: str, returncode: int, stderr: str) -> str:
    if returncode == 0:
        return ""
    said = stderr.strip().splitlines()
    return "\n  ".join([f"{name} {processes.how_it_ended(returncode)}.", *said[-3:]])


def _serve(
    words: Sequence[str | Path], env: dict[str, str], name: str, clients: Clients
) -> str:
    with processes.Server(words, env=env) as server, ExitStack() as sockets:
        try:
            talk = _read_late if clients.slow else _say if clients.says else _talk
            trouble = talk(server, sockets, clients)
            if not trouble:
                _settle(server)
        except OSError as error:
            trouble = f"a client could not talk to it: {error}."
        returncode = server.stop()
        return trouble or _ending(name, returncode, server.stderr_text())


def _talk(server: processes.Server, stack: ExitStack, clients: Clients) -> str:
    """Each step waits for the one before, so that every run is the same."""
    sockets = []
    for number in range(1, clients.count + 1):
        sockets.append(_connect(server, stack))
        sockets[-1].sendall(MESSAGE)
        if trouble := _hear(sockets[-1], number):
            return trouble
        _settle(server)
    if clients.at_once:
        os.kill(server.pid, signal.SIGSTOP)
        for client in sockets:
            client.sendall(MESSAGE)
        os.kill(server.pid, signal.SIGCONT)
        for number, client in enumerate(sockets, start=1):
            if trouble := _hear(client, number):
                return trouble
    for client in () if clients.stay else sockets:
        client.shutdown(socket.SHUT_WR)
        client.recv(1)  # the server hangs up
    return ""


def _connect(server: processes.Server, stack: ExitStack) -> socket.socket:
    address = (server.host, server.port)
    client = stack.enter_context(socket.create_connection(address, timeout=ANSWER_S))
    _settle(server)
    return client


def _settle(server: processes.Server) -> None:
    """Until every thread of the server sleeps, and none has done anything for a while."""
    before: list[list[str]] = []
    deadline = time.monotonic() + SETTLED_S
    while time.monotonic() < deadline and server.running():
        files = sorted(Path(f"/proc/{server.pid}/task").glob("*/status"))
        now = [re.findall(STATUS, each.read_text()) for each in files]
        if now == before and all(state == "S" for state, *_ in now):
            return
        before = now
        time.sleep(QUIET_S)


def _say(server: processes.Server, stack: ExitStack, clients: Clients) -> str:
    for number in range(1, clients.count + 1):
        client = _connect(server, stack)
        client.sendall(clients.says.encode())
        heard = b""
        while more := client.recv(SLOW_BYTES):
            heard += more
        if not heard:
            return f"client {number} was not answered."
    return ""


def _hear(client: socket.socket, number: int) -> str:
    """What is wrong with the echo, or nothing."""
    heard = b""
    while len(heard) < len(MESSAGE):
        try:
            more = client.recv(len(MESSAGE) - len(heard))
        except TimeoutError:
            more = b""
        if not more:
            return (
                f"client {number} sent {len(MESSAGE)} bytes, and got {len(heard)} back within "
                f"{ANSWER_S:g} s."
            )
        heard += more
    return "" if heard == MESSAGE else f"client {number} sent {MESSAGE!r} and got {heard!r}."


def _read_late(server: processes.Server, stack: ExitStack, _: Clients) -> str:
    """Small segments and a small buffer, so that the server's sends are soon short."""
    client = stack.enter_context(socket.socket())
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, SEGMENT)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SEGMENT)
    client.connect((server.host, server.port))
    client.settimeout(STUCK_S)
    sent = heard = 0
    while sent < SLOW_BYTES:
        try:
            sent += client.send(b"x" * CHUNK)
        except TimeoutError:  # the server waits for us
            heard += _read_all(client)
    heard += _read_all(client)
    return f"a slow client sent {sent} bytes and got {heard} back." if heard < sent else ""


def _read_all(client: socket.socket) -> int:
    heard = 0
    try:
        while more := len(client.recv(SLOW_BYTES)):
            heard += more
    except TimeoutError:
        pass
    return heard
