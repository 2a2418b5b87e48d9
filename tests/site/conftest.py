# SPDX-License-Identifier: MIT
"""The site, built once by each test process, served on this machine, and a browser for it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / folder) for folder in ("tests/site", "common/tool", "docs/_hooks")]

from browsing import Browser, open_chromium  # noqa: E402
from building import Site, build_site, serve  # noqa: E402


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The strict build, started from a folder that is not the clone."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    return build_site(ROOT, tmp_path_factory.mktemp("site") / "site", cwd=elsewhere)


@pytest.fixture(scope="session")
def address(site: Site) -> Iterator[str]:
    with serve(site.folder) as address:
        yield address


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    with open_chromium() as chromium:
        yield chromium


@pytest.fixture(scope="session")
def browser(chromium: Any, address: str) -> Browser:
    return Browser(chromium, address)
