# SPDX-License-Identifier: MIT
"""The catalogue of mistakes, tests/mistakes/NN.K-what-went-wrong.patch, and its proof.

A patch begins with its entry in the catalogue, and goes on with a diff against solutions/:

    # task: 01.2
    # mistake: takes the return value of send for a promise that all was sent
    # caught-by: 01.2 a short send is continued where it stopped
    # says: fewer bytes than were sent
    --- a/solutions/01-blocking-echo/echo.hpp
    +++ b/solutions/01-blocking-echo/echo.hpp

The mistake is made in a copy of the solution; the named test must then be red and its output must
hold the phrase. A crash is red; a test that runs into its timeout is not: a student would wait for
it without learning why. `# under: asan` asks for a build that finds misuse of memory.
"""

from __future__ import annotations

import re
import shutil
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from course_tool import builds, console
from course_tool.chapters import Chapter, all_chapters
from course_tool.ctests import TestResult, run_tests
from course_tool.errors import CourseError
from course_tool.paths import TESTS, relative
from course_tool.processes import run
from course_tool.verify.cases import programs_of, target_of, targets_of_cases, test_files
from course_tool.verify.outcome import Context, Outcome
from course_tool.verify.solutions import NOTHING_SKIPPED, SANITIZED
from course_tool.verify.trees import WORK, BuildFolder, Tree, solution_texts

CATALOGUE = TESTS / "mistakes"
REQUIRED = ("task", "mistake", "caught-by", "says")
OPTIONAL = ("under",)
PHRASE_LETTERS_MIN = 8

_ENTRY = re.compile(r"# (?P<key>[a-z-]+): (?P<value>.*\S)\s*$")
_PATCHED = re.compile(r"^(?:---|\+\+\+) (?:[ab]/)?(?P<path>[^\t\n]+)", re.MULTILINE)


@dataclass(frozen=True)
class Mistake:
    file: Path
    task: str
    sentence: str
    caught_by: str  # the name of the test that must go red
    says: str  # what its output must hold
    under: str  # "" or "asan"

    @property
    def name(self) -> str:
        return self.file.stem


def read_mistake(file: Path) -> Mistake:
    """Reads the entry at the head of a patch; whatever is wrong with it is a CourseError."""
    entries: dict[str, str] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        if not line.startswith("# "):
            break
        found = _ENTRY.match(line)
        if not found or found["key"] not in REQUIRED + OPTIONAL:
            raise CourseError(
                f"{relative(file)}: {line!r} is no entry; the head takes "
                f"{', '.join(f'`# {key}:`' for key in REQUIRED + OPTIONAL)}."
            )
        entries[found["key"]] = found["value"]
    for key in REQUIRED:
        if key not in entries:
            raise CourseError(f"{relative(file)}: its head has no line `# {key}: …`.")
    return Mistake(
        file=file,
        task=entries["task"],
        sentence=entries["mistake"],
        caught_by=entries["caught-by"],
        says=entries["says"],
        under=entries.get("under", ""),
    )


def mistake_problems(mistake: Mistake, chapters: Sequence[Chapter]) -> list[str]:
    """What is wrong with an entry before anything is built."""
    name = relative(mistake.file)
    tasks = {task.id: chapter for chapter in chapters for task in chapter.tasks}
    if mistake.task not in tasks:
        return [f"{name}: `# task: {mistake.task}` is no task of any chapter.toml."]
    problems = []
    if not mistake.name.startswith(f"{mistake.task}-"):
        problems.append(f"{name}: the file's name has to begin with its task, {mistake.task}-.")
    if len(mistake.says) < PHRASE_LETTERS_MIN:
        problems.append(
            f"{name}: `# says: {mistake.says}` is found in any output; name a longer phrase."
        )
    if mistake.under not in ("", "asan"):
        problems.append(f"{name}: `# under: {mistake.under}` is unknown; it takes asan.")
    inside = f"solutions/{tasks[mistake.task].folder}/"
    for path in _PATCHED.findall(mistake.file.read_text(encoding="utf-8")):
        if not path.startswith(inside):
            problems.append(f"{name}: it changes {path}; a mistake is made in {inside} alone.")
    return list(dict.fromkeys(problems))


def tasks_without_mistake(chapters: Sequence[Chapter], mistakes: Sequence[Mistake]) -> list[str]:
    made = {mistake.task for mistake in mistakes}
    return [
        f"task {task.id} has no mistake in tests/mistakes/; write {task.id}-what-went-wrong.patch."
        for chapter in chapters
        for task in chapter.tasks
        if task.id not in made
    ]


