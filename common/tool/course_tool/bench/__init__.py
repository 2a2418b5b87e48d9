# SPDX-License-Identifier: MIT
"""Benchmarks: counts that are asserted, speed that is shown. ./course calls `commands.run`."""
