# SPDX-License-Identifier: MIT
"""The one error class for what the reader can fix."""


class CourseError(Exception):
    """Shown as its message alone, exit 1: what was tried, what came, and what to do."""
