# SPDX-License-Identifier: MIT
"""`./course trace`: one's own run, checked, in words, and as a page to step through."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from course_tool import builds, console, paths
from course_tool.chapters import Chapter, Scenario, find_chapter
from course_tool.errors import CourseError
from course_tool.paths import DOCS
from course_tool.trace import events, figure, scenario
from course_tool.trace.drawing import Drawing, Layout
from course_tool.trace.model import State, last_state
from course_tool.verify.dependencies import included

VIOLATIONS_SHOWN = 5
COMPARED = ("e", "op", "flags", "depth")  # of two runs' events, beside the frames' functions


@dataclass(frozen=True)
class Traced:
    """One program's run, looked at."""

    name: str  # "07-ping_pong"
    args: Sequence[str]
    file: Path
    recorded: Sequence[events.Event]
    trouble: str  # as scenario.run() says it
    last: State

    def describe(self, event: events.Event) -> str:
        return events.describe(event, self.last.name)


def trace(name: str, args: Sequence[str], *, solution: bool, compare: bool, as_text: bool) -> int:
    """Records every scenario of a chapter, or one program of it; 1 if something is wrong in one."""
    chapter, scenarios = _find(name, args)
    wrong = False
    for number, each in enumerate(scenarios, start=1):
        traced = _record(chapter, each, "reference" if solution else "student", number)
        if as_text:
            _print_events(traced)
        wrong |= _report(traced)
        if compare:
            _compare(traced, _record(chapter, each, "reference", number))
    return 1 if wrong else 0


def can_trace(chapter: Chapter, key: str) -> bool:
    """Whether what a chapter records by itself has the code of a task in it; what is of no task,
    such as the echo contract, is about the whole program."""
    files = {f"solutions/{chapter.folder}/{task.file}" for task in chapter.tasks if task.id == key}
    return any(files.issubset(_made_of(chapter, each)) for each in _scenarios(chapter))


def _made_of(chapter: Chapter, what: Scenario) -> list[str]:
    """The source of its program, which is called like it, and all headers of that."""
    return included(f"solutions/{chapter.folder}/{what.program.replace('-', '_')}.cpp")


def _scenarios(chapter: Chapter) -> tuple[Scenario, ...]:
    """Those of chapter.toml; else the server, if the chapter is about a ring or coroutines."""
    if chapter.trace or chapter.number < "05":
        return chapter.trace
    return tuple(Scenario(each.name) for each in chapter.programs if each.contract)[:1]


def _find(name: str, args: Sequence[str]) -> tuple[Chapter, Sequence[Scenario]]:
    number, _, program = name.partition(":")
    chapter = find_chapter(number)
    scenarios = (Scenario(chapter.program(program).name),) if program else _scenarios(chapter)
    if not scenarios:
        raise CourseError(
            f"Chapter {chapter.number} has neither a ring nor a coroutine of ours to record. "
            "Try ./course trace 05."
        )
    return chapter, [replace(each, args=(*each.args, *args)) for each in scenarios]


def _record(chapter: Chapter, what: Scenario, whose: str, number: int) -> Traced:
    target = f"{chapter.number}-{what.program}"
    builds.build(f"{whose}-trace", [target])
    program = builds.program(f"{whose}-trace", target)
    name = target + (f"-{number}" if number > 1 else "")
    name += "-solution" if whose == "reference" else ""
    file = paths.STATE / "trace" / f"{name}.jsonl"
    echoes = chapter.program(what.program).contract
    clients = scenario.Clients(says=what.says) if echoes or what.says else None
    recorded, trouble = scenario.run(program, what.args, file, clients)
    last = last_state(recorded, echoes)
    last.close(by_itself=not trouble)
    return Traced(name, what.args, file, recorded, trouble, last)


def _report(traced: Traced) -> bool:
    """Prints what was found, and writes the page. True if something is wrong."""
    violations = traced.last.violations
    console.out.print(_summary(traced), style="bold")
    for violation in violations[:VIOLATIONS_SHOWN]:
        console.out.print(f"  {violation.as_sentence()}", style="red")
    if len(violations) > VIOLATIONS_SHOWN:
        console.out.print(f"  … and {len(violations) - VIOLATIONS_SHOWN} more, on the page.")
    if traced.trouble:
        console.out.print(f"  {traced.trouble}", style="red")
        for final in traced.recorded[-1:]:
            said = f"step {final['n']}: {traced.describe(final)}"
            console.out.print(f"  The last that was recorded, {said}")
    console.out.print(f"  Step through it: file://{_write_page(traced)}")
    return bool(traced.trouble or violations)


