# SPDX-License-Identifier: MIT
"""What the kernel can do with io_uring: the program `doctor` tries it, this module asks it."""

from __future__ import annotations

import json
from dataclasses import dataclass

from pydantic import TypeAdapter

from course_tool import builds, processes
from course_tool.errors import CourseError

# In this order: the build that `./course start` makes comes first, and so it is made only once.
PRESETS = ("student", "reference", "release")
ASK_TIMEOUT_S = 120
SCHEMA = 1
FLOOR = (6, 1)


@dataclass(frozen=True)
class Feature:
    """One thing that was tried."""

    name: str
    group: str
    since: str  # the first Linux that has it; "" where the course's floor has it
    summary: str
    ok: bool
    errno: str | None  # "EPERM"; None if it works or if no call failed
    reason: str
    fix: str

    @property
    def is_extra(self) -> bool:
        """Newer than the oldest Linux that the course is written for."""
        return bool(self.since) and tuple(map(int, self.since.split("."))) > FLOOR


@dataclass(frozen=True)
class Kernel:
    """What was found, or why nothing could be found."""

    liburing: str = ""
    release: str = ""
    features: tuple[Feature, ...] = ()
    problem: str = ""  # the program could not be built or run

    def feature(self, name: str) -> Feature | None:
        return next((each for each in self.features if each.name == name), None)

    @property
    def forbidden(self) -> Feature | None:
        """The answer for a plain ring, if there is none to be had: then nothing else works."""
        ring = self.feature("ring")
        return ring if ring and not ring.ok else None


def ask() -> Kernel:
    """Builds the doctor where that is needed, and has it try everything."""
    try:
        return parse(_run_doctor())
    except CourseError as error:
        return Kernel(problem=str(error))


def _run_doctor() -> str:
    preset = build()
    finished = processes.run(
        [builds.program(preset, "doctor"), "--json"], timeout_s=ASK_TIMEOUT_S, check=True
    )
    return finished.stdout


def build() -> str:
    """Builds it in the first preset that is in use here, else in the next; returns which."""
    configured = [each for each in PRESETS if (builds.folder(each) / "build.ninja").is_file()]
    order = list(dict.fromkeys([*configured, *PRESETS]))
    for preset in order[:-1]:
        try:
            builds.build(preset, ["doctor"])
            return preset
        except CourseError:
            continue  # such as a student's CMakeLists.txt in pieces: the other tree may be whole
    builds.build(order[-1], ["doctor"])
    return order[-1]


def parse(text: str) -> Kernel:
    """Reads what `doctor --json` prints."""
    try:
        found = json.loads(text)
        if found["schema"] != SCHEMA:
            raise CourseError(
                f"The doctor's answer has schema {found['schema']}, not {SCHEMA}: its program and "
                "the tool are of different versions. Remove build/ and try again."
            )
        features = TypeAdapter(tuple[Feature, ...]).validate_python(found["features"])
        return Kernel(found["liburing"], found["machine"]["kernel"], features)
    except (ValueError, KeyError, TypeError) as error:
        raise CourseError(
            f"The doctor's answer is not its JSON ({error!r}): {text[:200]!r}"
        ) from None
