# SPDX-License-Identifier: MIT
"""`./course trace`: one's own run, checked, in words, and as a page to step through."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from course_tool import builds, console, paths
from course_tool.chapters import Chapter, Scenario, find_chapter
from course_tool.errors import CourseError
from course_tool.paths import DOCS
from course_tool.trace import events, figure, scenario
from course_tool.trace.drawing import Tokens, combine, draw, lay_out
from course_tool.trace.model import State, last_state

VIOLATIONS_SHOWN = 5
TEXT = ("e", "op", "flags", "depth")  # what two runs are compared by, beside the frames' functions
FRAMES = ("f", "by", "from", "to")


@dataclass(frozen=True)
class Traced:
    """One program's run, looked at."""

    name: str  # "07-ping_pong"
    args: Sequence[str]
    file: Path
    run: scenario.Run
    last: State


def trace(
    name: str, args: Sequence[str], *, solution: bool, compare: bool, as_text: bool
) -> int:
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


def can_trace(chapter: Chapter) -> bool:
    return bool(_scenarios(chapter))


def _scenarios(chapter: Chapter) -> tuple[Scenario, ...]:
    """Those of chapter.toml; else the server, if the chapter is about a ring or coroutines."""
    if chapter.trace or chapter.number < "05":
        return chapter.trace
    return tuple(Scenario(each.name) for each in chapter.programs if each.contract)[:1]


def _find(name: str, args: Sequence[str]) -> tuple[Chapter, tuple[Scenario, ...]]:
    number, _, program = name.partition(":")
    chapter = find_chapter(number)
    if program:
        return chapter, (Scenario(chapter.program(program).name, tuple(args)),)
    scenarios = _scenarios(chapter)
    if not scenarios:
        raise CourseError(
            f"Chapter {chapter.number} has neither a ring nor a coroutine of ours to record. "
            "Try ./course trace 05."
        )
    return chapter, tuple(replace(each, args=(*each.args, *args)) for each in scenarios)


def _record(chapter: Chapter, what: Scenario, whose: str, number: int) -> Traced:
    target = f"{chapter.number}-{what.program}"
    builds.build(f"{whose}-trace", [target])
    program = builds.program(f"{whose}-trace", target)
    name = target + (f"-{number}" if number > 1 else "")
    name += "-solution" if whose == "reference" else ""
    file = paths.STATE / "trace" / f"{name}.jsonl"
    echoes = chapter.program(what.program).contract
    clients = scenario.Clients(says=what.says) if echoes or what.says else None
    run = scenario.run(program, what.args, file, clients)
    last = last_state(run.recording.events, echoes)
    if not run.trouble and not _is_full(run):
        last.close()
    else:
        last.check_all_owed()
    return Traced(name, what.args, file, run, last)


def _is_full(run: scenario.Run) -> bool:
    return bool(run.recording.events) and run.recording.events[-1]["e"] == events.FULL


def _report(traced: Traced) -> bool:
    """Prints what was found, and writes the page. True if something is wrong."""
    last, run = traced.last, traced.run
    console.out.print(_summary(traced), style="bold")
    for violation in last.violations[:VIOLATIONS_SHOWN]:
        console.out.print(f"  {violation.as_sentence()}", style="red")
    if len(last.violations) > VIOLATIONS_SHOWN:
        console.out.print(f"  … and {len(last.violations) - VIOLATIONS_SHOWN} more, on the page.")
    if run.trouble:
        console.out.print(f"  {run.trouble}", style="red")
        for final in run.recording.events[-1:]:
            said = events.describe(final, last.name)
            console.out.print(f"  The last that was recorded, step {final['n']}: {said}")
    console.out.print(f"  Step through it: file://{_write_page(traced)}")
    return bool(run.trouble or last.violations)


def _summary(traced: Traced) -> str:
    last = traced.last
    what = (
        events.many(last.step, "event"),
        events.many(last.enters, "enter"),
        events.many(last.sqes, "SQE"),
        events.many(last.cqes, "CQE"),
        f"{len(last.in_flight())} in flight at the end",
    )
    return f"{' '.join([traced.name, *traced.args])}: {', '.join(what)}"


