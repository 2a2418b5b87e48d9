# SPDX-License-Identifier: MIT
"""Echo servers that do one thing wrong, for the load generator to notice."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass

from threaded_server import ThreadedServer

RECEIVE_BYTES = 64 * 1024
MILLION = 1_000_000


@dataclass(eq=False)
class Client:
    """One connection."""

    writer: asyncio.StreamWriter
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
        other.writer.write(data)
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
        connection = client.writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        client.ended = True
        return b""


class Unasked(Honest):
    """After the last echo, a few bytes more."""

    def farewell(self, client: Client) -> bytes:
        return b"and another thing"


class EchoServer(ThreadedServer):
    def __init__(self, fault: Honest, host: str = "127.0.0.1") -> None:
        super().__init__(host)
        self.fault = fault
        self.received_bytes = 0

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = Client(writer)
        while not client.ended:
            data = await reader.read(RECEIVE_BYTES)
            if not data:
                writer.write(self.fault.farewell(client))
                return
            self.received_bytes += len(data)
            client.received_bytes += len(data)
            writer.write(self.fault.answer(client, data))
            await writer.drain()  # does not read while it cannot write
