#!/bin/sh
# Runs every target of rust/fuzz for a while; the fixtures are the seeds.
#
# usage: tools/fuzz.sh [seconds a target]    needs a nightly toolchain and cargo-fuzz
set -eu
cd "$(dirname "$0")/../rust/fuzz"
seconds=${1:-60}

fail() {
    printf 'deltafold: %s\n' "$1" >&2
    exit 1
}

cargo +nightly --version >/dev/null 2>&1 ||
    fail "fuzzing needs a nightly toolchain: rustup toolchain install nightly, then run make fuzz again"
cargo +nightly fuzz --version >/dev/null 2>&1 ||
    fail "fuzzing needs cargo-fuzz: cargo +nightly install --locked cargo-fuzz, then run make fuzz again"

cargo run --quiet --locked --no-default-features --bin seeds corpus

for target in decode template reader partial_json framing encode; do
    cargo +nightly fuzz run --fuzz-dir . "$target" -- -max_total_time="$seconds" -max_len=16384 -timeout=10 -print_final_stats=1
done
