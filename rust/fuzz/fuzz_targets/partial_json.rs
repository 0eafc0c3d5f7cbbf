//! The reader of unfinished JSON is the same however the text is cut, and ends where serde_json does.

#![no_main]

use deltafold_fuzz::{oracles::partial_json, take};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Some(input) = take(data) {
        partial_json::cuts_agree(input.body, &input.cuts);
    }
});
