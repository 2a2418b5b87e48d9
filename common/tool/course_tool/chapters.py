# SPDX-License-Identifier: MIT
"""The chapters, as solutions/NN-slug/chapter.toml states them; the schema is in this file.

Every deviation from the schema is a CourseError that names the file, the key and what is allowed.
pydantic checks each value by its annotation; what depends on two values is checked below.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, is_dataclass, replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

from pydantic import Field, TypeAdapter, ValidationError

from course_tool.errors import CourseError
from course_tool.paths import ROOT, relative
from course_tool.sections import missing_mark

# What a count states beside that which all of them state, by its metric; `calls` and
# `path` may be left out.
# The last two are of programs that run to their end: one takes --count, the other prints a line
# 'VALUE: NUMBER'.
_PER_REQUEST = ("connections", "size", "inflight", "requests", "calls", "path")
_OPTIONAL = ("calls", "path")
BY_METRIC = {
    "syscalls_per_request": _PER_REQUEST,
    "syscalls_per_lone_request": ("requests", "calls"),
    "sqes_per_request": _PER_REQUEST,
    "cqes_per_request": _PER_REQUEST,
    "cqes_per_wait": _PER_REQUEST,
    "sqes_per_connection": ("connections",),
    "bytes_per_idle_connection": ("connections", "calls", "path"),
    "syscalls_per_operation": ("operations", "calls"),
    "printed": ("value", "unit"),
}
T = TypeVar("T")
HINTS_PER_TASK = 3


def _like(pattern: str, example: str) -> Any:
    return Field(strict=True, pattern=f"^({pattern})$", description=f"look like {example!r}")


# The description ends the sentence "it has to ...".
Text = Annotated[
    str, Field(strict=True, pattern=r"\S", description="be a string that is not empty")
]
_Texts = Annotated[tuple[Text, ...], Field(description="be a list of strings")]
_Integer = Annotated[int, Field(strict=True, ge=1, description="be an integer of at least 1")]
Number = Annotated[float, Field(strict=True, ge=0, description="be a number of at least 0")]
_Flag = Annotated[bool, Field(strict=True, description="be true or false")]
ChapterNumber = Annotated[str, _like(r"\d\d", "01")]
_Metric = Annotated[
    str,
    Field(strict=True, pattern=f"^({'|'.join(BY_METRIC)})$",
          description=f"be one of {', '.join(BY_METRIC)}"),
]  # fmt: skip


@dataclass(frozen=True)
class Task:
    id: Text  # "01.2"
    title: Text
    file: Text
    sections: _Texts
    tag: Text
    hints: _Texts  # a question, a nudge, nearly there


@dataclass(frozen=True)
class Program:
    name: Annotated[str, _like(r"[a-z][a-z0-9_-]*", "server")]  # the target and file are NN-name
    summary: Text
    contract: _Flag  # keeps what every server keeps: the echo contract is run against it


@dataclass(frozen=True)
class Minutes:
    reading: _Integer
    tasks: _Integer
    checkpoint: _Integer

    @property
    def total(self) -> int:
        return self.reading + self.tasks + self.checkpoint


@dataclass(frozen=True)
class Count:
    """An asserted number of a checkpoint. A program without clients has 0 of what belongs to them.

    `requests` is what clients ask for, or the --count of a program that runs to its end.
    """

    name: Text
    metric: _Metric
    program: Text
    args: _Texts = ()
    connections: _Integer = 0
    size: _Integer = 0
    inflight: _Integer = 0
    requests: _Integer = 0
    at_least: Number = 0  # this one, and the next two: chapter.toml has to state them
    at_most: Number = 0
    why: Text = ""
    path: Text = ""  # of an HTTP server, whose answer has a body of `size` bytes; empty: an echo
    calls: _Texts = ()  # metrics of system calls count only these; empty: all
    value: Text = ""  # of "printed": what the program calls the number
    unit: Text = ""  # of "printed": what the number counts, such as bytes
    operations: _Integer = 0  # what chapter.toml calls `requests` where nobody requests anything


@dataclass(frozen=True)
class Contender:
    """What a checkpoint measures: a server, or a program that times itself.

    Its speed is shown, never asserted.
    """

    name: Text
    chapter: ChapterNumber
    program: Text
    args: _Texts = ()
    baseline: _Flag = False  # the ratios are to this one


@dataclass(frozen=True)
class Load:
    connections: _Integer
    size: _Integer
    inflight: _Integer
    duration_s: Number
    rounds: _Integer
    path: Text = ""  # as in Count


@dataclass(frozen=True)
class Timing:
    """Programs that time themselves: each takes --count and prints 'ns per OPERATION: NUMBER'."""

    operation: Text  # what is done --count times, such as "call"
    operations: _Integer
    rounds: _Integer
    contenders: Annotated[tuple[Contender, ...], Field(min_length=1)]

    @property
    def value(self) -> str:
        return f"ns per {self.operation}"


@dataclass(frozen=True)
class Scenario:
    """What ./course trace runs. A server gets two clients, with one message each."""

    program: Text
    args: _Texts = ()
    says: str = ""  # by each client, whom the server answers and hangs up; in the place of an echo


@dataclass(frozen=True)
class Checkpoint:
    question: Text
    counts: Annotated[tuple[Count, ...], Field(min_length=1)]
    contenders: tuple[Contender, ...] = ()  # servers; none in a chapter without one
    load: Load | None = None  # what the contenders are put under
    timing: Timing | None = None


@dataclass(frozen=True)
class _Stated:
    number: ChapterNumber
    slug: Annotated[str, _like(r"[a-z][a-z0-9-]*", "blocking-echo")]
    title: Text
    idea: Text
    kernel: Annotated[str, _like(r"\d+\.\d+", "6.1")]
    features: _Texts  # names of doctor features that the chapter needs
    builds_on: _Texts  # chapter numbers
    files: _Texts  # those with tasks, in task order
    minutes: Minutes
    tasks: Annotated[tuple[Task, ...], Field(min_length=1)]
    programs: Annotated[tuple[Program, ...], Field(min_length=1)]
    checkpoint: Checkpoint
    trace: tuple[Scenario, ...] = ()  # one after the other; none: the chapter's server
    # It has a ring, and ThreadSanitizer is right about it all the same: what its threads share is
    # put in order by more than the kernel.
    sanitize_threads: _Flag = False


@dataclass(frozen=True)
class Chapter(_Stated):
    root: Path = field(default=ROOT, repr=False)

    @property
    def suits_tsan(self) -> bool:
        """TSan does not see the kernel's side of a ring, and so reports races that are none."""
        return self.sanitize_threads or not self.features

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


