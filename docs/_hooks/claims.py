# SPDX-License-Identifier: MIT
"""The claims page: what docs/claims.json says of each claim of docs/claims.toml."""

from __future__ import annotations

import html
import math

from course_tool.bench import claims
from course_tool.bench.claims import Finding
from course_tool.errors import CourseError

LEFT, RIGHT, ROW, TOP = 330, 700, 34, 60  # of the figure, in its units
LEAST, MOST = 0.2, 4.0  # of the ratios that it shows
CAPTION = (
    "Each claim about a ratio, with a dot for each round. The claim predicts that the dots lie in "
    "the shaded part. At 1× both contenders are equal. A dot at the edge stands for a ratio "
    "beyond the edge."
)


def made() -> str:
    """{{ claims_made }}: where and when the numbers of the page come from."""
    found = claims.read()
    machine, build = found.machine, found.builds[0]
    said = [
        f"{machine.cpu}, {machine.cores} CPUs, Linux {machine.kernel}; {machine.pinning}.",
        f"{build.compiler} {build.flags}, liburing {build.liburing}; {found.date[:10]}.",
    ]
    if machine.busy:
        share = round(machine.others_share * 100)
        said.append(f"Before the run, other programs used {share} % of the CPUs.")
    return " ".join(said)


def claim(name: str) -> str:
    """{{ claim("poll-before-recv") }}: the sentence, the verdict, the numbers, the command."""
    found = _finding(name)
    verdict = f"**{found.verdict[0].upper()}{found.verdict[1:]}.**"
    lines = [f"{verdict} {found.reason}".strip(), ""]
    lines += [f"- {each.name}: {each.text()}" for each in found.figures]
    lines += ["", " · ".join(filter(None, (found.work, f"`{found.command}`")))]
    title = html.escape(f"“{found.says}” ({found.source})", quote=True)
    box = [f'!!! belief "{title}"', "", *(f"    {each}" for each in lines), ""]
    return "\n".join([f'<span id="{name}"></span>', "", *box])


def _finding(name: str) -> Finding:
    for each in claims.read().findings:
        if each.id == name:
            return each
    raise CourseError(f"docs/claims.json has no claim {name!r}: ./course bench --claims makes it.")


def later() -> str:
    """{{ claims_later }}: what is not tested here, and why."""
    rows = [f"| {each.says} | {each.source} | {each.why} |" for each in claims.load().later]
    return "\n".join(["| the claim | who says it | why not here |", "|---|---|---|", *rows])


def ratios() -> str:
    """{{ claims_figure }}: every ratio, a dot a round, and what the claim predicts of it."""
    judged = [each for each in claims.read().findings if each.figures[0].values]
    bottom = TOP + ROW * len(judged)
    drawn = [
        f'<line class="wire quiet" x1="{_x(at)}" y1="{TOP - 20}" x2="{_x(at)}" y2="{bottom}"/>'
        f'<text class="small middle" x="{_x(at)}" y="{TOP - 28}">{at:g}×</text>'
        for at in (0.25, 0.5, 1, 2, 4)
    ]
    drawn += [_row(each, TOP + ROW * row + ROW // 2) for row, each in enumerate(judged)]
    told = "; ".join(f"{each.id} {each.figures[0].text()}, {each.verdict}" for each in judged)
    return (
        '<figure class="drawing" id="figure-claims" data-search-exclude>\n'
        f'<svg class="fig" viewBox="0 0 720 {bottom + 10}" role="img" '
        'aria-labelledby="claims-title" aria-describedby="claims-desc">'
        f'<title id="claims-title">{CAPTION}</title>'
        f'<desc id="claims-desc">{html.escape(told)}</desc>{"".join(drawn)}</svg>\n'
        f"<figcaption>{CAPTION}</figcaption>\n</figure>\n"
    )


def _row(found: Finding, y: int) -> str:
    """A line in the color of the verdict would be its only sign: the band says what was claimed."""
    figure = found.figures[0]
    least, most = _x(figure.at_least), _x(figure.at_most)
    dots = "".join(
        f'<circle class="box" cx="{_x(each)}" cy="{y}" r="6"/>' for each in figure.values if each
    )
    return (
        f'<rect class="kernel" x="{least}" y="{y - 14}" width="{most - least:.1f}" height="28"/>'
        f'<a href="#{found.id}"><text class="small end" x="{LEFT - 14}" y="{y + 7}">{found.id}'
        f"</text></a>{dots}"
    )


def _x(ratio: float) -> float:
    """On a scale of logarithms: half is as far from 1 as double."""
    share = math.log(min(max(ratio, LEAST), MOST) / LEAST) / math.log(MOST / LEAST)
    return round(LEFT + share * (RIGHT - LEFT), 1)
