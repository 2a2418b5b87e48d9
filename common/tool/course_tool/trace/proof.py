# SPDX-License-Identifier: MIT
"""What `./course verify --all` proves of the pages' recordings: made anew, they still hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from course_tool import builds, console, syscalls
from course_tool.errors import CourseError
from course_tool.running import find_program
from course_tool.trace import figure, scenario
from course_tool.trace.events import Event, read
from course_tool.trace.model import last_state
from course_tool.verify.dependencies import of_program
from course_tool.verify.memory import Memory, of_files
from course_tool.verify.outcome import Context, Outcome
from course_tool.verify.trees import BuildFolder

PRESET = "reference-trace"
BY_CLANG = "07-ping-pong"  # enough for all that the coroutine tap takes for granted

Check = Callable[[figure.Figure, Path], str | None]


def build(names: Sequence[str]) -> None:
    """The solutions' programs that these figures show, all at once."""
    builds.build(PRESET, sorted({_target(figure.load(name)) for name in names}))


def record(
    chosen: figure.Figure, into: Path, before: Sequence[str | Path] = (),
    program: Path | None = None,
) -> Sequence[Event]:  # fmt: skip
    """Records the program that build() has built; it has to end as it should. What needs some luck
    to be seen, such as a short send, has three chances."""
    program = program or builds.program(PRESET, _target(chosen))
    for _ in range(3 if chosen.shows_violation else 1):
        recorded, trouble = scenario.run(program, chosen.args, into, chosen.clients, before)
        if last_state(recorded, echoes=True).violations:
            break
    if trouble and not chosen.shows_violation:
        raise CourseError(trouble)
    return recorded


def _target(chosen: figure.Figure) -> str:
    chapter, program = find_program(chosen.program)
    return f"{chapter.number}-{program.name}"


def prove_traces(context: Context) -> Outcome:
    """Each is recorded twice: as it is, and under strace, which counts what the recorder counts."""
    outcome = Outcome("recordings")
    folder = context.work / "traces"
    try:
        syscalls.require_strace()
        checks = [_changed, _miscounted]
    except CourseError as error:
        outcome.notes.append(f"nothing compares the enters with strace's: {error}")
        checks = [_changed]
    wanted = [(name, check) for name in figure.names() for check in checks]
    if builds.newest_clang():
        wanted.append((BY_CLANG, _differs_by_clang))
    else:
        outcome.notes.append("no Clang here to compile the recorder with")
    memory = Memory(context, "traces")

    def content(name: str, check: Check) -> tuple[str, ...]:
        own = of_files(f"docs/traces/{name}.")
        return check.__name__, own, of_program(_target(figure.load(name)))

    unknown = [each for each in wanted if not memory.holds(*content(*each))]
    memory.tell(outcome)
    if unknown:
        build([name for name, _ in unknown])
    with console.progress("Recording", total=len(unknown)) as steps:
        for name, check in unknown:
            steps.step(name)
            try:
                problem = check(figure.load(name), folder)
            except CourseError as error:
                problem = str(error)
            if problem is None:
                memory.remember(*content(name, check))
            outcome.check(problem and f"docs/traces/{name}.toml: {problem}")
    return outcome


def _changed(chosen: figure.Figure, folder: Path) -> str | None:
    fresh = record(chosen, folder / f"{chosen.name}.jsonl")
    if figure.gist(chosen, fresh) != figure.gist(chosen, read(chosen.recording)):
        return (
            "the recording is not what the code does by now; make it anew: "
            f".venv/bin/python docs/_hooks/traces.py {chosen.name}"
        )
    return _broken(chosen, fresh)


def _broken(chosen: figure.Figure, fresh: Sequence[Event]) -> str | None:
    figure.make(chosen, fresh)
    state = last_state(fresh, echoes=chosen.clients is not None and not chosen.clients.says)
    if chosen.shows_violation:
        return None if state.violations else "it shows no violation any more."
    state.close()
    return next((each.as_sentence() for each in state.violations), None)


def _miscounted(chosen: figure.Figure, folder: Path) -> str | None:
    with syscalls.counted() as (strace, calls):
        fresh = record(chosen, folder / f"{chosen.name}-counted.jsonl", strace)
    told, counted = last_state(fresh).counts["enter"], calls["io_uring_enter"]
    return None if told == counted else f"recorded are {told} enters, and strace counted {counted}."


def _differs_by_clang(chosen: figure.Figure, folder: Path) -> str | None:
    clang = BuildFolder("trace-clang")
    # By ld: gold would look for our taps in shared libraries, too.
    compiler = builds.newest_clang() or ""
    clang.configure(PRESET, CMAKE_CXX_COMPILER=compiler, CMAKE_EXE_LINKER_FLAGS="")
    built = clang.build([_target(chosen)])
    if built.returncode != 0:
        return builds.build_failure(built.stdout + built.stderr)
    program = clang.path / "bin" / _target(chosen)
    into = folder / f"{chosen.name}-clang.jsonl"
    return _broken(chosen, record(chosen, into, program=program))