class Bad(NamedTuple):
    """What chapter.toml has wrong."""

    key: str
    problem: str


@cache
def _hints(table: type) -> dict[str, Any]:
    return get_type_hints(table, include_extras=True)


def _wanted(kind: Any, path: str) -> tuple[str, Any]:
    """How "it has to ..." goes on for a value, and which table it is, or a list of which."""
    args = get_args(kind)
    described = [each.description for each in args if getattr(each, "description", "")]
    if described:
        return described[0], None
    table = next(filter(is_dataclass, (kind, *args, *get_args(args[0] if args else None))))
    is_list = tuple in (get_origin(kind), *map(get_origin, args))
    return f"be one or more tables, [[{path}]]" if is_list else f"be a table, [{path}]", table


def _off_schema(error: Any, value: Any, table: Any) -> Bad:
    """Says one of pydantic's errors: where it is, what stands there, and what has to."""
    path, wanted = "", ""
    for part in error["loc"]:
        if isinstance(part, int):
            path, value = f"{path}[{part + 1}]", value[part]
            continue
        path = f"{path}.{part}".lstrip(".")
        wanted, table = _wanted(_hints(table)[part], re.sub(r"\[\d+\]", "", path))
        if part not in value:
            return Bad(path, f"is missing; it has to {wanted}.")
        value = value[part]
        if table is None:
            break
    return Bad(path, f"is {value!r}; it has to {wanted}.")


