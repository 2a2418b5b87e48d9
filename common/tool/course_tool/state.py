# SPDX-License-Identifier: MIT
"""What the tool remembers about a student: .course/state.json.

Two commands may run at once, so every change reads, changes and replaces the file under one lock,
and replaces it whole. A file that cannot be understood is set aside, never guessed at.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from course_tool import console, paths
from course_tool.errors import CourseError
from course_tool.files import locked, write_whole

_FILE = "state.json"


@dataclass(frozen=True)
class Record:
    """How the last test run of a task (or of an echo contract) ended, and on which files."""

    result: Literal["green", "red", "todo", "skipped"]
    fingerprint: str  # of its code at that time, from places.fingerprints()


@dataclass
class State:
    version: Literal[1] = field(default=1, kw_only=True)
    records: dict[str, Record] = field(default_factory=dict)  # "01.2", "01 contract"
    hints: dict[str, Annotated[int, Field(ge=0, strict=True)]] = field(
        default_factory=dict
    )  # "01.2": how many have been shown
    checkpoints: list[str] = field(default_factory=list)  # chapters whose checkpoint has been run


@cache
def _schema() -> TypeAdapter[State]:
    return TypeAdapter(State)


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
    file = folder / _FILE
    with _locked(folder):
        state = _read_or_set_aside(file)
        yield state
        state.records, state.hints = (
            dict(sorted(state.records.items())),
            dict(sorted(state.hints.items())),
        )
        try:
            write_whole(file, _schema().dump_json(state, indent=1) + b"\n")
        except OSError as error:
            raise CourseError(
                f"Could not write {paths.relative(file)}: {error.strerror}."
            ) from error


def remember_checkpoint(number: str, folder: Path = paths.STATE) -> None:
    """The checkpoint of this chapter has been run, and its counts held."""
    with changing(folder) as state:
        state.checkpoints = sorted({*state.checkpoints, number})


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(folder / "state.lock"))  # held for milliseconds
        except OSError as error:
            raise CourseError(
                f"Could not write {paths.relative(folder)}: {error.strerror}."
            ) from error
        yield


def _read(file: Path) -> State:
    try:
        return _schema().validate_json(file.read_bytes())  # what it finds is a ValueError
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


def _set_aside(file: Path, error: ValueError) -> None:
    names = (file.with_name(f"{file.name}.corrupt-{number}") for number in count(1))
    aside = next(name for name in names if not name.exists())
    why = "; ".join(str(error).splitlines()[1:3]).strip()
    try:
        file.rename(aside)
    except OSError as failure:
        raise CourseError(
            f"{paths.relative(file)} could not be understood ({why}), nor could it be renamed: "
            f"{failure.strerror}."
        ) from error
    console.err.print(
        f"course: {paths.relative(file)} could not be understood ({why}); it is now "
        f"{aside.name}, and a fresh one begins. Test runs fill it again."
    )
