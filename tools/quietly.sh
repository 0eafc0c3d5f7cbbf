#!/bin/sh
# Runs a command, and prints what it writes only where it fails.
#
# In: the command.  Out: nothing, or its output and its exit code.
set -u
output=$(mktemp)
trap 'rm -f "$output"' EXIT
"$@" > "$output" 2>&1
code=$?
if [ "$code" -ne 0 ]; then
    echo "$*" >&2
    cat "$output" >&2
fi
exit "$code"
