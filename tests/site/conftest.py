# SPDX-License-Identifier: MIT
"""The site, built once, served on this machine, and a browser for it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / folder) for folder in ("tests/site", "common/tool", "docs/_hooks")]

from browsing import Browser, open_chromium  # noqa: E402
from building import Site, build_site, serve  # noqa: E402
from seen import Seen  # noqa: E402

from course_tool.files import locked  # noqa: E402


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The strict build, started from a folder that is not the clone: by the first process of a run
    that asks, for all."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    base = tmp_path_factory.getbasetemp()
    mine = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "site-of-all"
    with locked(mine / "lock"):
        said = mine / "problems.json"
        if not said.exists():
            problems = build_site(ROOT, mine / "site", cwd=elsewhere).problems
            said.write_text(json.dumps(problems))
    return Site(mine / "site", tuple(json.loads(said.read_text())))


@pytest.fixture(scope="session")
def address(site: Site) -> Iterator[str]:
    with serve(site.folder) as address:
        yield address


@pytest.fixture(scope="session")
def seen(site: Site) -> Seen:
    return Seen(site.folder)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    with open_chromium() as chromium:
        yield chromium


@pytest.fixture(scope="session")
def browser(chromium: Any, address: str) -> Browser:
    return Browser(chromium, address)
