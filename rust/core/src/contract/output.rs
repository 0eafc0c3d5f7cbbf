//! Receiver of finished deltas.

use super::delta::Delta;
use super::text_only::TextOnlyDelta;

/// Where finished deltas go: a [`crate::contract::DeltaBatch`], a [`crate::fold::MessageAssembler`], or any closure.
pub trait Output {
    /// Takes the next delta.
    fn delta(&mut self, delta: &Delta<&str>);

    /// Takes the next delta, which is plain: the same as [`Output::delta`], without making the delta where that is cheaper.
    #[inline]
    fn text_only(&mut self, seq: u64, delta: TextOnlyDelta<'_>) {
        self.delta(&Delta { seq, payload: delta.into(), provider_raw: None });
    }
}

impl<F: FnMut(&Delta<&str>)> Output for F {
    fn delta(&mut self, delta: &Delta<&str>) {
        self(delta);
    }
}
