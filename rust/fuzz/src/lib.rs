//! How an input of the fuzzer is taken apart: two bytes that choose, and the rest, which is what is read.
//!
//! The oracles are those of the tests, so that what is found here becomes a test by being written down.

use deltafold::dialect::REGISTRY;

#[path = "../../core/tests/suite/support/mod.rs"]
mod support;

pub use support::{fixtures, oracles};

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
    let dialect = REGISTRY.get(usize::from(*which) % REGISTRY.len())?.name;
    let cuts = (1..usize::from(seed % 8)).map(|cut| cut * (usize::from(*seed) + 7)).collect();
    Some(Input { dialect, cuts, body })
}

/// The input that is taken apart into this dialect and body, with a few cuts; `None` for what is no dialect.
pub fn seed(dialect: &str, body: &[u8]) -> Option<Vec<u8>> {
    let which = u8::try_from(REGISTRY.iter().position(|row| row.name == dialect)?).ok()?;
    Some([&[which, 5], body].concat())
}
