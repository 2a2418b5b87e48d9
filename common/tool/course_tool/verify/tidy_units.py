# SPDX-License-Identifier: MIT
"""What clang-tidy reads at a time: a file, or a folder of tests as if it were one file.

Five sixths of the time that it needs for a test go into headers, and a chapter's tests include the
same ones. So no two files of such a folder may give one name to two things. That a file says itself
what it includes and uses is for the build to prove, which compiles each alone.
"""

from __future__ import annotations

import re
import shlex
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from course_tool.paths import ROOT


@dataclass(frozen=True)
class TidyUnit:
    files: tuple[Path, ...]
    flags: tuple[str, ...]  # of the compiler

    @property
    def name(self) -> str:
        first = self.files[0]
        return first.name if len(self.files) == 1 else f"{first.parent.name}-from-{first.name}"

    def arguments(self, database: Path, folder: Path) -> list[str | Path]:
        """The file to read, how it is compiled, and for several files what no longer applies."""
        unknown = "-Wno-unknown-warning-option"
        if len(self.files) == 1:
            return ["-p", database, f"--extra-arg={unknown}", self.files[0]]
        folder.mkdir(parents=True, exist_ok=True)
        joined = folder / self.name
        joined.write_text("".join(map(_text, self.files)), encoding="utf-8")
        left_out = "--checks=-readability-duplicate-include,-clang-analyzer-*"  # as tests/ has it
        flags = [*self.flags, unknown, "-Wno-shadow", "-iquote", str(self.files[0].parent)]
        return [left_out, joined, "--", *flags]

    def first_finding(self, said: str) -> str:
        found = re.search(r"^(\S.*?):(\d+):\d+: (?:error|warning): (.*)$", said, re.MULTILINE)
        if not found:
            return said.strip()[:300]
        file, line = self._place(Path(found[1]), int(found[2]))
        return f"{str(file).replace(f'{ROOT}/', '')}:{line}: {found[3]}"

    def _place(self, file: Path, line: int) -> tuple[Path, int]:
        """Where a line of the joined file comes from."""
        if len(self.files) == 1 or file.name != self.name:
            return file, line
        for each in self.files:
            lines = _text(each).count("\n")
            if line <= lines:
                return each, line
            line -= lines
        return file, line


def tidy_units(commands: Iterable[dict[str, str]]) -> list[TidyUnit]:
    groups: defaultdict[tuple[Path, tuple[str, ...]], set[Path]] = defaultdict(set)
    for command in commands:
        file, words = Path(command["file"]), shlex.split(command["command"])
        flags = tuple(words[1 : words.index("-o")])
        is_test = file.is_relative_to(ROOT / "tests") and not file.name.endswith("main.cpp")
        groups[file.parent if is_test else file, flags].add(file)
    units = [TidyUnit(tuple(sorted(files)), flags) for (_, flags), files in groups.items()]
    return sorted(units, key=lambda unit: unit.files)


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8").rstrip("\n") + "\n"
