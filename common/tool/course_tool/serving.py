# SPDX-License-Identifier: MIT
"""`./course serve`: the site, on this machine only, made again when a page changes."""

from __future__ import annotations

import errno
import os
import socket

from course_tool import console
from course_tool.errors import CourseError
from course_tool.paths import ROOT

HOST = "127.0.0.1"
PORT = 8000


def serve_site(port: int) -> None:
    """Serves until Ctrl-C, which is a KeyboardInterrupt here as everywhere; opens no browser."""
    config = ROOT / "mkdocs.yml"
    if not config.is_file():
        raise CourseError("mkdocs.yml is missing. Is the clone whole? `git status` says.")
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
