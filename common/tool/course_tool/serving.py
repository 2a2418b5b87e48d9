# SPDX-License-Identifier: MIT
"""`./course serve`: the site, on this machine only, made again when a page changes.

With --by 14 it is made once, and the server of that chapter serves it: the reader's own.
"""

from __future__ import annotations

import errno
import os
import socket
import sys
from pathlib import Path

from course_tool import console, processes, running
from course_tool.errors import CourseError
from course_tool.paths import BUILD, ROOT

HOST = "127.0.0.1"
PORT = 8000
BUILD_TIMEOUT_S = 600


def serve_site(port: int) -> None:
    """Serves until Ctrl-C, which is a KeyboardInterrupt here as everywhere; opens no browser."""
    config = _config()
    _require_free(port)
    console.out.print(f"The course is on http://{HOST}:{port} in a moment; Ctrl-C ends it.")
    os.environ.setdefault("NO_MKDOCS_2_WARNING", "1")  # its advertising is not our reader's concern
    from mkdocs.__main__ import cli  # here: it takes long to load

    os.chdir(ROOT)
    arguments = ["serve", "--config-file", str(config), "--dev-addr", f"{HOST}:{port}"]
    try:
        cli.main([*arguments, "--quiet"], standalone_mode=False)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:  # somebody was quicker than we
            raise _in_use(port) from error
        raise
    raise KeyboardInterrupt  # mkdocs swallows it, and returns for no other reason


def serve_site_by(name: str, port: int, preset: str) -> int:
    """Builds the site and lets a chapter's server serve it, until Ctrl-C; its exit code."""
    chapter, program = running.find_program(name)
    if program.contract:
        raise CourseError(
            f"{chapter.number}-{program.name} echoes what clients send, and serves no pages. The "
            "server of the last chapter does: ./course serve --by 14"
        )
    config = _config()
    _require_free(port)
    site = BUILD / "site"
    build = [sys.executable, "-m", "mkdocs", "build", "-f", config, "-d", site]
    with console.progress("Building the site"):
        processes.run(
            build, timeout_s=BUILD_TIMEOUT_S, env={"NO_MKDOCS_2_WARNING": "1"}, check=True
        )
    where = ["--host", HOST, "--port", str(port), "--root", str(site)]
    console.out.print(f"The course is on http://{HOST}:{port} in a moment; Ctrl-C ends it.")
    return running.run_program(name, where, preset)


def _config() -> Path:
    config = ROOT / "mkdocs.yml"
    if not config.is_file():
        raise CourseError("mkdocs.yml is missing. Is the clone whole? `git status` says.")
    return config


def _require_free(port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except PermissionError as error:
            raise CourseError(
                f"Port {port} may be used by root only. Take one from 1024 on: "
                "./course serve --port 8000"
            ) from error
        except OSError as error:
            raise _in_use(port) from error


def _in_use(port: int) -> CourseError:
    free = port + 1 if port < 65535 else port - 1
    return CourseError(
        f"Port {port} is in use, perhaps by another ./course serve. End that one, or take another "
        f"port: ./course serve --port {free}"
    )
