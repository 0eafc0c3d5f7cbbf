//! Splits an input of the fuzzer into two bytes that choose options, and the body.
//!
//! The oracles are those of the tests, so that a finding becomes a test as a row with its bytes.

use deltafold::dialect::REGISTRY;

#[path = "../../core/tests/suite/support/mod.rs"]
mod support;

pub use support::{fixtures, oracles};

/// An input taken apart.
#[derive(Debug)]
pub struct Input<'a> {
    /// Dialect that the decoder is given.
    pub dialect: &'static str,
    /// Offsets of the cuts, modulo the number of bytes.
    pub cuts: Vec<usize>,
    /// The bytes.
    pub body: &'a [u8],
}

/// Takes an input apart; `None` when it is too short to choose.
pub fn take(data: &[u8]) -> Option<Input<'_>> {
    let [which, seed, body @ ..] = data else { return None };
    let dialect = REGISTRY.get(usize::from(*which) % REGISTRY.len())?.name;
    let cuts = (1..usize::from(seed % 8)).map(|cut| cut * (usize::from(*seed) + 7)).collect();
    Some(Input { dialect, cuts, body })
}

/// Return the input that splits into this dialect and body, with a few cuts; `None` for an unknown dialect.
pub fn seed(dialect: &str, body: &[u8]) -> Option<Vec<u8>> {
    let which = u8::try_from(REGISTRY.iter().position(|row| row.name == dialect)?).ok()?;
    Some([&[which, 5], body].concat())
}
