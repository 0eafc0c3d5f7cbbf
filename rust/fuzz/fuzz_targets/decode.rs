//! Any bytes in any chunking: no panic, lawful deltas, one terminal, and the same whatever the cuts.

#![no_main]

use deltafold_fuzz::{oracles::streams, take};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Some(input) = take(data) {
        streams::chunkings_agree(input.dialect, input.body, &input.cuts);
    }
});
