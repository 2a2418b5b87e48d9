# SPDX-License-Identifier: MIT
"""The commands of ./course: each finds what it is about, has the work done, and exits.

Modules of single commands are imported inside them, so that `./course status` starts at once.
"""

from __future__ import annotations

from copy import copy
from pathlib import Path
from typing import Annotated, Any

import typer


class _Commands(typer.core.TyperGroup):
    """Each of them takes --yes: the first that is run here may have to install what makes .venv."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command = super().get_command(ctx, cmd_name)
        if command and all(each.name != "yes" for each in command.params):
            options = super().get_command(ctx, "start").params
            unread = copy(next(each for each in options if each.name == "yes"))
            unread.expose_value, unread.hidden = False, True  # bootstrap.py has read it
            command.params.append(unread)
        return command


app = typer.Typer(
    cls=_Commands,
    help="Ring by Ring: build an io_uring HTTP server in C++20, one chapter at a time.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

ChapterArgument = Annotated[str, typer.Argument(help="A chapter, such as 05.", metavar="CHAPTER")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Ask no questions: the answer is yes.")]
Solution = Annotated[bool, typer.Option("--solution", help="Use the solution instead of yours.")]
Carry = Annotated[
    bool, typer.Option("--carry", help="Build on your own earlier chapters, not the reference.")
]
Sanitize = Annotated[
    bool, typer.Option("--sanitize", help="Build with AddressSanitizer and UBSan; slower.")
]
SanitizeThreads = Annotated[
    bool, typer.Option("--sanitize-threads", help="Build with ThreadSanitizer: finds data races.")
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Show all that red tests say.")]
OneTask = Annotated[
    str | None, typer.Option("--task", "-t", help="One task only, such as 05.2.", metavar="TASK")
]


@app.command()
def start(yes: Yes = False) -> None:
    """Set up and check this machine; show chapter 01's red tests.

    Installs what is missing and says what and why. Red tests are the starting point of a chapter.
    A second run takes seconds.

    \b
        ./course start
        ./course start --yes
    """
    from course_tool.start import set_up

    set_up(yes=yes)


@app.command()
def serve(
    port: Annotated[int, typer.Option(help="Port to listen on.", min=1, max=65535)] = 8000,
    by: Annotated[
        str | None,
        typer.Option(help="Let your own server of a chapter serve them.", metavar="CHAPTER"),
    ] = None,
    solution: Solution = False,
) -> None:
    """Serve the pages on http://127.0.0.1:8000, until Ctrl-C.

    \b
        ./course serve
        ./course serve --port 8080
        ./course serve --by 14
        ./course serve --by 14 --solution
    """
    from course_tool import serving

    if solution and not by:
        raise typer.BadParameter("it says whose server is meant: name a chapter with --by.")
    if by:
        raise typer.Exit(serving.serve_site_by(by, port, "reference" if solution else "student"))
    serving.serve_site(port)


@app.command()
def status() -> None:
    """Show what is done, red or not started, and the minutes left.

    \b
        ./course status
    """
    from course_tool.chapters import all_chapters
    from course_tool.state import load
    from course_tool.status import progress_of, show

    remembered = load()
    show([progress_of(chapter, remembered) for chapter in all_chapters()])


@app.command()
def test(
    chapter: ChapterArgument,
    task: OneTask = None,
    solution: Solution = False,
    carry: Carry = False,
    sanitize: Sanitize = False,
    sanitize_threads: SanitizeThreads = False,
    verbose: Verbose = False,
) -> None:
    """Build a chapter and run its tests.

    The exit code is 0 only if all of them are green.

    \b
        ./course test 05
        ./course test 05 -t 05.2
        ./course test 05 --solution
        ./course test 05 --sanitize
        ./course test 06 --sanitize-threads
    """
    from course_tool.testing import find_request, preset_for, run_chapter

    preset = preset_for(solution, carry, sanitize, sanitize_threads)
    raise typer.Exit(run_chapter(find_request(chapter, task, preset, verbose)))


@app.command()
def watch(
    chapter: ChapterArgument,
    task: OneTask = None,
    solution: Solution = False,
    carry: Carry = False,
    sanitize: Sanitize = False,
    sanitize_threads: SanitizeThreads = False,
    verbose: Verbose = False,
) -> None:
    """Run a chapter's tests at every save, until Ctrl-C.

    \b
        ./course watch 05
        ./course watch 05 -t 05.2
    """
    from course_tool.testing import find_request, preset_for
    from course_tool.watching import watch_chapter

    preset = preset_for(solution, carry, sanitize, sanitize_threads)
    watch_chapter(find_request(chapter, task, preset, verbose))


@app.command()
def run(
    program: Annotated[
        str,
        typer.Argument(
            help="A chapter's server, 05, or a program of it, 05:client.", metavar="PROGRAM"
        ),
    ],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(help="What the program itself gets.", metavar="ARGS"),
    ] = None,
    solution: Solution = False,
    count_syscalls: Annotated[
        bool, typer.Option("--count-syscalls", help="Print its system calls when it has ended.")
    ] = False,
) -> None:
    """Build and run a chapter's program on this terminal.

    The exit code is the program's.

    \b
        ./course run 01 -- --port 9000
        ./course run 01:client -- --port 9000 --requests 1000
        ./course run 02 --solution --count-syscalls -- --port 9000
    """
    from course_tool import running

    execute = running.count_program if count_syscalls else running.run_program
    raise typer.Exit(execute(program, arguments or [], "reference" if solution else "student"))


@app.command()
def trace(
    program: Annotated[
        str,
        typer.Argument(help="A chapter, 07, or a program of it, 07:ping_pong.", metavar="PROGRAM"),
    ],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(help="What the program itself gets.", metavar="ARGS"),
    ] = None,
    solution: Solution = False,
    compare: Annotated[
        bool, typer.Option("--compare", help="Say where the run leaves the solution's way.")
    ] = False,
    text: Annotated[bool, typer.Option("--text", help="Print every step.")] = False,
) -> None:
    """Record a run of your program, and step through it.

    A server gets two clients. The command checks frames, queues and buffers. The exit code is 1 if
    a rule is broken, or if the program does not end as it should.

    \b
        ./course trace 05
        ./course trace 07:ping_pong -- --rounds 1
        ./course trace 07 --compare
    """
    from course_tool.trace import commands

    raise typer.Exit(
        commands.trace(
            program, arguments or [], solution=solution, compare=compare, as_text=text
        )
    )


@app.command()
def hint(
    task: Annotated[
        str, typer.Argument(help="A task, 05.2, or a chapter: its first open task.", metavar="TASK")
    ],
    again: Annotated[bool, typer.Option("--again", help="Repeat the last one.")] = False,
    all_: Annotated[bool, typer.Option("--all", help="Show all three.")] = False,
) -> None:
    """Show a task's next hint.

    The first is a question, the second a nudge, and the third nearly the answer.

    \b
        ./course hint 05.2
        ./course hint 05
        ./course hint 05.2 --again
    """
    from course_tool.hints import Which, show_hint

    show_hint(task, Which.ALL if all_ else Which.AGAIN if again else Which.NEXT)


@app.command()
def diff(chapter: ChapterArgument, yes: Yes = False) -> None:
    """Compare your chapter with its solution.

    Asks first if the chapter is not green: the diff shows all of the solution.

    \b
        ./course diff 05
        ./course diff 05 --yes
    """
    from course_tool.diffing import show_diff

    show_diff(chapter, yes=yes)


@app.command()
def reset(chapter: ChapterArgument, task: OneTask = None) -> None:
    """Put a chapter back to its starter.

    Your version is kept aside, and the command says where. Files that you added stay.

    \b
        ./course reset 05
        ./course reset 05 -t 05.2
    """
    from course_tool.resetting import reset_and_show

    reset_and_show(chapter, task)


@app.command()
def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="A chapter, such as 05: its checkpoint.", metavar="CHAPTER | CLAIM…"),
    ] = None,
    ladder: Annotated[bool, typer.Option("--ladder", help="Every chapter's server.")] = False,
    matrix: Annotated[bool, typer.Option("--matrix", help="Clients by message sizes.")] = False,
    claims: Annotated[bool, typer.Option("--claims", help="The claims about io_uring.")] = False,
    solution: Solution = False,
    rounds: Annotated[int | None, typer.Option(help="How often each server is measured.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Tiny: the figures mean nothing.")] = False,
    out: Annotated[Path | None, typer.Option(help="A folder for JSON, table and plot.")] = None,
    json: Annotated[Path | None, typer.Option(help="One more file for what was found.")] = None,
    yes: Yes = False,
) -> None:
    """Run a chapter's checkpoint, or another benchmark.

    Counts are asserted: the exit code is 1 if one is out of its bounds. Speed is shown.

    \b
        ./course bench 05
        ./course bench 05 --solution
        ./course bench --ladder
        ./course bench --matrix --rounds 5
        ./course bench --claims poll-before-recv
    """
    from course_tool.bench import commands
    from course_tool.bench.options import Options

    named = tuple(names or ()) if claims else ()
    chapter = None if claims else " ".join(names or ()) or None
    options = Options(
        chapter, ladder, matrix, claims, solution, rounds, quick, out, named, json
    )
    raise typer.Exit(commands.run(options, yes=yes))


@app.command()
def fuzz(
    chapter: ChapterArgument,
    seconds: Annotated[int, typer.Option(help="How long.", min=1, max=86400)] = 60,
    solution: Solution = False,
    yes: Yes = False,
) -> None:
    """Give a chapter's parser bytes that nobody has thought of.

    Clang's libFuzzer makes them, guided by what they reach. The exit code is 1 if an input was
    found that breaks a promise; it is kept, and the command to see it again is printed.

    \b
        ./course fuzz 13 --seconds 60
        ./course fuzz 13 --solution
    """
    from course_tool import fuzzing

    raise typer.Exit(fuzzing.fuzz(chapter, seconds, solution=solution, yes=yes))


@app.command()
def soak(
    chapter: ChapterArgument,
    seconds: Annotated[int, typer.Option(help="How long.", min=4, max=86400)] = 60,
    solution: Solution = False,
) -> None:
    """Load an HTTP server beside clients that misbehave.

    They reset, stall and half-close, at every place of a request.

    The exit code is 1 if its memory or its descriptors are not flat, or if a client that kept to
    the rules met with an error.

    \b
        ./course soak 14
        ./course soak 14 --solution --seconds 3600
    """
    from course_tool import soaking

    preset = "release" if solution else "student-release"
    raise typer.Exit(soaking.soak(chapter, seconds, preset))


@app.command("doctor")
def doctor_(
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Say what this machine can do, chapter by chapter.

    The command tries every feature that the course needs. If one is missing, it prints what to do.

    \b
        ./course doctor
        ./course doctor --json
    """
    from course_tool import doctor

    raise typer.Exit(doctor.run_doctor(as_json=json))


