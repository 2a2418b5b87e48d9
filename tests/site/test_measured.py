# SPDX-License-Identifier: MIT
"""The home page's figures are those of docs/ladder.json, whichever chapters that knows."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from building import Site

import measured
from course_tool.chapters import all_chapters
from course_tool.errors import CourseError
from course_tool.paths import DOCS, ROOT


@pytest.fixture
def whole() -> dict[str, Any]:
    return json.loads((DOCS / "ladder.json").read_text(encoding="utf-8"))


@pytest.fixture
def document(whole: dict[str, Any]) -> dict[str, Any]:
    """The servers that echo; as_http() gives one of them a load of its own."""
    echoes = whole["cells"][0]
    subjects = [each for each in whole["subjects"] if each["name"] in echoes["summary"]]
    names = [each["name"] for each in subjects]
    counts = [each for each in whole["counts"] if each["subject"] in names]
    return {**whole, "cells": [echoes], "subjects": subjects, "counts": counts}


@pytest.fixture
def shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The marker's text for another ladder.json."""
    monkeypatch.setattr(measured, "FILE", tmp_path / "ladder.json")

    def show(document: dict[str, Any]) -> str:
        measured.FILE.write_text(json.dumps(document))
        return measured.ladder_measured()

    return show


def rows_of(text: str) -> list[list[str]]:
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[1:]]


def drawing_of(text: str) -> ET.Element:
    return ET.fromstring(text[text.index("<svg") : text.index("</svg>") + len("</svg>")])


def as_http(document: dict[str, Any], chapter: str) -> dict[str, Any]:
    """The same ladder, if this chapter's server spoke HTTP: it has a load of its own."""
    [name] = [each["name"] for each in document["subjects"] if each["chapter"] == chapter]
    echoes = document["cells"][0]
    http = {**echoes, "size": 1024}
    for key in ("summary", "ratios"):
        http[key] = {name: echoes[key][name]}
        echoes[key] = {each: value for each, value in echoes[key].items() if each != name}
    http["runs"] = [run for run in echoes["runs"] if run["subject"] == name]
    echoes["runs"] = [run for run in echoes["runs"] if run["subject"] != name]
    for each in document["subjects"]:
        each["path"] = "/1k.txt" if each["name"] == name else ""
    return {**document, "cells": [echoes, http]}


def test_the_home_page_shows_every_server_that_was_measured(
    site: Site, whole: dict[str, Any]
) -> None:
    html = (site.folder / "index.html").read_text(encoding="utf-8")
    assert html.count('id="figure-measured"') == 1
    for subject in whole["subjects"]:
        assert f">{subject['name']}</text>" in html, f"{subject['name']} is not drawn"
    assert whole["machine"]["cpu"] in html
    assert (site.folder / "ladder.json").is_file()


def test_a_row_holds_the_three_medians_and_leads_to_its_chapter(
    shown: Any, document: dict[str, Any]
) -> None:
    text = shown(document)
    chapters = {each.number: each for each in all_chapters(ROOT)}
    rows = rows_of(text)
    assert len(rows) == len(document["subjects"])
    for row, subject in zip(rows, document["subjects"], strict=True):
        assert f"(chapters/{chapters[subject['chapter']].folder}.md)" in row[0]
        cpu = document["cells"][0]["summary"][subject["name"]]["cpu_us_per_request"]["median"]
        assert float(row[2].removesuffix(" µs")) == pytest.approx(cpu, rel=0.01)
        counted = {
            each["metric"]: each["measured"]["median"]
            for each in document["counts"]
            if each["subject"] == subject["name"]
        }
        assert float(row[1]) == pytest.approx(counted["syscalls_per_request"], abs=0.01)
        idle = int(row[3].removesuffix(" B").replace(",", ""))
        assert idle == pytest.approx(counted["bytes_per_idle_connection"], abs=0.6)


def test_every_run_is_a_dot_inside_of_the_drawing(shown: Any, document: dict[str, Any]) -> None:
    dots = list(drawing_of(shown(document)).iter("circle"))
    runs = sum(bool(run["values"]) for cell in document["cells"] for run in cell["runs"])
    assert len(dots) == runs + 3 * len(document["counts"])
    for dot in dots:
        assert 0 <= float(dot.get("cx", "")) <= 720 - float(dot.get("r", ""))


def test_servers_of_http_stand_apart(shown: Any, document: dict[str, Any]) -> None:
    rows = rows_of(shown(as_http(document, "05")))
    assert [row[0] for row in rows if row[0].startswith("*")] == [
        "*for an echo of 128 bytes*", "*for a GET of 1,024 bytes*",
    ]  # fmt: skip
    assert "05-ring-echo" in rows[-1][0] and rows[-1][1:] != ["–"] * 3


def test_what_could_not_be_measured_is_a_dash(shown: Any, document: dict[str, Any]) -> None:
    lost = document["subjects"][1]["name"]
    for count in document["counts"]:
        if count["subject"] == lost:
            count |= {"measured": None, "verdict": "not measured", "reason": "no strace"}
    cell = document["cells"][0]
    cell["runs"] = [run for run in cell["runs"] if run["subject"] != lost]
    cell["summary"][lost] = dict.fromkeys(cell["summary"][lost])
    text = shown(document)
    assert rows_of(text)[1][1:] == ["–", "–", "–"]
    assert len([each for each in drawing_of(text).iter("text") if each.text == "–"]) == 3


def test_a_chapter_that_this_clone_lacks_is_no_link(shown: Any, document: dict[str, Any]) -> None:
    last = document["subjects"][-1]
    last["chapter"] = "15"
    assert rows_of(shown(document))[-1][0] == last["name"]


def test_a_busy_machine_is_said(shown: Any, document: dict[str, Any]) -> None:
    document["machine"] |= {"busy": True, "others_share": 0.4}
    assert "Other programs used 40 % of this machine" in shown(document)
    document["machine"]["busy"] = False
    assert "Other programs" not in shown(document)


def test_without_a_ladder_the_page_says_how_to_make_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measured, "FILE", tmp_path / "ladder.json")
    assert "./course bench --ladder --json docs/ladder.json" in measured.ladder_measured()


def test_a_ladder_that_is_none_is_refused(shown: Any, document: dict[str, Any]) -> None:
    document["cells"][0]["more"] = 1
    with pytest.raises(CourseError, match="docs/ladder.json"):
        shown(document)