def patched_texts(mistake: Mistake, chapter: Chapter, scratch: Path) -> dict[str, str]:
    """The solution with the mistake made in it; git apply takes no patch that does not fit."""
    shutil.rmtree(scratch, ignore_errors=True)
    folder = scratch / "solutions" / chapter.folder
    folder.mkdir(parents=True)
    for name, text in solution_texts(chapter).items():
        (folder / name).write_text(text, encoding="utf-8")
    # Without the ceiling git would find the clone around us and apply nothing, without a word.
    ceiling = {"GIT_CEILING_DIRECTORIES": str(scratch.parent)}
    applied = run(["git", "apply", mistake.file], timeout_s=30, cwd=scratch, env=ceiling)
    texts = {file.name: file.read_text(encoding="utf-8") for file in sorted(folder.iterdir())}
    if applied.returncode != 0 or texts == solution_texts(chapter):
        said = applied.stderr.strip().replace("\n", "; ") or "it changes nothing"
        raise CourseError(
            f"{relative(mistake.file)}: the patch does not fit the solution ({said}). "
            "Make it again against what the solution is now."
        )
    shutil.rmtree(scratch)
    return texts


class Laboratory:
    """Where solutions are spoiled: a tree that begins solved, and a build of it for each way."""

    def __init__(self, chapters: Sequence[Chapter], name: str = "mutants") -> None:
        self._name = name
        self.tree = Tree(name)
        self.tree.make()
        for chapter in chapters:
            self.tree.write_chapter(chapter, solution_texts(chapter))
        self._folders: dict[str, BuildFolder] = {}

    def folder(self, under: str = "") -> BuildFolder:
        if under not in self._folders:
            folder = BuildFolder(f"{self._name}-{under}" if under else self._name)
            preset, flags = ("student-asan", SANITIZED) if under == "asan" else ("student", "-Og")
            folder.configure(
                preset, self.tree.root, CMAKE_CXX_FLAGS_DEBUG=flags, COURSE_TESTS_ALONE="ON"
            )
            self._folders[under] = folder
        return self._folders[under]


def targets_for(mistake: Mistake, chapter: Chapter) -> list[str]:
    """What holds its test, and what that runs; if nothing does, all that there is."""
    of_test = targets_of_cases(chapter, lambda case: case.title == mistake.caught_by)
    return of_test or everything_of(chapter)


def everything_of(chapter: Chapter) -> list[str]:
    tests = [target_of(chapter, file) for file in test_files(chapter)]
    return [*programs_of(chapter), *tests]


def rounds_of(mistakes: Sequence[Mistake]) -> list[list[Mistake]]:
    """Mistakes that can be made at once: in one build, and no two in one chapter."""
    rounds: dict[tuple[str, int], list[Mistake]] = {}
    made: dict[tuple[str, str], int] = {}
    for mistake in sorted(mistakes, key=lambda each: each.name):
        place = (mistake.under, mistake.task[:2])
        turn = made.get(place, 0)
        made[place] = turn + 1
        rounds.setdefault((mistake.under, turn), []).append(mistake)
    return [rounds[key] for key in sorted(rounds)]


class Trial:
    """One round: each chapter with its mistake in it, built together and tested together."""

    def __init__(
        self,
        context: Context,
        laboratory: Laboratory,
        of_task: Mapping[str, Chapter],
        outcome: Outcome,
    ) -> None:
        self._context = context
        self._laboratory = laboratory
        self._of_task = of_task
        self._outcome = outcome

    def run(self, mistakes: Sequence[Mistake]) -> None:
        made = [mistake for mistake in mistakes if self._make(mistake)]
        folder = self._laboratory.folder(mistakes[0].under)
        built = self._build(folder, made)
        if not built:
            return
        pattern = "|".join(_cmake_regex(mistake.caught_by) for mistake in built)
        try:
            results = run_tests(folder.preset, name_regex=f"^({pattern})$", env=NOTHING_SKIPPED)
        except CourseError:  # none of the names is a test's
            results = []
        of_name = {result.name: result for result in results}
        for mistake in built:
            problem = self._judge(mistake, folder, of_name.get(mistake.caught_by))
            self._outcome.check(problem and f"{relative(mistake.file)}: {problem}")

    def _make(self, mistake: Mistake) -> bool:
        chapter = self._of_task[mistake.task]
        try:
            texts = patched_texts(mistake, chapter, WORK / "scratch" / mistake.name)
        except CourseError as error:
            self._outcome.failures.append(str(error))
            return False
        self._laboratory.tree.write_chapter(chapter, texts)
        return True

    def _build(self, folder: BuildFolder, mistakes: Sequence[Mistake]) -> list[Mistake]:
        """Those that compile; only if not all do, each is built alone, to know its error."""
        targets = {
            mistake: targets_for(mistake, self._of_task[mistake.task]) for mistake in mistakes
        }
        if folder.build([name for names in targets.values() for name in names]).returncode == 0:
            return list(mistakes)
        good = []
        for mistake in mistakes:
            finished = folder.build(targets[mistake])
            if finished.returncode == 0:
                good.append(mistake)
                continue
            self._outcome.failures.append(
                f"{relative(mistake.file)}: the mistake does not compile, so no test can find it: "
                f"{builds.build_failure(finished.stdout + finished.stderr)}"
            )
        return good

    def _judge(
        self, mistake: Mistake, folder: BuildFolder, result: TestResult | None
    ) -> str | None:
        if result is None:
            return (
                f"no test is called “{mistake.caught_by}”; `# caught-by:` is a test's whole name."
            )
        log = self._context.write_log(f"mistake-{mistake.name}", result.output)
        if result.status == "passed":
            return _who_else(mistake, self._of_task[mistake.task], folder)
        if result.status == "skipped":
            return f"“{mistake.caught_by}” was skipped: {result.output}"
        if result.status == "timeout":
            return (
                f"with this mistake “{mistake.caught_by}” hangs until its timeout; give the step "
                "that waits a deadline of its own, which says what did not come."
            )
        if mistake.says not in _one_line(result.output):
            return (
                f"“{mistake.caught_by}” is red, but its output lacks “{mistake.says}” (see {log})."
            )
        return None


