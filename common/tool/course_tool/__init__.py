# SPDX-License-Identifier: MIT
"""The course's command-line tool, started by ./course."""
