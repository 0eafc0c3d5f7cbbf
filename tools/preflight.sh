#!/bin/sh
# Prints the Python that the local environments are made with, or says what is missing and how to get it.
#
# usage: tools/preflight.sh [python]    needs nothing but a POSIX shell
set -u

fail() {
    printf 'deltafold: %s\n' "$1" >&2
    exit 1
}

command -v cargo >/dev/null 2>&1 ||
    fail "cargo is not on PATH: install stable Rust (https://rustup.rs), then run make again"

is_new_enough='import sys; sys.exit(sys.version_info < (3, 11))'
for candidate in ${1:+"$1"} python3 python3.14 python3.13 python3.12 python3.11; do
    if command -v "$candidate" >/dev/null 2>&1 && "$candidate" -c "$is_new_enough" >/dev/null 2>&1; then
        python=$(command -v "$candidate")
        break
    fi
done
[ -n "${python:-}" ] ||
    fail "no Python >= 3.11 found as python3: install one, or name it: make PYTHON=/path/to/python3.11"

"$python" -c 'import venv' >/dev/null 2>&1 ||
    fail "$python has no venv module: install it (Debian and Ubuntu: apt install python3-venv)"
"$python" -c 'import ensurepip' >/dev/null 2>&1 ||
    fail "$python has no ensurepip module: install it (Debian and Ubuntu: apt install python3-venv)"

printf '%s\n' "$python"