def _unknown_keys(table: Any, raw: dict[str, Any], path: str = "") -> Iterator[Bad]:
    for key in sorted(set(raw) - set(_hints(table))):
        takes = ", ".join(sorted(_hints(table)))
        yield Bad(f"{path}{key}", f"is not a key of this table; it takes {takes}.")
    for key, value in raw.items():
        if isinstance(value, dict):
            yield from _unknown_keys(_wanted(_hints(table)[key], "")[1], value, f"{path}{key}.")
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            below = _wanted(_hints(table)[key], "")[1]
            for position, each in enumerate(value, start=1):
                yield from _unknown_keys(below, each, f"{path}{key}[{position}].")


def _inconsistent(chapter: Chapter, raw: dict[str, Any], folder: str) -> Iterator[Bad]:
    """What depends on more than one value."""
    for position, task in enumerate(chapter.tasks, start=1):
        yield from _bad_task(task, chapter, position)
    yield from _bad_checkpoint(chapter, raw["checkpoint"])
    if folder != chapter.folder:
        yield Bad("slug", f"number and slug make {chapter.folder!r}, but the folder is {folder!r}.")
    for earlier in chapter.builds_on:
        if not re.fullmatch(r"\d\d", earlier) or earlier >= chapter.number:
            yield Bad("builds_on", f"holds {earlier!r}; it takes numbers of earlier chapters.")
    for name in chapter.files:
        if name not in {task.file for task in chapter.tasks}:
            yield Bad("files", f"holds {name!r}, but no task is in it.")
        elif not (chapter.solution / name).is_file():
            yield Bad("files", f"holds {name!r}, but there is no such file.")
    for position, task in enumerate(chapter.tasks, start=1):
        text = (chapter.solution / task.file).read_text(encoding="utf-8")
        for section in task.sections:
            if missing_mark(text, section).startswith("[start:"):
                problem = f"holds {section!r}; {task.file} has no such mark."
                yield Bad(f"tasks[{position}].sections", problem)


def _bad_task(task: Task, chapter: Chapter, position: int) -> Iterator[Bad]:
    at = f"tasks[{position}]"
    wanted = f"{chapter.number}.{position}"
    if task.id != wanted:
        yield Bad(f"{at}.id", f"is {task.id!r}; ids count up in order, so this one is {wanted!r}.")
    if task.tag != wanted:
        yield Bad(f"{at}.tag", f"is {task.tag!r}; the tests of this task are tagged {wanted!r}.")
    if task.file not in chapter.files:
        yield Bad(f"{at}.file", f"is {task.file!r}, which `files` does not list.")
    if len(task.hints) != HINTS_PER_TASK:
        takes = f"it takes {HINTS_PER_TASK}: a question, a nudge, nearly there."
        yield Bad(f"{at}.hints", f"holds {len(task.hints)}; {takes}")
    first = f"task-{chapter.number}-{position}"
    if task.sections[:1] != (first,):
        yield Bad(f"{at}.sections", f"is {list(task.sections)}; the first one is {first!r}.")
    for name in task.sections[1:]:
        if not re.fullmatch(f"{first}[b-z]", name):
            further = f"further places are {first + 'b'!r} and so on."
            yield Bad(f"{at}.sections", f"holds {name!r}; {further}")


