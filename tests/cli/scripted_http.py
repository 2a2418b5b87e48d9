# SPDX-License-Identifier: MIT
"""An HTTP server that says what a test tells it to, cut into sends as the test wants."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from threaded_server import ThreadedServer

END_OF_HEAD = b"\r\n\r\n"

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


class ScriptedHttp(ThreadedServer):
    """A connection is closed by the server after `close_after` requests, if that is given."""

    def __init__(self, script: Script, cut: Cut = whole, close_after: int | None = None) -> None:
        super().__init__()
        self.script = script
        self.cut = cut
        self.close_after = close_after
        self.requests: list[bytes] = []

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        waiting = b""
        answered = 0
        while answered != self.close_after and (data := await reader.read(64 * 1024)):
            *requests, waiting = (waiting + data).split(END_OF_HEAD)
            if self.close_after is not None:
                requests = requests[: self.close_after - answered]
            self.requests += requests
            answers = b"".join(self.script(answered + at) for at in range(len(requests)))
            answered += len(requests)
            for piece in self.cut(answers):
                writer.write(piece)
                await writer.drain()
