//! Signs that an answer without a finish reason is whole.

/// A sign of a whole answer beside a finish reason.  Source: docs/protocols/decoding.md#g12.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum WholeSign {
    /// There is none.
    #[default]
    Missing,
    /// A usage record came when there was this much content, in an event without any.
    Counted(Said),
    /// The protocol says it in another way.
    Given,
}

/// How much content an answer has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Said {
    pub(super) bytes: usize,
    pub(super) state: usize,
    pub(super) calls: usize,
}
