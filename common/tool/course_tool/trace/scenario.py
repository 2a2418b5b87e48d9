# SPDX-License-Identifier: MIT
"""Runs a program that records itself: a server with clients that talk to it, or one that ends."""

from __future__ import annotations

import os
import re
import signal
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from course_tool import processes
from course_tool.errors import CourseError
from course_tool.trace.events import Event, read

DEADLINE_S = 10.0
ANSWER_S = 5.0
STUCK_S = 0.2
QUIET_S, SETTLED_S = 0.02, 1.0  # it has done nothing for a while; or is busy all the time
MESSAGE = b"ping\n"
STATUS = r"(?m)^(?:State|\w+_switches):\s+(\w+)"
SEGMENT, CHUNK, SLOW_BYTES = 536, 2048, 200_000


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
) -> tuple[Sequence[Event], str]:  # fmt: skip
    """Runs it, a server with clients, and with `file` for its recording; `before` are words such
    as strace's. Returns what was recorded and how it ended, if not as it should have; else ""."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    words = [*before, program, *args]
    env = {"COURSE_TRACE": str(file)}
    trouble = ""
    try:
        if clients:
            returncode, stderr = _serve(words, env, clients)
        else:
            ended = processes.run(words, timeout_s=DEADLINE_S, env=env)
            returncode, stderr = ended.returncode, ended.stderr
        if returncode != 0:
            ending = f"{program.name} {processes.how_it_ended(returncode)}."
            trouble = "\n  ".join([ending, *stderr.strip().splitlines()[-3:]])
    except CourseError as error:
        trouble = str(error)
    if not file.is_file():
        raise CourseError(f"{program.name} has recorded nothing. {trouble}")
    return read(file), trouble


def _serve(
    words: Sequence[str | Path], env: Mapping[str, str], clients: Clients
) -> tuple[int, str]:
    """Its return code and stderr. The server stops first, and the clients hang up after it."""
    with ExitStack() as sockets, processes.Server(words, env=env) as server:
        try:
            talk = _read_late if clients.slow else _say if clients.says else _talk
            talk(server, sockets, clients)
            _settle(server)
        except OSError as error:
            raise CourseError(f"a client could not talk to it: {error}.") from error
        return server.stop(), server.stderr_text()


def _talk(server: processes.Server, sockets: ExitStack, clients: Clients) -> None:
    """Each step waits for the one before, so that every run is the same."""
    connected = []
    for number in range(1, clients.count + 1):
        connected.append(_connect(server, sockets))
        connected[-1].sendall(MESSAGE)
        _hear(connected[-1], number)
        _settle(server)
    if clients.at_once:
        os.kill(server.pid, signal.SIGSTOP)
        for client in connected:
            client.sendall(MESSAGE)
        os.kill(server.pid, signal.SIGCONT)
        for number, client in enumerate(connected, start=1):
            _hear(client, number)
    for client in () if clients.stay else connected:
        client.shutdown(socket.SHUT_WR)
        client.recv(1)  # the server hangs up


def _say(server: processes.Server, sockets: ExitStack, clients: Clients) -> None:
    for number in range(1, clients.count + 1):
        client = _connect(server, sockets)
        client.sendall(clients.says.encode())
        if not client.makefile("rb").read():
            raise CourseError(f"client {number} was not answered.")


def _read_late(server: processes.Server, sockets: ExitStack, _: Clients) -> None:
    """Small segments and a small buffer, so that the server's sends are soon short."""
    client = sockets.enter_context(socket.socket())
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, SEGMENT)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SEGMENT)
    client.connect((server.host, server.port))
    client.settimeout(STUCK_S)
    sent = heard = 0
    while sent < SLOW_BYTES:
        try:
            sent += client.send(b"x" * CHUNK)
        except TimeoutError:  # the server waits for us
            heard += len(_read(client))
    heard += len(_read(client))
    if heard < sent:
        raise CourseError(f"a slow client sent {sent} bytes and got {heard} back.")


def _connect(server: processes.Server, sockets: ExitStack) -> socket.socket:
    address = (server.host, server.port)
    client = sockets.enter_context(socket.create_connection(address, timeout=ANSWER_S))
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


def _hear(client: socket.socket, number: int) -> None:
    heard = _read(client, len(MESSAGE))
    if len(heard) < len(MESSAGE):
        raise CourseError(
            f"client {number} sent {len(MESSAGE)} bytes, and got {len(heard)} back within "
            f"{ANSWER_S:g} s."
        )
    if heard != MESSAGE:
        raise CourseError(f"client {number} sent {MESSAGE!r} and got {heard!r}.")


def _read(client: socket.socket, count: int = 2 * SLOW_BYTES) -> bytes:
    """So many bytes; or fewer, if the server says no more within the client's time limit."""
    heard = b""
    try:
        while len(heard) < count and (more := client.recv(count - len(heard))):
            heard += more
    except TimeoutError:
        pass
    return heard
