# SPDX-License-Identifier: MIT
"""Benchmarks: counts that are asserted, speed that is shown. `run_bench` is what ./course calls."""

from course_tool.bench.commands import (
    Options,
    run_bench,
    run_checkpoint,
    run_claims,
    run_ladder,
    run_matrix,
)

__all__ = [
    "Options",
    "run_bench",
    "run_checkpoint",
    "run_claims",
    "run_ladder",
    "run_matrix",
]
