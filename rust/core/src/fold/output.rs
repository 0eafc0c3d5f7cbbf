//! A decoder's output that folds each delta as it leaves.

use super::assembler::MessageAssembler;
use crate::contract::{Breach, Delta, Output, Plain};

/// A decoder's output folded as it comes.  What the assembler refuses ends the folding; the rest of the feed is dropped.
#[derive(Debug)]
pub struct FoldInto<'a> {
    assembler: &'a mut MessageAssembler,
    taken: usize,
    breach: Option<Breach>,
}

impl<'a> FoldInto<'a> {
    /// Folds into `assembler`.
    pub fn new(assembler: &'a mut MessageAssembler) -> Self {
        Self { assembler, taken: 0, breach: None }
    }

    /// How many deltas were folded, or what the assembler refused.
    pub fn finish(self) -> Result<usize, Breach> {
        self.breach.map_or(Ok(self.taken), Err)
    }
}

impl FoldInto<'_> {
    #[inline]
    fn took(&mut self, verdict: Result<(), Breach>) {
        match verdict {
            Ok(()) => self.taken += 1,
            Err(breach) => self.breach = Some(breach),
        }
    }
}

impl Output for FoldInto<'_> {
    #[inline]
    fn delta(&mut self, delta: &Delta<&str>) {
        if self.breach.is_none() {
            let verdict = self.assembler.consume(delta);
            self.took(verdict);
        }
    }

    #[inline]
    fn plain(&mut self, seq: u64, plain: Plain<'_>) {
        if self.breach.is_none() {
            let verdict = self.assembler.consume_plain(seq, plain);
            self.took(verdict);
        }
    }
}
