#!/bin/sh
# SPDX-License-Identifier: MIT
# What the compiler makes of a snippet. What goes wrong is printed as Catch2 prints a failed check,
# so that ./course test shows it as one.
#   try.sh refuses SNIPPET SAYS WHY COMMAND…   it must say an error with SAYS in it; else: WHY
#   try.sh takes SNIPPET COMMAND…              it must compile
set -u

verdict=$1
snippet=$2
shift 2
if [ "$verdict" = refuses ]; then
  says=$1
  why=$2
  shift 2
fi

fail() {
  line=$(grep -n "^#$1" "$snippet" | cut -d: -f1)
  printf '%s:%d: FAILED:\nexplicitly with message:\n' "$snippet" $((${line:-0} + 1))
  shift
  printf '  %s\n' "$@" "$(printf '%s\n' "$said" | grep -m 1 'error: ')"
  exit 1
}

if said=$("$@" 2>&1); then
  [ "$verdict" = takes ] || fail 'ifdef MISTAKE' "the compiler took code that it must refuse: $why"
elif [ "$verdict" = takes ]; then
  fail else 'the compiler must take this code, and refused it:'
elif ! printf '%s\n' "$said" | grep -q "error: .*$says"; then
  fail 'ifdef MISTAKE' "the compiler refused this code, but not because of “$says”. It said:"
fi