def _print_events(traced: Traced) -> None:
    wrong: dict[int, list[str]] = {}
    for violation in traced.last.violations:
        wrong.setdefault(violation.step, []).append(violation.sentence)
    for event in traced.run.recording.events:
        said = events.describe(event, traced.last.name)
        console.out.print(f"{event['n']:5}  {'  ' * event.get('depth', 0)}{said}")
        for sentence in wrong.get(event["n"], ()):
            console.out.print(f"       ✗ {sentence}", style="red")


def _compare(mine: Traced, reference: Traced) -> None:
    """Says where the run leaves the solution's way."""
    here, there = mine.run.recording.events, reference.run.recording.events
    for one, other in zip(here, there, strict=False):
        if _key(one, mine.last) != _key(other, reference.last):
            console.out.print(f"  Yours and the solution differ from step {one['n']} on:")
            console.out.print(f"    yours:    {events.describe(one, mine.last.name)}")
            console.out.print(f"    solution: {events.describe(other, reference.last.name)}")
            return
    if len(here) == len(there):
        console.out.print("  The solution does the same, step by step.")
        return
    longer, rest = (mine, here) if len(here) > len(there) else (reference, there)
    step = min(len(here), len(there))
    whose = "yours goes on" if longer is mine else "the solution goes on"
    said = events.describe(rest[step], longer.last.name)
    console.out.print(f"  The same up to step {step}; then only {whose}: {said}")


def _key(event: events.Event, state: State) -> tuple[Any, ...]:
    """What is the same in two runs of the same code: no numbers, no lines."""
    whose = events.frame_in(event.get("user", ""))
    frames = (state.name(event[key]) for key in FRAMES if event.get(key))
    return (*frames, state.name(whose) if whose else "", *(event.get(key) for key in TEXT))


PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width"><style>
html {{ font-size: 125%; }} body {{ margin: 1rem auto; max-width: 35rem; }}
{css}</style></head>
<body data-md-color-scheme="default" class="md-typeset"><script>
if (matchMedia("(prefers-color-scheme: dark)").matches)
  document.body.dataset.mdColorScheme = "slate";
</script>
<h1>{title}</h1><p>{summary}</p><ul>{wrong}</ul>
{figure}<script>{script}</script></body></html>
"""
PAGE_CSS = (
    "body { background: var(--md-default-bg-color); color: var(--md-default-fg-color); "
    "font-family: var(--md-text-font), sans-serif; } ul { color: var(--red); }"
)


def _write_page(traced: Traced) -> Path:
    """One file, with all that it needs."""
    assets = DOCS / "assets"
    css = "\n".join((assets / f"{name}.css").read_text("utf-8") for name in ("site", "figures"))
    wrong = "".join(
        f'<li><a href="#run.{each.step}">Step {each.step}</a>: {html.escape(each.sentence)}.</li>'
        for each in traced.last.violations
    )
    file = traced.file.with_suffix(".html")
    page = PAGE.format(
        title=html.escape(traced.name),
        css=css + PAGE_CSS,
        summary=html.escape(_summary(traced)),
        wrong=wrong,
        figure=figure.element(_all_steps(traced)),
        script=(assets / "trace.js").read_text("utf-8"),
    )
    file.write_text(page, encoding="utf-8")
    return file


def _all_steps(traced: Traced) -> figure.Made:
    recorded = traced.run.recording.events
    layout = lay_out(recorded)
    tokens, state = Tokens(), State()
    wrong = {each.step: each.sentence for each in traced.last.violations}
    pictures, captions = [], []
    for event in recorded:
        state.apply(event)
        pictures.append(draw(state, event, layout, tokens))
        said = html.escape(events.describe(event, state.name))
        captions.append((said, html.escape(wrong.get(event["n"], ""))))
    title = f"{traced.name}, recorded"
    return figure.Made("run", combine(pictures), captions, 1, title, "The run, step by step.")
