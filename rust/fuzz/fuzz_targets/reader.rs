//! The JSON reader and the scanner agree with serde_json.

#![no_main]

use deltafold_fuzz::oracles::reader;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| reader::agree(text));
