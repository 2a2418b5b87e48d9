# SPDX-License-Identifier: MIT
"""Echo servers that do one thing wrong, for the load generator to notice."""

from __future__ import annotations

import selectors
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

RECEIVE_BYTES = 64 * 1024
MILLION = 1_000_000


@dataclass
class Client:
    """One connection, and what could not be sent to it yet."""

    socket: socket.socket
    unsent: bytearray = field(default_factory=bytearray)
    ended: bool = False  # close it as soon as all is sent
    received_bytes: int = 0


class Honest:
    """Echoes; the others change a part of that."""

    def answer(self, client: Client, data: bytes) -> bytes:
        return data

    def farewell(self, client: Client) -> bytes:
        """What to send between the client's FIN and ours."""
        return b""


Spoil = Callable[[bytes, int], bytes]


def drop(data: bytes, at: int) -> bytes:
    return data[:at] + data[at + 1 :]


def corrupt(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def swap(data: bytes, at: int) -> bytes:
    while at + 2 < len(data) and data[at] == data[at + 1]:
        at += 1  # equal neighbors may change places, and nobody can tell
    return data[:at] + data[at + 1 : at + 2] + data[at : at + 1] + data[at + 2 :]


def double(data: bytes, at: int) -> bytes:
    return data[: at + 1] + data[at:]


class OneIn(Honest):
    """Spoils one byte in so many, counted over all connections."""

    def __init__(self, spoil: Spoil, interval: int = MILLION) -> None:
        self.spoil = spoil
        self.interval = interval
        # In the midst of a message, whatever its size.
        self.until_next = interval // 2 - 2_689

    def answer(self, client: Client, data: bytes) -> bytes:
        at = self.until_next
        self.until_next -= len(data)
        if self.until_next > 0:
            return data
        self.until_next += self.interval
        return self.spoil(data, min(at, len(data) - 1))


class DropLast(Honest):
    """Keeps the last byte of one message to itself: nothing behind it gives that away."""

    def __init__(self, message_bytes: int, message: int) -> None:
        self.end = message_bytes * message

    def answer(self, client: Client, data: bytes) -> bytes:
        return data[:-1] if client.received_bytes == self.end else data


class Mix(Honest):
    """Once, gives two clients each other's echoes."""

    def __init__(self, after_bytes: int) -> None:
        self.until = after_bytes
        self.held: tuple[Client, bytes] | None = None

    def answer(self, client: Client, data: bytes) -> bytes:
        self.until -= len(data)
        if self.until > 0:
            return data
        if self.held is None:
            self.held = (client, data)
            return b""
        other, others_data = self.held
        if other is client or len(data) != len(others_data):
            return data
        self.until = 1 << 60
        other.unsent += data
        return others_data


class After(Honest):
    """Echoes so many bytes of a client, then does something to it for good."""

    def __init__(self, echoed_bytes: int) -> None:
        self.echoed_bytes = echoed_bytes

    def answer(self, client: Client, data: bytes) -> bytes:
        if client.received_bytes <= self.echoed_bytes:
            return data
        return self.turn(client, data)

    def turn(self, client: Client, data: bytes) -> bytes:
        raise NotImplementedError


class Silence(After):
    def turn(self, client: Client, data: bytes) -> bytes:
        return b""


class Half(After):
    def turn(self, client: Client, data: bytes) -> bytes:
        is_first = client.received_bytes - len(data) <= self.echoed_bytes
        return data[: len(data) // 2] if is_first else b""


class Close(After):
    def turn(self, client: Client, data: bytes) -> bytes:
        client.ended = True
        return b""


class Reset(After):
    def turn(self, client: Client, data: bytes) -> bytes:
        linger = struct.pack("ii", 1, 0)
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        client.ended = True
        return b""


class Unasked(Honest):
    """After the last echo, a few bytes more."""

    def farewell(self, client: Client) -> bytes:
        return b"and another thing"


class EchoServer:
    """Runs on a thread of its own, on a free port, until its `with` ends."""

    def __init__(self, fault: Honest, family: int = socket.AF_INET, backlog: int = 1024) -> None:
        self.fault = fault
        self.received_bytes = 0
        self.connections = 0
        self._listener = socket.create_server(
            ("::1" if family == socket.AF_INET6 else "127.0.0.1", 0), family=family, backlog=backlog
        )
        self._listener.setblocking(False)
        self.port: int = self._listener.getsockname()[1]
        self._wake, self._woken = socket.socketpair()
        self._thread = threading.Thread(target=self._run, name="echo server")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._wake.send(b"x")
        self._thread.join(timeout=10)
        assert not self._thread.is_alive(), "the echo server did not stop"
        for each in (self._listener, self._wake, self._woken):
            each.close()

    def _run(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    if key.fileobj is self._woken:
                        self._close_all(selector)
                        return
                    if key.fileobj is self._listener:
                        self._accept(selector)
                    else:
                        self._serve(selector, key.data)

    def _close_all(self, selector: selectors.BaseSelector) -> None:
        for key in list(selector.get_map().values()):
            if isinstance(key.data, Client):
                key.data.socket.close()

    def _accept(self, selector: selectors.BaseSelector) -> None:
        accepted, _ = self._listener.accept()
        accepted.setblocking(False)
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connections += 1
        selector.register(accepted, selectors.EVENT_READ, Client(accepted))

    def _serve(self, selector: selectors.BaseSelector, client: Client) -> None:
        if not client.unsent:
            self._receive(client)
        # To everyone: a fault may have given bytes to another client.
        for key in list(selector.get_map().values()):
            if isinstance(key.data, Client):
                self._send(key.data)
                self._watch(selector, key)

    def _receive(self, client: Client) -> None:
        try:
            data = client.socket.recv(RECEIVE_BYTES)
        except ConnectionError:
            client.ended = True
            return
        if not data:
            client.unsent += self.fault.farewell(client)
            client.ended = True
            return
        self.received_bytes += len(data)
        client.received_bytes += len(data)
        client.unsent += self.fault.answer(client, data)

    def _send(self, client: Client) -> None:
        if not client.unsent:
            return
        try:
            del client.unsent[: client.socket.send(client.unsent)]
        except BlockingIOError:
            pass
        except ConnectionError:
            client.unsent.clear()
            client.ended = True

    def _watch(self, selector: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
        client = key.data
        if client.ended and not client.unsent:
            selector.unregister(client.socket)
            client.socket.close()
            return
        wanted = selectors.EVENT_WRITE if client.unsent else selectors.EVENT_READ
        if key.events != wanted:
            selector.modify(client.socket, wanted, client)