def _summary(traced: Traced) -> str:
    last = traced.last
    what = (
        events.many(last.step, "event"),
        events.many(last.counts["enter"], "enter"),
        events.many(last.counts["sqe"], "SQE"),
        events.many(last.counts["cqe"], "CQE"),
        f"{len(last.in_flight())} in flight at the end",
    )
    return f"{' '.join([traced.name, *traced.args])}: {', '.join(what)}"


def _print_events(traced: Traced) -> None:
    """A line an event; with the thread and the ring, where there is more than one of them."""
    several = {
        word: field
        for word, field in (("thread", "th"), ("ring", "ring"))
        if len({each[field] for each in traced.recorded if field in each}) > 1
    }
    for event in traced.recorded:
        step = event["n"]
        where = ", ".join(f"{word} {event[at]}" for word, at in several.items() if at in event)
        deep = f"{where:18}" * bool(several) + "  " * event.get("depth", 0)
        console.out.print(f"{step:5}  {deep}{traced.describe(event)}")
        for violation in traced.last.violations:
            if violation.step == step:
                console.out.print(f"       ✗ {violation.sentence}", style="red")


def _compare(mine: Traced, reference: Traced) -> None:
    """Says where the run leaves the solution's way."""
    for step, (one, other) in enumerate(zip_longest(mine.recorded, reference.recorded)):
        if one is None or other is None:
            goes_on = "the solution goes on" if one is None else "yours goes on"
            said = reference.describe(other) if one is None else mine.describe(one)
            console.out.print(f"  The same up to step {step}; then only {goes_on}: {said}")
            return
        if _key(one, mine.last) != _key(other, reference.last):
            console.out.print(f"  Yours and the solution differ from step {one['n']} on:")
            console.out.print(f"    yours:    {mine.describe(one)}")
            console.out.print(f"    solution: {reference.describe(other)}")
            return
    console.out.print("  The solution does the same, step by step.")


def _key(event: events.Event, state: State) -> Sequence[Any]:
    """What is the same in two runs of the same code: no numbers, no lines."""
    whose = events.frame_in(event.get("user", ""))
    frames = (state.name(number) for number in map(event.get, events.FRAMES) if number)
    return (*frames, state.name(whose) if whose else "", *map(event.get, COMPARED))


PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width"><style>
html {{ font-size: 125%; }} body {{ margin: 1rem auto; max-width: 35rem; }}
{css}
body {{ background: var(--md-default-bg-color); color: var(--md-default-fg-color);
  font-family: var(--md-text-font), sans-serif; }} ul {{ color: var(--red); }}</style></head>
<body data-md-color-scheme="default" class="md-typeset"><script>
if (matchMedia("(prefers-color-scheme: dark)").matches)
  document.body.dataset.mdColorScheme = "slate";
</script>
<h1>{title}</h1><p>{summary}</p><ul>{wrong}</ul>
{figure}<script>{script}</script></body></html>
"""


def _write_page(traced: Traced) -> Path:
    """One file, with all that it needs."""
    assets = DOCS / "assets"
    wrong = "".join(
        f'<li><a href="#run.{each.step}">Step {each.step}</a>: {html.escape(each.sentence)}.</li>'
        for each in traced.last.violations
    )
    page = PAGE.format(
        title=html.escape(traced.name),
        css="\n".join((assets / f"{name}.css").read_text("utf-8") for name in ("site", "figures")),
        summary=html.escape(_summary(traced)),
        wrong=wrong,
        figure=figure.element(_all_steps(traced)),
        script=(assets / "trace.js").read_text("utf-8"),
    )
    file = traced.file.with_suffix(".html")
    file.write_text(page, encoding="utf-8")
    return file


def _all_steps(traced: Traced) -> Drawing:
    title, layout = f"{traced.name}, recorded", Layout(traced.recorded)
    drawing = Drawing("run", title, "The run, step by step.", 1, layout)
    wrong = {each.step: each.sentence for each in traced.last.violations}
    state = State()
    for event in traced.recorded:
        state.apply(event)
        said = events.describe(event, state.name)
        drawing.add(state, event, html.escape(said), html.escape(wrong.get(event["n"], "")))
    return drawing
