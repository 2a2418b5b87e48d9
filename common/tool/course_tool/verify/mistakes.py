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
hold the phrase. A crash is red; a test that hangs until it is stopped is not, however short that
limit: a student would wait for it without learning why. So each step of a test that a mistake can
make wait has its own deadline. `# under: asan` asks for a build that finds misuse of memory, and
`# under: tsan` for one that finds data races.
"""

from __future__ import annotations

import functools
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from course_tool import builds
from course_tool.chapters import Chapter, all_chapters
from course_tool.errors import CourseError
from course_tool.paths import TESTS, relative
from course_tool.processes import run
from course_tool.verify.cases import Case
from course_tool.verify.dependencies import of_cases
from course_tool.verify.memory import Memory
from course_tool.verify.outcome import Context, Outcome, check_all
from course_tool.verify.trees import WORK, solution_texts
from course_tool.verify.variants import Origin, Variant, origin

CATALOGUE = TESTS / "mistakes"
REQUIRED = ("task", "mistake", "caught-by", "says")
OPTIONAL = ("under",)
SANITIZERS = ("asan", "tsan")
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
    under: str  # "" or one of SANITIZERS

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
    if mistake.under not in ("", *SANITIZERS):
        known = " or ".join(SANITIZERS)
        problems.append(f"{name}: `# under: {mistake.under}` is unknown; it takes {known}.")
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


def judge(context: Context, mistake: Mistake, variant: Variant, beside: Origin) -> str | None:
    """What is wrong with a mistake, once it is made; None if its test is red and says why."""
    failed = beside.make(variant)
    if failed:
        return (
            "the mistake does not compile, so no test can find it: "
            f"{builds.build_failure(failed.stdout + failed.stderr)}"
        )
    [result] = variant.run()
    log = context.write_log(f"mistake-{mistake.name}", result.output)
    if result.status == "timeout":
        return (
            f"with this mistake “{mistake.caught_by}” hangs until it is stopped; give the step "
            "that waits a deadline of its own, which says what did not come."
        )
    if result.status == "skipped":
        return f"“{mistake.caught_by}” was skipped (see {log})."
    if result.status == "passed":
        return _who_else(mistake, variant, beside)
    if mistake.says not in result.output:
        return f"“{mistake.caught_by}” is red, but its output lacks “{mistake.says}” (see {log})."
    return None


def _who_else(mistake: Mistake, variant: Variant, beside: Origin) -> str:
    """Its own test passed: looks for another one of the chapter that noticed."""
    every = replace(variant, wanted=lambda case: True)
    beside.build_shared([every])
    results = [] if beside.make(every) else every.run()
    red = [each.name for each in results if each.status not in ("passed", "skipped")]
    if red:
        return f"“{mistake.caught_by}” passed; “{red[0]}” noticed. Name that one."
    return "every test passed; the mistake goes unnoticed. Write a test that finds it."


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
    of_task = {task.id: chapter for chapter in chapters for task in chapter.tasks}
    catalogue = read_catalogue(outcome)
    outcome.fail_all(tasks_without_mistake(chapters, catalogue))
    problems = {mistake: mistake_problems(mistake, chapters) for mistake in catalogue}
    outcome.fail_all(sentence for each in problems.values() for sentence in each)
    memory = Memory(context, "mistakes")

    @functools.cache
    def content(mistake: Mistake) -> tuple[str, str]:
        cases = of_cases(of_task[mistake.task], functools.partial(_is_caught_by, mistake))
        return mistake.file.read_text(encoding="utf-8"), cases

    sound = [mistake for mistake in catalogue if not problems[mistake]]
    unknown = [mistake for mistake in sound if not memory.holds(*content(mistake))]
    memory.tell(outcome)
    made = _made_of(unknown, of_task, outcome)
    beside = {under: origin(under) for under in {mistake.under for mistake in made}}
    for under, build in beside.items():
        build.build_shared(made[mistake] for mistake in made if mistake.under == under)

    def problem(mistake: Mistake) -> str | None:
        found = judge(context, mistake, made[mistake], beside[mistake.under])
        shutil.rmtree(made[mistake].folder)
        if found is None:
            memory.remember(*content(mistake))
        return found and f"{relative(mistake.file)}: {found}"

    check_all(outcome, "Making mistakes", list(made), problem)
    return outcome


def _made_of(
    mistakes: Sequence[Mistake], of_task: Mapping[str, Chapter], outcome: Outcome
) -> dict[Mistake, Variant]:
    """The solutions with the mistakes in them; one that cannot be made is a failure."""
    made = {}
    for mistake in mistakes:
        chapter = of_task[mistake.task]
        try:
            texts = patched_texts(mistake, chapter, WORK / "scratch" / mistake.name)
        except CourseError as error:
            outcome.failures.append(str(error))
            continue
        variant = Variant(mistake.name, chapter, texts, functools.partial(_is_caught_by, mistake))
        if variant.files:
            made[mistake] = variant
        else:
            outcome.failures.append(
                f"{relative(mistake.file)}: no test is called “{mistake.caught_by}”; "
                "`# caught-by:` is a test's whole name."
            )
    return made


def _is_caught_by(mistake: Mistake, case: Case) -> bool:
    return case.title == mistake.caught_by
