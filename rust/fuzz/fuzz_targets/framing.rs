//! Server-sent events are framed as the specification says, however the body is cut.

#![no_main]

use deltafold_fuzz::{oracles::framing, take};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Some(input) = take(data) {
        let body = String::from_utf8_lossy(input.body);
        framing::agree_with_the_specification(&body, &input.cuts);
    }
});
