//! Template decoding makes the deltas that reading every frame makes.

#![no_main]

use deltafold_fuzz::{oracles::streams, take};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Some(input) = take(data) {
        streams::templates_agree("fuzzed", input.dialect, input.body);
        // Twice over, so that every frame repeats one that was learned.
        streams::templates_agree("fuzzed twice", input.dialect, &input.body.repeat(2));
    }
});
