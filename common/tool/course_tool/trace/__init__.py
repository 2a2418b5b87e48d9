# SPDX-License-Identifier: MIT
"""Recorded runs: `./course trace`, and the figures of pages that a reader steps through."""
