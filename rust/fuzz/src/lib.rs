//! How an input of the fuzzer is taken apart: two bytes that choose, and the rest, which is what is read.
//!
//! The oracles are those of the tests, so that what is found here becomes a test by being written down.

#[path = "../../core/tests/support/mod.rs"]
mod support;

pub use support::oracles;

/// The dialects that are fuzzed.
pub const DIALECTS: [&str; 2] = ["anthropic-messages", "openai-chat"];

/// An input taken apart.
#[derive(Debug)]
pub struct Input<'a> {
    /// Whose bytes these are said to be.
    pub dialect: &'static str,
    /// Where the bytes are cut, modulo their number.
    pub cuts: Vec<usize>,
    /// The bytes.
    pub body: &'a [u8],
}

/// Takes an input apart; `None` when it is too short to choose.
pub fn take(data: &[u8]) -> Option<Input<'_>> {
    let [which, seed, body @ ..] = data else { return None };
    let dialect = DIALECTS.get(usize::from(*which) % DIALECTS.len())?;
    let cuts = (1..usize::from(seed % 8)).map(|cut| cut * (usize::from(*seed) + 7)).collect();
    Some(Input { dialect, cuts, body })
}
