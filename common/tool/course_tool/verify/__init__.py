# SPDX-License-Identifier: MIT
"""`./course verify`: proves the whole course, item by item (run.py lists them)."""

from course_tool.verify.outcome import VerifyOptions
from course_tool.verify.run import list_items, run_verify

__all__ = ["VerifyOptions", "list_items", "run_verify"]
