# SPDX-License-Identifier: MIT
"""The chapters, as solutions/NN-slug/chapter.toml states them; the schema is in this file.

Every deviation from the schema is a CourseError that names the file, the key and what is allowed.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from course_tool.errors import CourseError
from course_tool.paths import ROOT, relative

METRICS = (
    "syscalls_per_request",
    "sqes_per_request",
    "cqes_per_request",
    "bytes_per_idle_connection",
    "syscalls_per_operation",  # of a program that runs to its end and takes --count
    "printed",  # by a program that runs to its end, as a line 'VALUE: NUMBER'
)
WITHOUT_CLIENTS = ("syscalls_per_operation", "printed")
HINTS_PER_TASK = 3


@dataclass(frozen=True)
class Task:
    id: str  # "01.2"
    title: str
    file: str
    sections: tuple[str, ...]
    tag: str
    hints: tuple[str, ...]  # a question, a nudge, nearly there


@dataclass(frozen=True)
class Program:
    name: str  # the target and the file are NN-name
    summary: str
    contract: bool  # keeps what every server keeps: the echo contract is run against it


@dataclass(frozen=True)
class Minutes:
    reading: int
    tasks: int
    checkpoint: int

    @property
    def total(self) -> int:
        return self.reading + self.tasks + self.checkpoint


@dataclass(frozen=True)
class Count:
    """An asserted number of a checkpoint. A program without clients has 0 of what belongs to them.

    `requests` is what clients ask for, or the --count of a program that runs to its end.
    """

    name: str
    metric: str  # one of METRICS
    program: str
    args: tuple[str, ...]
    connections: int
    size: int
    inflight: int
    requests: int
    at_least: float
    at_most: float
    why: str
    calls: tuple[str, ...]  # metrics of system calls count only these; empty: all
    value: str = ""  # of "printed": what the program calls the number
    unit: str = ""  # of "printed": what the number counts, such as bytes


@dataclass(frozen=True)
class Contender:
    """What a checkpoint measures: a server, or a program that times itself.

    Its speed is shown, never asserted.
    """

    name: str
    chapter: str
    program: str
    args: tuple[str, ...]
    baseline: bool  # the ratios are to this one


@dataclass(frozen=True)
class Load:
    connections: int
    size: int
    inflight: int
    duration_s: float
    rounds: int


@dataclass(frozen=True)
class Timing:
    """Programs that time themselves: each takes --count and prints 'ns per OPERATION: NUMBER'."""

    operation: str  # what is done --count times, such as "call"
    operations: int
    rounds: int
    contenders: tuple[Contender, ...]

    @property
    def value(self) -> str:
        return f"ns per {self.operation}"


@dataclass(frozen=True)
class Checkpoint:
    question: str
    counts: tuple[Count, ...]
    contenders: tuple[Contender, ...]  # servers; none in a chapter without one
    load: Load | None  # what the contenders are put under
    timing: Timing | None = None


@dataclass(frozen=True)
class Chapter:
    number: str  # "01"
    slug: str
    title: str
    idea: str
    kernel: str
    features: tuple[str, ...]  # names of doctor features that the chapter needs
    builds_on: tuple[str, ...]  # chapter numbers
    files: tuple[str, ...]  # those with tasks, in task order
    minutes: Minutes
    tasks: tuple[Task, ...]
    programs: tuple[Program, ...]
    checkpoint: Checkpoint
    root: Path = field(default=ROOT, repr=False)

    @property
    def folder(self) -> str:
        return f"{self.number}-{self.slug}"

    @property
    def solution(self) -> Path:
        return self.root / "solutions" / self.folder

    @property
    def starter(self) -> Path:
        return self.root / "chapters" / self.folder

    @property
    def tests(self) -> Path:
        return self.root / "tests" / self.folder

    @property
    def page_name(self) -> str:
        return f"docs/chapters/{self.folder}.md"

    @property
    def page(self) -> Path:
        return self.root / self.page_name

    def program(self, name: str) -> Program:
        for program in self.programs:
            if program.name == name:
                return program
        have = ", ".join(program.name for program in self.programs)
        raise CourseError(f"Chapter {self.number} has no program {name!r}. It has: {have}.")


class _Missing:
    """Stands for 'no default': the key has to be there."""


_MISSING = _Missing()


class _Table:
    """A TOML table that is read key by key; whatever nobody asked for is an error."""

    def __init__(self, values: dict[str, Any], file: Path, name: str = "") -> None:
        self._values = values
        self._file = file
        self._name = name
        self._read: set[str] = set()

    def fail(self, key: str, problem: str) -> CourseError:
        where = f"{self._name}.{key}" if self._name and key else self._name or key
        return CourseError(f"{relative(self._file)}: {where}: {problem}")

    def _take(self, key: str, kind: str, default: Any) -> Any:
        self._read.add(key)
        if key in self._values:
            return self._values[key]
        if default is _MISSING:
            raise self.fail(key, f"is missing; it has to be {kind}.")
        return default

    def text(self, key: str, default: Any = _MISSING) -> str:
        value = self._take(key, "a string", default)
        if not isinstance(value, str) or not value.strip():
            raise self.fail(key, f"is {value!r}; it has to be a string that is not empty.")
        return value

    def matching(self, key: str, pattern: str, example: str) -> str:
        value = self.text(key)
        if not re.fullmatch(pattern, value):
            raise self.fail(key, f"is {value!r}; it has to look like {example!r}.")
        return value

    def texts(self, key: str, default: Any = _MISSING) -> tuple[str, ...]:
        value = self._take(key, "a list of strings", default)
        good = isinstance(value, list | tuple) and all(
            isinstance(item, str) and item.strip() for item in value
        )
        if not good:
            raise self.fail(key, f"is {value!r}; it has to be a list of strings.")
        return tuple(value)

    def number(self, key: str, least: float = 0) -> float:
        value = self._take(key, "a number", _MISSING)
        if isinstance(value, bool) or not isinstance(value, int | float) or value < least:
            raise self.fail(key, f"is {value!r}; it has to be a number of at least {least}.")
        return float(value)

    def integer(self, key: str, least: int = 1) -> int:
        value = self._take(key, "an integer", _MISSING)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise self.fail(key, f"is {value!r}; it has to be an integer of at least {least}.")
        return value

    def has(self, key: str) -> bool:
        return key in self._values

    def flag(self, key: str, default: Any = _MISSING) -> bool:
        value = self._take(key, "true or false", default)
        if not isinstance(value, bool):
            raise self.fail(key, f"is {value!r}; it has to be true or false.")
        return value

    def one_of(self, key: str, allowed: tuple[str, ...]) -> str:
        value = self.text(key)
        if value not in allowed:
            raise self.fail(key, f"is {value!r}; it has to be one of {', '.join(allowed)}.")
        return value

    def table(self, key: str) -> _Table:
        value = self._take(key, f"a table, [{self._path(key)}]", _MISSING)
        if not isinstance(value, dict):
            raise self.fail(key, f"is {value!r}; it has to be a table, [{self._path(key)}].")
        return _Table(value, self._file, self._path(key))

    def tables(self, key: str) -> list[_Table]:
        kind = f"one or more tables, [[{self._path(key)}]]"
        value = self._take(key, kind, _MISSING)
        tables = isinstance(value, list) and all(isinstance(item, dict) for item in value)
        if not tables or not value:
            raise self.fail(key, f"is {value!r}; it has to be {kind}.")
        return [
            _Table(item, self._file, f"{self._path(key)}[{index}]")
            for index, item in enumerate(value, start=1)
        ]

    def done(self) -> None:
        unknown = sorted(set(self._values) - self._read)
        if unknown:
            allowed = ", ".join(sorted(self._read))
            raise self.fail(unknown[0], f"is not a key of this table; it takes {allowed}.")

    def _path(self, key: str) -> str:
        return f"{self._name}.{key}" if self._name else key


def _load_task(table: _Table, number: str, position: int, files: tuple[str, ...]) -> Task:
    wanted = f"{number}.{position}"
    task = Task(
        id=table.text("id"),
        title=table.text("title"),
        file=table.text("file"),
        sections=table.texts("sections"),
        tag=table.text("tag"),
        hints=table.texts("hints"),
    )
    table.done()
    if task.id != wanted:
        raise table.fail("id", f"is {task.id!r}; ids count up in order, so this one is {wanted!r}.")
    if task.tag != wanted:
        raise table.fail("tag", f"is {task.tag!r}; the tests of this task are tagged {wanted!r}.")
    if task.file not in files:
        raise table.fail("file", f"is {task.file!r}, which `files` does not list.")
    if len(task.hints) != HINTS_PER_TASK:
        raise table.fail(
            "hints",
            f"holds {len(task.hints)}; it takes {HINTS_PER_TASK}: "
            "a question, a nudge, nearly there.",
        )
    section = f"task-{number}-{position}"
    if not task.sections or task.sections[0] != section:
        raise table.fail("sections", f"is {list(task.sections)}; the first one is {section!r}.")
    for name in task.sections[1:]:
        if not re.fullmatch(f"{section}[b-z]", name):
            raise table.fail(
                "sections", f"holds {name!r}; further places are {section + 'b'!r} and so on."
            )
    return task


def _load_program(table: _Table) -> Program:
    program = Program(
        name=table.matching("name", r"[a-z][a-z0-9_-]*", "server"),
        summary=table.text("summary"),
        contract=table.flag("contract"),
    )
    table.done()
    return program


def _load_requests(table: _Table, metric: str) -> int:
    if metric in ("bytes_per_idle_connection", "printed"):
        return 0  # idle clients send nothing; a program that prints knows how often it does it
    return table.integer("operations" if metric == "syscalls_per_operation" else "requests")


def _load_count(table: _Table, programs: tuple[str, ...]) -> Count:
    metric = table.one_of("metric", METRICS)
    has_clients = metric not in WITHOUT_CLIENTS
    prints = metric == "printed"
    has_load = has_clients and metric != "bytes_per_idle_connection"
    count = Count(
        name=table.text("name"),
        metric=metric,
        program=table.one_of("program", programs),
        args=table.texts("args", ()),
        connections=table.integer("connections") if has_clients else 0,
        size=table.integer("size") if has_load else 0,
        inflight=table.integer("inflight") if has_load else 0,
        requests=_load_requests(table, metric),
        at_least=table.number("at_least"),
        at_most=table.number("at_most"),
        why=table.text("why"),
        calls=() if prints else table.texts("calls", ()),
        value=table.text("value") if prints else "",
        unit=table.text("unit") if prints else "",
    )
    table.done()
    if count.at_least > count.at_most:
        raise table.fail("at_least", f"is {count.at_least}, more than at_most {count.at_most}.")
    return count


def _load_contender(table: _Table, number: str) -> Contender:
    contender = Contender(
        name=table.text("name"),
        chapter=table.matching("chapter", r"\d\d", "01"),
        program=table.text("program"),
        args=table.texts("args", ()),
        baseline=table.flag("baseline", False),
    )
    table.done()
    if contender.chapter > number:
        raise table.fail("chapter", f"is {contender.chapter!r}, which comes after this chapter.")
    return contender


def _load_timing(table: _Table, number: str) -> Timing:
    timing = Timing(
        operation=table.text("operation"),
        operations=table.integer("operations"),
        rounds=table.integer("rounds"),
        contenders=tuple(_load_contender(each, number) for each in table.tables("contenders")),
    )
    table.done()
    _check_baseline(table, timing.contenders)
    return timing


def _check_baseline(table: _Table, contenders: tuple[Contender, ...]) -> None:
    if sum(contender.baseline for contender in contenders) != 1:
        raise table.fail("contenders", "exactly one of them has to say baseline = true.")


def _load_load(table: _Table) -> Load:
    load = Load(
        connections=table.integer("connections"),
        size=table.integer("size"),
        inflight=table.integer("inflight"),
        duration_s=table.number("duration_s"),
        rounds=table.integer("rounds"),
    )
    table.done()
    return load


def _load_checkpoint(table: _Table, number: str, programs: tuple[Program, ...]) -> Checkpoint:
    names = tuple(program.name for program in programs)
    # Without a server there is nothing to put under a load: such a chapter has counts and, where
    # its programs time themselves, [checkpoint.timing].
    has_speed = any(program.contract for program in programs) or table.has("contenders")
    checkpoint = Checkpoint(
        question=table.text("question"),
        counts=tuple(_load_count(each, names) for each in table.tables("counts")),
        contenders=tuple(_load_contender(each, number) for each in table.tables("contenders"))
        if has_speed
        else (),
        load=_load_load(table.table("load")) if has_speed else None,
        timing=_load_timing(table.table("timing"), number) if table.has("timing") else None,
    )
    table.done()
    if has_speed:
        _check_baseline(table, checkpoint.contenders)
    return checkpoint


def _load_minutes(table: _Table) -> Minutes:
    minutes = Minutes(
        reading=table.integer("reading"),
        tasks=table.integer("tasks"),
        checkpoint=table.integer("checkpoint"),
    )
    table.done()
    return minutes


def _parse(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CourseError(f"{relative(file)} is missing; every chapter has one.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CourseError(f"{relative(file)} is not valid TOML: {error}.") from error


def _check_consistent(table: _Table, chapter: Chapter, file: Path) -> None:
    if file.parent.name != chapter.folder:
        raise table.fail(
            "slug",
            f"number and slug make {chapter.folder!r}, but the folder is {file.parent.name!r}.",
        )
    for earlier in chapter.builds_on:
        if not re.fullmatch(r"\d\d", earlier) or earlier >= chapter.number:
            raise table.fail(
                "builds_on", f"holds {earlier!r}; it takes numbers of earlier chapters."
            )
    for name in chapter.files:
        if name not in {task.file for task in chapter.tasks}:
            raise table.fail("files", f"holds {name!r}, but no task is in it.")
    _check_marks(table, chapter)


def _check_marks(table: _Table, chapter: Chapter) -> None:
    for index, task in enumerate(chapter.tasks, start=1):
        source = chapter.solution / task.file
        if not source.is_file():
            raise table.fail("files", f"holds {task.file!r}, but there is no such file.")
        text = source.read_text(encoding="utf-8")
        for section in task.sections:
            if f"[start:{section}]" not in text:
                raise table.fail(
                    f"tasks[{index}].sections", f"holds {section!r}; {task.file} has no such mark."
                )


def load_chapter(path: Path) -> Chapter:
    """Reads one chapter from its folder under solutions/, or from the chapter.toml in there."""
    file = path / "chapter.toml" if path.is_dir() else path
    table = _Table(_parse(file), file)
    number = table.matching("number", r"\d\d", "01")
    files = table.texts("files")
    programs = tuple(_load_program(each) for each in table.tables("programs"))
    chapter = Chapter(
        number=number,
        slug=table.matching("slug", r"[a-z][a-z0-9-]*", "blocking-echo"),
        title=table.text("title"),
        idea=table.text("idea"),
        kernel=table.matching("kernel", r"\d+\.\d+", "6.1"),
        features=table.texts("features"),
        builds_on=table.texts("builds_on"),
        files=files,
        minutes=_load_minutes(table.table("minutes")),
        tasks=tuple(
            _load_task(each, number, position, files)
            for position, each in enumerate(table.tables("tasks"), start=1)
        ),
        programs=programs,
        checkpoint=_load_checkpoint(table.table("checkpoint"), number, programs),
        root=file.resolve().parents[2],
    )
    table.done()
    _check_consistent(table, chapter, file)
    return chapter


def _chapter_files(root: Path) -> Iterator[Path]:
    return iter(sorted((root / "solutions").glob("[0-9][0-9]-*/chapter.toml")))


def all_chapters(root: Path = ROOT) -> list[Chapter]:
    """The chapters that exist, in the order of the course."""
    chapters = [load_chapter(file) for file in _chapter_files(root)]
    if not chapters:
        raise CourseError(f"{relative(root / 'solutions')}/ holds no chapter. Is the clone whole?")
    return chapters


def find_chapter(name: str, root: Path = ROOT) -> Chapter:
    """Accepts 1, 01 and 01-blocking-echo."""
    chapters = all_chapters(root)
    for chapter in chapters:
        short = name.isdecimal() and name.isascii() and int(name) == int(chapter.number)
        if short or name.rstrip("/") == chapter.folder:
            return chapter
    numbers = [chapter.number for chapter in chapters]
    raise CourseError(f"There is no chapter {name}. Try {_range_text(numbers)}.")


def _range_text(numbers: list[str]) -> str:
    return numbers[0] if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"


def find_task(name: str, root: Path = ROOT) -> tuple[Chapter, Task]:
    """Accepts 01.2 and 1.2."""
    number, dot, position = name.partition(".")
    if not dot or not (number.isdecimal() and position.isdecimal()):
        raise CourseError(f"{name!r} is not a task. A task looks like 01.2: chapter, dot, task.")
    chapter = find_chapter(number, root)
    for task in chapter.tasks:
        if task.id == f"{chapter.number}.{int(position)}":
            return chapter, task
    ids = [task.id for task in chapter.tasks]
    raise CourseError(f"There is no task {name}. Chapter {chapter.number} has {_range_text(ids)}.")
