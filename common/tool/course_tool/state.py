# SPDX-License-Identifier: MIT
"""What the tool remembers about a student: .course/state.json.

Two commands may run at once, so every change reads, changes and replaces the file under one lock,
and replaces it whole. A file that cannot be understood is set aside, never guessed at.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from course_tool import console, paths
from course_tool.errors import CourseError

RESULTS = ("green", "red", "todo", "skipped")
_FILE = "state.json"
_VERSION = 1


@dataclass(frozen=True)
class Record:
    """How the last test run of a task (or of an echo contract) ended, and on which files."""

    result: str  # one of RESULTS
    fingerprint: str  # of its code at that time, from places.fingerprints()


@dataclass
class State:
    records: dict[str, Record] = field(default_factory=dict)  # "01.2", "01 contract"
    hints: dict[str, int] = field(default_factory=dict)  # "01.2": how many have been shown
    checkpoints: list[str] = field(default_factory=list)  # chapters whose checkpoint has been run


def load(folder: Path = paths.STATE) -> State:
    """Returns what is remembered; an empty State if there is nothing, or nothing readable."""
    try:
        return _read(folder / _FILE)
    except ValueError:  # look again under the lock: somebody may be setting it aside just now
        with _locked(folder):
            return _read_or_set_aside(folder / _FILE)


@contextmanager
def changing(folder: Path = paths.STATE) -> Iterator[State]:
    """Hands out the state to be changed, and writes it back if the block does not raise."""
    with _locked(folder):
        state = _read_or_set_aside(folder / _FILE)
        yield state
        _replace(folder / _FILE, state)


def remember_checkpoint(number: str, folder: Path = paths.STATE) -> None:
    """The checkpoint of this chapter has been run, and its counts held."""
    with changing(folder) as state:
        state.checkpoints = sorted({*state.checkpoints, number})


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / "state.lock").open("w")
    except OSError as error:
        raise CourseError(f"Could not write {paths.relative(folder)}: {error.strerror}.") from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # held for milliseconds; released with the file
        yield


def _read(file: Path) -> State:
    try:
        return _parse(file.read_text(encoding="utf-8"))  # JSON and UTF-8 errors are ValueErrors
    except FileNotFoundError:
        return State()
    except OSError as error:
        raise CourseError(f"Could not read {paths.relative(file)}: {error.strerror}.") from error


def _read_or_set_aside(file: Path) -> State:
    try:
        return _read(file)
    except ValueError as error:
        _set_aside(file, error)
        return State()


def _parse(text: str) -> State:
    try:
        raw = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    _expect(isinstance(raw, dict), "it is not a JSON object")
    _expect(raw.get("version") == _VERSION, f"its version is {raw.get('version')!r}")
    return State(
        records={str(key): _parse_record(each) for key, each in _object(raw, "records").items()},
        hints={str(key): _parse_count(each) for key, each in _object(raw, "hints").items()},
        checkpoints=_parse_names(raw.get("checkpoints", [])),
    )


def _object(raw: dict[str, Any], key: str) -> dict[str, Any]:
    value = raw.get(key, {})
    _expect(isinstance(value, dict), f"{key} is not an object")
    return value


def _parse_record(raw: Any) -> Record:
    good = isinstance(raw, dict) and raw.get("result") in RESULTS
    _expect(good and isinstance(raw.get("fingerprint"), str), f"{raw!r} is not a record")
    return Record(raw["result"], raw["fingerprint"])


def _parse_count(raw: Any) -> int:
    _expect(type(raw) is int and raw >= 0, f"{raw!r} is not a count")
    return raw


def _parse_names(raw: Any) -> list[str]:
    _expect(isinstance(raw, list) and all(isinstance(each, str) for each in raw), "bad checkpoints")
    return list(raw)


def _expect(condition: bool, problem: str) -> None:
    if not condition:
        raise ValueError(problem)


def _set_aside(file: Path, error: ValueError) -> None:
    number = 1
    while (aside := file.with_name(f"{file.name}.corrupt-{number}")).exists():
        number += 1
    try:
        file.rename(aside)
    except OSError as failure:
        raise CourseError(
            f"{paths.relative(file)} could not be understood ({error}), nor could it be renamed: "
            f"{failure.strerror}."
        ) from error
    console.err.print(
        f"course: {paths.relative(file)} could not be understood ({error}); it is now "
        f"{aside.name}, and a fresh one begins. Test runs fill it again.",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )


def _replace(file: Path, state: State) -> None:
    raw = {
        "version": _VERSION,
        "records": {
            key: {"result": each.result, "fingerprint": each.fingerprint}
            for key, each in sorted(state.records.items())
        },
        "hints": dict(sorted(state.hints.items())),
        "checkpoints": state.checkpoints,
    }
    fresh = file.with_name(f"{file.name}.new-{os.getpid()}")
    try:
        fresh.write_text(json.dumps(raw, indent=1) + "\n", encoding="utf-8")
        fresh.replace(file)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise CourseError(f"Could not write {paths.relative(file)}: {error.strerror}.") from error