@app.command()
def grade(
    out: Annotated[Path, typer.Option(help="Where the JSON goes; JUnit's XML beside it.")],
    chapters: Annotated[
        str, typer.Option(help="Such as 01,02; all if left out.", metavar="LIST")
    ] = "",
    course: Annotated[
        str, typer.Option(help="The commit whose tests and tools grade.", metavar="COMMIT")
    ] = "HEAD",
    class_: Annotated[
        Path | None,
        typer.Option("--class", help="A folder of clones, one a student; --out is then a CSV."),
    ] = None,
    yes: Yes = False,
) -> None:
    """Grade chapters/ with the course's own tests, for teachers and CI.

    Everything but chapters/ comes from a commit, so that edits to the tests do not count. The exit
    code is 0 if everything was graded, whatever the points. A whole class can be stopped: the next
    run goes on.

    \b
        ./course grade --out result.json
        ./course grade --out result.json --chapters 01,02 --course origin/main
        ./course grade --class handed-in/ --out grades.csv --chapters 05
    """
    from course_tool import grading

    numbers = [each for each in chapters.split(",") if each]
    if class_:
        raise typer.Exit(grading.grade_class(class_, out, numbers, course, yes=yes))
    raise typer.Exit(grading.grade(out, numbers, course, yes=yes))


