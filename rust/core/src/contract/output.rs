//! `Output`: receiver of finished deltas.

use super::delta::{Delta, Usage};
use super::text_only::TextOnlyDelta;

/// Receiver of finished deltas: a [`crate::contract::DeltaBatch`], a [`crate::fold::MessageAssembler`], or a closure.
pub trait Output {
    /// Receive the next delta.
    fn delta(&mut self, delta: &Delta<&str>);

    /// Receive the next delta, which carries only text.
    ///
    /// The effect is that of [`Output::delta`].  An implementation may avoid building the [`Delta`].
    #[inline]
    fn text_only(&mut self, seq: u64, delta: TextOnlyDelta<'_>) {
        self.delta(&Delta { seq, payload: delta.into(), provider_raw: None });
    }

    /// Receive the next delta, which carries only token counts.
    ///
    /// The effect is that of [`Output::delta`].  Some providers send new counts with each event.
    #[inline]
    fn usage_only(&mut self, seq: u64, usage: &Usage<String>) {
        self.delta(&Delta { seq, payload: usage.into(), provider_raw: None });
    }
}

impl<F: FnMut(&Delta<&str>)> Output for F {
    fn delta(&mut self, delta: &Delta<&str>) {
        self(delta);
    }
}
