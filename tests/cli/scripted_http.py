# SPDX-License-Identifier: MIT
"""An HTTP server that says what a test tells it to, cut into sends as the test wants."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Self

END_OF_HEAD = b"\r\n\r\n"
CLIENT_DEADLINE_S = 20

# From the number of a request on its connection (0, 1, ...) to the bytes of the response.
Script = Callable[[int], bytes]
# Cuts the responses to all requests that came together into the pieces to send.
Cut = Callable[[bytes], Iterable[bytes]]


def response(body: bytes, *headers: str, status: str = "200 OK", version: str = "1.1") -> bytes:
    """With its Content-Length."""
    head = [f"HTTP/{version} {status}", *headers, f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(head).encode() + body


def chunked(*chunks: bytes, trailer: str = "") -> bytes:
    body = b"".join(b"%x;name=value\r\n%b\r\n" % (len(each), each) for each in chunks)
    return (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        + body
        + b"0\r\n"
        + trailer.encode()
        + b"\r\n"
    )


def whole(data: bytes) -> Iterable[bytes]:
    yield data


def bytewise(data: bytes) -> Iterable[bytes]:
    for at in range(len(data)):
        yield data[at : at + 1]


class ScriptedHttp:
    """A thread a connection, on a free port, until its `with` ends.

    A connection is closed by the server after `close_after` requests, if that is given.
    """

    def __init__(self, script: Script, cut: Cut = whole, close_after: int | None = None) -> None:
        self.script = script
        self.cut = cut
        self.close_after = close_after
        self.requests: list[bytes] = []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port: int = self._listener.getsockname()[1]
        self._threads: list[threading.Thread] = []
        self._acceptor = threading.Thread(target=self._accept)

    def __enter__(self) -> Self:
        self._acceptor.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        for thread in (self._acceptor, *self._threads):
            thread.join(timeout=CLIENT_DEADLINE_S)
            assert not thread.is_alive(), "a thread of the HTTP server did not stop"
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return  # shut down
            thread = threading.Thread(target=self._serve, args=(client,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, client: socket.socket) -> None:
        client.settimeout(CLIENT_DEADLINE_S)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with client:
            try:
                self._converse(client)
            except ConnectionError:
                pass  # the client has seen enough

    def _converse(self, client: socket.socket) -> None:
        waiting = b""
        answered = 0
        while data := client.recv(64 * 1024):
            *requests, waiting = (waiting + data).split(END_OF_HEAD)
            if self.close_after is not None:
                requests = requests[: self.close_after - answered]
            self.requests += requests
            answers = b"".join(self.script(answered + at) for at in range(len(requests)))
            answered += len(requests)
            for piece in self.cut(answers):
                client.sendall(piece)
            if answered == self.close_after:
                return
