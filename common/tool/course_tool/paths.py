# SPDX-License-Identifier: MIT
"""Where things stand in the clone."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]

CHAPTERS = ROOT / "chapters"
TESTS = ROOT / "tests"
DOCS = ROOT / "docs"

# Local and ignored by git; everything below is made again when it is missing.
BUILD = ROOT / "build"
DEPS = ROOT / ".deps"
STATE = ROOT / ".course"
VENV = ROOT / ".venv"


def relative(path: Path) -> str:
    """How a path is shown to the reader: from the clone's root where it lies inside."""
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)
