# SPDX-License-Identifier: MIT
"""Writes docs/outputs/ anew: runs each command of outputs.toml in a copy of the clone.

.venv/bin/python docs/_hooks/outputs.py [NAME…]     (minutes: the copy is built from scratch)
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
import textwrap
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "common" / "tool"))

from course_tool.chapters import all_chapters  # noqa: E402
from course_tool.processes import Finished, run  # noqa: E402

OUTPUTS = ROOT / "docs" / "outputs"
COLUMNS = 84  # as wide as a block of code on a laptop
TIMEOUT_S = 1800


def copy_clone(target: Path) -> None:
    """All that git knows or would add, as one commit."""
    listed = run(["git", "ls-files", "-co", "--exclude-standard", "-z"], timeout_s=60, check=True)
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)
    author = ["-c", "user.name=outputs", "-c", "user.email=outputs@localhost"]
    for args in (["init", "-q"], ["add", "-A"], [*author, "commit", "-q", "-m", "copy"]):
        run(["git", *args], timeout_s=60, cwd=target, check=True)


def fill_chapters(copy: Path, state: str, only: str) -> None:
    """Puts starters, solutions, or solutions with one mistake into the copy's chapters/."""
    run(["git", "checkout", "-q", "--", "chapters"], timeout_s=60, cwd=copy, check=True)
    for chapter in all_chapters(copy):
        if state != "starters" and only in ("", chapter.number):
            for file in chapter.solution.glob("*.[ch]pp"):
                shutil.copyfile(file, chapter.starter / file.name)
    if state not in {"starters", "solutions"}:
        patch = (copy / "tests" / "mistakes" / f"{state}.patch").read_text(encoding="utf-8")
        patch = re.sub(r"(?<=[ab]/)solutions/", "chapters/", patch)
        run(["patch", "-p1"], timeout_s=60, cwd=copy, input_text=patch, check=True)


def course(copy: Path, words: list[str], fresh: bool) -> Finished:
    """Runs ./course in the copy: as a reader would, or with the Python that runs this."""
    environment = {"COLUMNS": str(COLUMNS), "NO_COLOR": "1", "LC_ALL": "C.UTF-8"}
    environment |= {"PYTHONPATH": str(copy / "common" / "tool")}
    launcher = ["./course"] if fresh else [sys.executable, "-m", "course_tool"]
    return run([*launcher, *words[1:]], timeout_s=TIMEOUT_S, cwd=copy, env=environment)


def printed(copy: Path, entry: dict[str, Any]) -> str:
    """What the command says on standard output, cut as the entry asks."""
    fresh = entry.get("fresh", False)
    if not fresh and not (copy / ".deps").exists():
        (copy / ".deps").symlink_to(ROOT / ".deps")
    for words in entry.get("before", []):
        course(copy, words, fresh)
    finished = course(copy, entry["command"], fresh)
    # Exit code 1 alone is no red test: a tool that cannot start has it too.
    if finished.returncode != entry["exit"] or not finished.stdout.strip():
        sys.exit(
            f"{' '.join(entry['command'])} should print something and end with {entry['exit']}, "
            f"but ended with {finished.returncode}:\n{finished.stdout}{finished.stderr}"
        )
    text = Path(copy / entry["reads"]).read_text("utf-8") if "reads" in entry else finished.stdout
    return cut(text.replace(str(copy), "~/ring-by-ring"), entry.get("first"), entry.get("last"))


def cut(text: str, first: str | None, last: str | None) -> str:
    """From the first line that matches `first` through the next that matches `last`."""
    lines = [line.rstrip() for line in text.rstrip().split("\n")]
    start = next(i for i, line in enumerate(lines) if re.search(first, line)) if first else 0
    end = len(lines) - 1
    if last:
        end = next(i for i in range(start, len(lines)) if re.search(last, lines[i]))
    return textwrap.dedent("\n".join(lines[start : end + 1])).strip("\n") + "\n"


def main(wanted: list[str]) -> None:
    entries = tomllib.loads((OUTPUTS / "outputs.toml").read_text(encoding="utf-8"))["outputs"]
    unknown = set(wanted) - {Path(entry["file"]).stem for entry in entries}
    if unknown:
        sys.exit(f"outputs.toml has no {', '.join(sorted(unknown))}: a name goes without .txt.")
    chosen = [entry for entry in entries if not wanted or Path(entry["file"]).stem in wanted]
    for fresh in (False, True):
        with tempfile.TemporaryDirectory(prefix="rbr-") as folder:
            copy = Path(folder)
            copy_clone(copy)
            for entry in (entry for entry in chosen if entry.get("fresh", False) is fresh):
                fill_chapters(copy, entry["chapters"], entry.get("only", ""))
                (OUTPUTS / entry["file"]).write_text(printed(copy, entry), encoding="utf-8")
                print(f"docs/outputs/{entry['file']}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