def _bad_checkpoint(chapter: Chapter, raw: dict[str, Any]) -> Iterator[Bad]:
    checkpoint = chapter.checkpoint
    for position, count in enumerate(checkpoint.counts, start=1):
        at = f"checkpoint.counts[{position}]"
        yield from _bad_count(count, chapter, raw["counts"][position - 1], at)
    # Without a server there is nothing to put under a load: such a chapter has counts and, where
    # its programs time themselves, [checkpoint.timing].
    has_speed = any(each.contract for each in chapter.programs) or "contenders" in raw
    for key, table in (("contenders", "[[checkpoint.contenders]]"), ("load", "[checkpoint.load]")):
        if has_speed and key not in raw:
            yield Bad(f"checkpoint.{key}", f"is missing; servers are compared in {table}.")
    if checkpoint.load and not has_speed:
        yield Bad("checkpoint.load", "is for servers, and there is no [[checkpoint.contenders]].")
    if has_speed:
        yield from _bad_contenders(checkpoint.contenders, chapter, "checkpoint.contenders")
    if checkpoint.timing:
        contenders = checkpoint.timing.contenders
        yield from _bad_contenders(contenders, chapter, "checkpoint.timing.contenders")


def _bad_count(count: Count, chapter: Chapter, raw: dict[str, Any], at: str) -> Iterator[Bad]:
    programs = [program.name for program in chapter.programs]
    if count.program not in programs:
        allowed = ", ".join(programs)
        yield Bad(f"{at}.program", f"is {count.program!r}; it has to be one of {allowed}.")
    takes = BY_METRIC[count.metric]
    for key in ("at_least", "at_most", "why", *takes):
        if key not in raw and key not in _OPTIONAL:
            wanted, _ = _wanted(_hints(Count)[key], "")
            yield Bad(f"{at}.{key}", f"is missing; it has to {wanted}.")
    for key in sorted({key for keys in BY_METRIC.values() for key in keys}.difference(takes)):
        if key in raw:
            of_this = f"with {count.metric} it takes {', '.join(takes)}."
            yield Bad(f"{at}.{key}", f"is not a key of this table; {of_this}")
    if count.at_least > count.at_most:
        yield Bad(f"{at}.at_least", f"is {count.at_least}, more than at_most {count.at_most}.")


def _bad_contenders(contenders: Sequence[Contender], chapter: Chapter, at: str) -> Iterator[Bad]:
    for position, each in enumerate(contenders, start=1):
        if each.chapter > chapter.number:
            problem = f"is {each.chapter!r}, which comes after this chapter."
            yield Bad(f"{at}[{position}].chapter", problem)
    if sum(contender.baseline for contender in contenders) != 1:
        yield Bad(at, "exactly one of them has to say baseline = true.")


def read_stated(
    file: Path, table: type[T], inconsistent: Callable[[T, dict[str, Any]], Iterator[Bad]]
) -> T:
    """Reads a TOML file as `table` states it; a CourseError says the first thing that is wrong."""
    try:
        raw = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CourseError(f"{relative(file)} is missing.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CourseError(f"{relative(file)} is not valid TOML: {error}.") from error
    try:
        stated = _schema(table).validate_python(raw)
        bad = next(chain(inconsistent(stated, raw), _unknown_keys(table, raw)), None)
    except ValidationError as error:
        bad = _off_schema(error.errors()[0], raw, table)
    if bad:
        raise CourseError(f"{relative(file)}: {bad.key}: {bad.problem}")
    return stated


def load_chapter(path: Path) -> Chapter:
    """Reads one chapter from its folder under solutions/, or from the chapter.toml in there."""
    file = path / "chapter.toml" if path.is_dir() else path
    if not file.is_file():
        raise CourseError(f"{relative(file)} is missing; every chapter has one.")

    def chapter_of(stated: _Stated) -> Chapter:
        return Chapter(**vars(stated), root=file.resolve().parents[2])

    stated = read_stated(
        file, _Stated, lambda seen, raw: _inconsistent(chapter_of(seen), raw, file.parent.name)
    )
    chapter = chapter_of(stated)
    counts = tuple(
        replace(each, requests=each.requests or each.operations)
        for each in chapter.checkpoint.counts
    )
    return replace(chapter, checkpoint=replace(chapter.checkpoint, counts=counts))


@cache
def _schema(table: type[T]) -> TypeAdapter[T]:
    return TypeAdapter(table)


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
