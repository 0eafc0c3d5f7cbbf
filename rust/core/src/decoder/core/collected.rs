//! `Collected`: bare JSON until it is whole.

use crate::json::scan::JsonScan;

/// Bare JSON that is collected until it is whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Collected {
    pub(super) text: Vec<u8>,
    pub(super) scan: JsonScan,
    pub(super) offset: u64,
    /// The body has nothing before it.
    pub(super) is_first: bool,
}
