//! Any lawful deltas in every target: the grammar holds, and the decoder reads the same text and the same end.

#![no_main]

use deltafold_fuzz::oracles::encoding;
use libfuzzer_sys::fuzz_target;

/// Deltas of one input; more repeat what fewer find.
const DELTAS: usize = 48;

fuzz_target!(|data: &[u8]| {
    let [choice, first, second, deltas, rest @ ..] = data else { return };
    let (script, text) = rest.split_at(rest.len().min(usize::from(*deltas) % DELTAS * 4));
    let (script, _) = script.as_chunks::<4>();
    encoding::any_deltas(script, &String::from_utf8_lossy(text), [*first, *second], *choice);
});
