# SPDX-License-Identifier: MIT
"""What is done to files in many places: hashed, replaced whole, locked. The standard library alone:
bootstrap.py needs it before there is a .venv.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


def digest(*contents: bytes) -> str:
    """The SHA-256 of these contents, one behind the other."""
    return hashlib.sha256(b"".join(contents)).hexdigest()


def write_whole(file: Path, content: str | bytes) -> None:
    """Whoever reads the file sees what it was or what it is, also when we are interrupted."""
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_name(f".{file.name}.new-{os.getpid()}")
    try:
        fresh.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
        fresh.replace(file)
    finally:
        fresh.unlink(missing_ok=True)


def fill(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Makes a flat folder hold exactly these files; what is right already stays untouched."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in folder.iterdir():
        if file.name not in contents:
            file.unlink()
    for name, content in contents.items():
        file = folder / name
        if not file.is_file() or file.read_bytes() != content:
            file.write_bytes(content)


@contextmanager
def locked(file: Path, on_wait: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Keeps other ./course commands out of the block; `on_wait` is called if one is in it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(file, "w") as lock:  # released with the file
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
