//! `FoldingOutput`: an output that folds each delta into an assembler at once.
//!
//! In: deltas of a decoder.  Out: a changed assembler, and the number of folded deltas.
//!
//! Law: the first delta that the assembler rejects ends the folding.

use super::assembler::MessageAssembler;
use crate::contract::{ContractViolation, Delta, Output, TextOnlyDelta, Usage};

/// Output that folds the deltas of one feed.  After a rejected delta, the rest of the feed is dropped.
#[derive(Debug)]
pub struct FoldingOutput<'a> {
    assembler: &'a mut MessageAssembler,
    taken: usize,
    violation: Option<ContractViolation>,
}

impl<'a> FoldingOutput<'a> {
    /// Build an output that folds into `assembler`.
    pub fn new(assembler: &'a mut MessageAssembler) -> Self {
        Self { assembler, taken: 0, violation: None }
    }

    /// Return the number of folded deltas, or the violation of the rejected one.
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

    #[inline]
    fn usage_only(&mut self, seq: u64, usage: &Usage<String>) {
        if self.violation.is_none() {
            let verdict = self.assembler.consume_usage_only(seq, usage);
            self.took(verdict);
        }
    }
}
