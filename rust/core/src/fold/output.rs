//! A decoder's output that folds each delta as it leaves.

use super::assembler::MessageAssembler;
use crate::contract::{ContractViolation, Delta, Output, TextOnlyDelta};

/// A decoder's output folded as it comes.  What the assembler refuses ends the folding; the rest of the feed is dropped.
#[derive(Debug)]
pub struct FoldingOutput<'a> {
    assembler: &'a mut MessageAssembler,
    taken: usize,
    violation: Option<ContractViolation>,
}

impl<'a> FoldingOutput<'a> {
    /// Folds into `assembler`.
    pub fn new(assembler: &'a mut MessageAssembler) -> Self {
        Self { assembler, taken: 0, violation: None }
    }

    /// How many deltas were folded, or what the assembler refused.
    pub fn finish(self) -> Result<usize, ContractViolation> {
        self.violation.map_or(Ok(self.taken), Err)
    }
}

impl FoldingOutput<'_> {
    #[inline]
    fn took(&mut self, verdict: Result<(), ContractViolation>) {
        match verdict {
            Ok(()) => self.taken += 1,
            Err(violation) => self.violation = Some(violation),
        }
    }
}

impl Output for FoldingOutput<'_> {
    #[inline]
    fn delta(&mut self, delta: &Delta<&str>) {
        if self.violation.is_none() {
            let verdict = self.assembler.consume(delta);
            self.took(verdict);
        }
    }

    #[inline]
    fn text_only(&mut self, seq: u64, delta: TextOnlyDelta<'_>) {
        if self.violation.is_none() {
            let verdict = self.assembler.consume_text_only(seq, delta);
            self.took(verdict);
        }
    }
}
