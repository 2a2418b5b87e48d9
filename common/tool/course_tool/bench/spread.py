# SPDX-License-Identifier: MIT
"""Medians with their spread, and ratios that are taken round by round.

Two servers of one round ran seconds apart on the same machine in the same mood; two servers of
different rounds did not. So a ratio is computed inside each round first and summarized after.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Spread:
    median: float
    min: float
    max: float
    samples: int


def summarize(values: Iterable[float | None]) -> Spread | None:
    """Leaves out what was not measured; None if nothing was."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    return Spread(statistics.median(known), min(known), max(known), len(known))


def paired_ratios(
    values: Sequence[float | None], baseline: Sequence[float | None]
) -> list[float | None]:
    """values[i] / baseline[i]; None for a round in which either is missing or the base is zero."""
    return [
        value / base if value is not None and base else None
        for value, base in zip(values, baseline, strict=True)
    ]
