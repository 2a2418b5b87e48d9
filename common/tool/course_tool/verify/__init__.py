# SPDX-License-Identifier: MIT
"""`./course verify`: proves the whole course, item by item (run.py lists them)."""
