# SPDX-License-Identifier: MIT
"""The tool on a terminal: a pty whose other end a test reads and types on."""

from __future__ import annotations

import os
import pty
import select
import signal
import time
from typing import Self

from live_course import LiveCourse

DEADLINE_S = 60.0
CTRL_C = "\x03"
CTRL_Z = "\x1a"


class Terminal:
    """Runs one command as a session of its own, with a controlling terminal, as a shell does."""

    def __init__(self, live: LiveCourse, *args: str, program: list[str] | None = None) -> None:
        self.text = ""
        self._live = live
        self._command = program or live.command(*args)
        self._status: int | None = None

    def __enter__(self) -> Self:
        environment = self._live.environment(TERM="xterm", COLUMNS="100")
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            os.chdir(self._live.root)
            os.execvpe(self._command[0], self._command, environment)
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self._fd)

    def type(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def wait_for(self, text: str) -> None:
        end = time.monotonic() + DEADLINE_S
        while text not in self.text:
            assert time.monotonic() < end, f"waited for {text!r}; there is {self.text!r}"
            assert self._read(0.1), f"it ended without {text!r}; there is {self.text!r}"

    def wait(self) -> int:
        """Reads to the end; returns the exit code, negative for a signal."""
        end = time.monotonic() + DEADLINE_S
        while self._read(0.1):
            assert time.monotonic() < end, f"it does not end; there is {self.text!r}"
        _, self._status = os.waitpid(self.pid, 0)
        return os.waitstatus_to_exitcode(self._status)

    def _read(self, wait_s: float) -> bool:
        """False at the end."""
        ready, _, _ = select.select([self._fd], [], [], wait_s)
        if not ready:
            return True
        try:
            data = os.read(self._fd, 65536)
        except OSError:  # EIO: nobody has the other end any more
            return False
        self.text += data.decode(errors="replace").replace("\r\n", "\n")
        return bool(data)
