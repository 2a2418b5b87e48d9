# SPDX-License-Identifier: MIT
"""Runs ./course many times for the price of one start.

Most of what a short command costs is that Python loads the packages of .venv. So this program
loads them once and forks for every job: the child becomes `python -m course_tool` of the clone that
the job names, with that clone's modules, and ends as that would.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "common" / "tool"
LATE = "late"


class ReadyTool:
    """The side of the tests, which hand out one job at a time."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(
        self, args: Sequence[str | Path], cwd: Path, env: Mapping[str, str], timeout: float
    ) -> subprocess.CompletedProcess[str]:
        words = [str(arg) for arg in args]
        assert self._process.stdin and self._process.stdout
        with tempfile.NamedTemporaryFile("r") as out, tempfile.NamedTemporaryFile("r") as err:
            files = [os.devnull, out.name, err.name]
            job = {"args": words, "cwd": str(cwd), "env": dict(env), "files": files}
            try:
                print(json.dumps({**job, "timeout": timeout}), file=self._process.stdin, flush=True)
                ended = self._process.stdout.readline().strip()
            except BaseException:
                self._process.kill()  # whatever runs there is of no use to the next test
                raise
            if ended == LATE:
                raise subprocess.TimeoutExpired(words, timeout, out.read(), err.read())
            return subprocess.CompletedProcess(words, int(ended), out.read(), err.read())

    def usable(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        with self._process:  # its input ends, and so does it
            pass


def _load() -> Callable[[], None]:
    """All that the tool may import; nothing of the tool itself, of which each clone has its own.

    Returns what lets a child die with us.
    """
    sys.path[0] = str(TOOL)
    for module in pkgutil.walk_packages([str(TOOL)]):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    die_with_us = sys.modules["course_tool.processes"].in_child(os.getpid(), None)
    for name in [name for name in sys.modules if name.split(".")[0] == "course_tool"]:
        del sys.modules[name]
    del sys.path[0]
    return die_with_us


def _become(job: dict) -> None:
    """What the interpreter does before the first line of `python -m course_tool`."""
    for number, file in enumerate(job["files"]):
        opened = os.open(file, os.O_WRONLY if number else os.O_RDONLY)
        os.dup2(opened, number)
        os.close(opened)
    os.chdir(job["cwd"])
    os.environ.clear()
    os.environ.update(job["env"])
    sys.argv = ["course_tool", *job["args"]]
    sys.path[:0] = [job["cwd"], *job["env"]["PYTHONPATH"].split(":")]


def _how_it_ended(pid: int, timeout: float) -> str:
    pidfd = os.pidfd_open(pid)
    poller = select.poll()
    poller.register(pidfd, select.POLLIN)
    in_time = poller.poll(timeout * 1000)
    if not in_time:
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    os.close(pidfd)
    return str(os.waitstatus_to_exitcode(status)) if in_time else LATE


def main() -> None:
    die_with_us = _load()
    gc.freeze()  # a collection in a child would write to, and so copy, what all of them share
    for line in sys.stdin:
        job = json.loads(line)
        pid = os.fork()
        if pid == 0:
            die_with_us()
            _become(job)
            runpy.run_module("course_tool", run_name="__main__", alter_sys=True)
            return
        print(_how_it_ended(pid, job["timeout"]), flush=True)


if __name__ == "__main__":
    main()