def _who_else(mistake: Mistake, chapter: Chapter, folder: BuildFolder) -> str:
    """Its own test passed: looks for another one of the chapter that noticed."""
    folder.build(everything_of(chapter))
    results = run_tests(folder.preset, label=chapter.number, env=NOTHING_SKIPPED)
    red = [
        result.name
        for result in results
        if result.status not in ("passed", "skipped") and "contract" not in result.tags
    ]
    if red:
        return f"“{mistake.caught_by}” passed; “{red[0]}” noticed. Name that one."
    return "every test passed; the mistake goes unnoticed. Write a test that finds it."


def _one_line(output: str) -> str:
    """Catch2 wraps its messages at 80 columns; a phrase is looked for across the lines."""
    return " ".join(output.split())


def _cmake_regex(text: str) -> str:
    """CMake's regular expressions escape with a backslash, and only what is special to them."""
    return re.sub(r"([][().*+?|^$\\])", r"\\\1", text)


def read_catalogue(outcome: Outcome, folder: Path = CATALOGUE) -> list[Mistake]:
    """The entries that can be read; the others become failures."""
    mistakes = []
    for file in sorted(folder.glob("*.patch")):
        try:
            mistakes.append(read_mistake(file))
        except CourseError as error:
            outcome.failures.append(str(error))
    return mistakes


def prove_mistakes(context: Context) -> Outcome:
    outcome = Outcome("mistakes")
    chapters = all_chapters()
    catalogue = read_catalogue(outcome)
    outcome.fail_all(tasks_without_mistake(chapters, catalogue))
    problems = {mistake: mistake_problems(mistake, chapters) for mistake in catalogue}
    outcome.fail_all(sentence for each in problems.values() for sentence in each)
    rounds = rounds_of([mistake for mistake in catalogue if not problems[mistake]])
    for part in _try_all(context, chapters, rounds):
        outcome.proved += part.proved
        outcome.fail_all(part.failures)
    return outcome


def _try_all(
    context: Context, chapters: Sequence[Chapter], rounds: Sequence[list[Mistake]]
) -> list[Outcome]:
    """In two laboratories, so that one compiles while the tests of the other wait for deadlines.

    They take the rounds from both ends: those under a sanitizer, the last, need one build alone.
    """
    of_task = {task.id: chapter for chapter in chapters for task in chapter.tasks}
    left = deque(enumerate(rounds, start=1))

    def work(name: str, take: Callable[[], tuple[int, list[Mistake]]]) -> Outcome:
        outcome = Outcome("mistakes")
        with console.without_progress():
            trial = Trial(context, Laboratory(chapters, name), of_task, outcome)
            while True:
                try:
                    number, mistakes = take()
                except IndexError:
                    return outcome
                names = ", ".join(mistake.name for mistake in mistakes)
                context.step(f"round {number} of {len(rounds)}: {names}")
                trial.run(mistakes)

    with ThreadPoolExecutor(1) as pool:
        try:
            other = pool.submit(work, "mutants-2", left.popleft)
            return [work("mutants", left.pop), other.result()]
        finally:
            left.clear()  # interrupted: the other one ends with its round