@app.command()
def sync(
    check: Annotated[bool, typer.Option("--check", help="Change nothing; 1 if it would.")] = False,
) -> None:
    """For authors: make chapters/ again from solutions/.

    \b
        ./course sync
        ./course sync --check
    """
    from course_tool.syncing import sync as sync_chapters

    raise typer.Exit(sync_chapters(check=check))


@app.command()
def verify(
    all_: Annotated[bool, typer.Option("--all", help="Everything: what CI proves.")] = False,
    only: Annotated[
        list[str] | None, typer.Option(help="One item only; may be given again.", metavar="ITEM")
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="Name the items and their claims.")] = False,
    fail_fast: Annotated[bool, typer.Option("--fail-fast", help="Stop at a failure.")] = False,
    student: Annotated[
        bool, typer.Option("--student", help="chapters/ holds work: say so, do not count it.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Prove the course.

    Checks the starters, the solutions, the tool and the site, which takes minutes. With --all it
    also checks the sanitizers, each task alone, the mistakes, the pages in a browser and the style.
    A table says what held, and what no check looked at.

    \b
        ./course verify
        ./course verify --all
        ./course verify --only style --only marks
        ./course verify --list
    """
    from course_tool import packages
    from course_tool.verify import run as proofs

    if list_:
        raise typer.Exit(proofs.list_items())
    packages.ensure("verify --all" if all_ or only else "verify", yes)
    options = proofs.VerifyOptions(all_, tuple(only or ()), fail_fast, student)
    raise typer.Exit(proofs.run_verify(options))


@app.command("grade-copy", hidden=True)
def grade_copy(
    out: Annotated[Path, typer.Option()],
    commit: Annotated[str, typer.Option()],
    class_: Annotated[Path | None, typer.Option("--class")] = None,
    chapters: Annotated[list[str] | None, typer.Argument()] = None,
) -> None:
    """What `grade` runs inside the copy that it makes."""
    from course_tool import class_grading, grading

    if class_:
        class_grading.grade_students(class_, out, chapters or [], commit)
    else:
        grading.grade_copy(out, chapters or [], commit)
