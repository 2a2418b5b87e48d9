# SPDX-License-Identifier: MIT
"""A server on a thread of its own, for what a test runs against it."""

from __future__ import annotations

import asyncio
import threading
from typing import Self

STOP_DEADLINE_S = 20


class ThreadedServer:
    """Runs on a free port until its `with` ends; a subclass says what is said to a client."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        self.connections = 0
        self._loop = asyncio.new_event_loop()
        listening = asyncio.start_server(self._serve, host, 0, backlog=1024)
        try:
            self._listener = self._loop.run_until_complete(listening)
        except OSError:
            self._loop.close()
            raise
        self.port: int = self._listener.sockets[0].getsockname()[1]
        self._thread = threading.Thread(target=self._loop.run_forever, name="server")

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        raise NotImplementedError

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            await self.converse(reader, writer)
            await writer.drain()
        except ConnectionError:
            pass  # the client has seen enough
        finally:
            writer.close()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(STOP_DEADLINE_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=STOP_DEADLINE_S)
        assert not self._thread.is_alive(), "the server did not stop"
        self._loop.close()

    async def _end(self) -> None:
        """Also of conversations that wait for a client, or for themselves."""
        self._listener.close()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for each in left:
            each.cancel()
        await asyncio.gather(*left, return_exceptions=True)
