# SPDX-License-Identifier: MIT
"""Runs the load generator and reads what it wrote."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_tool import builds

DEADLINE_S = 40


@functools.cache
def loadgen() -> Path:
    """The program that COURSE_LOADGEN names, else the one that ./course bench runs."""
    named = os.environ.get("COURSE_LOADGEN")
    if named:
        return Path(named)
    builds.build("release", ["loadgen"])
    return builds.program("release", "loadgen")


@dataclass(frozen=True)
class Run:
    code: int
    out: str
    err: str
    json: dict[str, Any]  # empty if nothing was written
    seconds: float


def start(*args: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [loadgen(), *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def said(*args: object) -> tuple[int, str, str]:
    """The exit code, stdout and stderr of a run to its end."""
    process = start(*args)
    try:
        out, err = process.communicate(timeout=DEADLINE_S)
    finally:
        process.kill()
        process.wait()
    return process.returncode, out, err


def run(*args: object) -> Run:
    """A run to its end, with its JSON."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "result.json"
        began = time.monotonic()
        code, out, err = said(*args, "--json", file)
        seconds = time.monotonic() - began
        text = file.read_text() if file.exists() else ""
        return Run(code, out, err, json.loads(text) if text else {}, seconds)
