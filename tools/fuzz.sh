#!/bin/sh
# Fuzzes in five groups; the fixtures are the seeds, and each target goes on from the corpus of its last run.
#
# usage: tools/fuzz.sh [seconds a target [group ...]]    groups: path loops decoding reading encoding; without one, all of them
#
#   path      the whole path from bytes to the message, in Python (tools/differential_fuzz.py; needs .venv-test)
#   loops     counted cases of the gateway and of tools (tools/seeded_loops.py; needs .venv-test); in the environment,
#             SEED has the seed, COUNT how many cases a loop has, and LOOPS the names of some loops
#   decoding  decoders, and their templates
#   reading   framing, JSON, JSON that is not finished
#   encoding  encoders
#
# All groups but the first two need a nightly toolchain and cargo-fuzz.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
seconds=${1:-60}
[ $# -eq 0 ] || shift
groups=${*:-path loops decoding reading encoding}
report=$root/fuzz-artifacts/figures
mkdir -p "$root/fuzz-artifacts"

fail() {
    printf 'deltafold: %s\n' "$1" >&2
    exit 1
}

targets_of() {
    case $1 in
    path | loops) echo ;;
    decoding) echo decode template ;;
    reading) echo framing reader partial_json ;;
    encoding) echo encode ;;
    *) fail "unknown group of fuzz targets: $1; known: path loops decoding reading encoding" ;;
    esac
}

for group in $groups; do
    targets_of "$group" >/dev/null
done
if [ -n "$(for group in $groups; do targets_of "$group"; done | tr -d '\n')" ]; then
    cargo +nightly --version >/dev/null 2>&1 ||
        fail "fuzzing needs a nightly toolchain: rustup toolchain install nightly, then run make check NAME=fuzz again"
    cargo +nightly fuzz --version >/dev/null 2>&1 ||
        fail "fuzzing needs cargo-fuzz: cargo +nightly install --locked cargo-fuzz, then run make check NAME=fuzz again"
    (cd "$root/rust/fuzz" && cargo run --quiet --locked --no-default-features --bin seeds corpus)
fi

: >"$report"
for group in $groups; do
    if [ "$group" = path ]; then
        log=$root/fuzz-artifacts/path.log
        PYTHONPATH="$root/tests/support" "$root/.venv-test/bin/python" "$root/tools/differential_fuzz.py" --seconds "$seconds" >"$log" 2>&1 ||
            { cat "$log" && fail "the group path has a finding"; }
        executions=$(sed -n 's/^\([0-9]*\) executions in .*/\1/p' "$log")
        printf '%-9s %-13s %12s executions in %s s\n' path path "$executions" "$seconds" | tee -a "$report"
    fi
    if [ "$group" = loops ]; then
        log=$root/fuzz-artifacts/loops.log
        # shellcheck disable=SC2086 - LOOPS has several names
        PYTHONPATH="$root/tests/support" "$root/.venv-test/bin/python" "$root/tools/seeded_loops.py" \
            --seed "${SEED:-0}" ${COUNT:+--count "$COUNT"} ${LOOPS:-} >"$log" 2>&1 ||
            { cat "$log" && fail "the group loops has a finding"; }
        sed -n 's/^\([a-z]*\): \([0-9]*\) \(.*\), seed \(.*\)/loops     \1 \2 \3, seed \4/p' "$log" | tee -a "$report"
    fi
    for target in $(targets_of "$group"); do
        log=$root/fuzz-artifacts/$target.log
        (cd "$root/rust/fuzz" && cargo +nightly fuzz run --fuzz-dir . "$target" -- \
            -max_total_time="$seconds" -max_len=16384 -timeout=10 -print_final_stats=1) >"$log" 2>&1 ||
            { tail -n 60 "$log" && fail "the target $target has a finding: see rust/fuzz/artifacts/$target"; }
        executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
        printf '%-9s %-13s %12s executions in %s s\n' "$group" "$target" "$executions" "$seconds" | tee -a "$report"
    done
done
