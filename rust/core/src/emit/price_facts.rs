//! `PriceFacts`: what sets the price of an answer and is not in its usage record.
//!
//! In: the service tier, the processing as a batch, and the calls of tools that the provider bills apart from tokens.
//! Out: members of the usage's details.

use crate::json::ObjectWriter;

/// Words of the tier that has the listed prices.
const STANDARD_TIERS: [&str; 4] = ["default", "standard", "auto", "on_demand"];

/// The facts of one answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PriceFacts {
    tier: String,
    is_batch: bool,
    /// Kinds of calls, and how many there were.
    calls: Vec<(&'static str, u64)>,
}

impl PriceFacts {
    /// Return whether a tier has the listed prices.
    #[inline]
    pub(super) fn is_standard(tier: &str) -> bool {
        STANDARD_TIERS.contains(&tier)
    }

    /// Replace the tier.
    pub(super) fn set_tier(&mut self, tier: &str) {
        tier.clone_into(&mut self.tier);
    }

    /// Note that the request was one of a batch.
    pub(super) fn set_batch(&mut self) {
        self.is_batch = true;
    }

    /// Add calls of a kind.
    pub(super) fn add_calls(&mut self, kind: &'static str, count: u64) {
        match self.calls.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, known)) => *known = known.saturating_add(count),
            None => self.calls.push((kind, count)),
        }
    }

    /// Count at least so many calls of a kind.
    pub(super) fn count_at_least(&mut self, kind: &'static str, count: u64) {
        let known = self.calls.iter().find(|(known, _)| *known == kind);
        let missing = count.saturating_sub(known.map_or(0, |(_, known)| *known));
        if missing > 0 {
            self.add_calls(kind, missing);
        }
    }

    /// Write the members `service_tier`, `processing` and `billedCalls`.
    pub(super) fn write(&self, details: &mut ObjectWriter<'_>) {
        if !self.tier.is_empty() {
            details.text("service_tier", &self.tier);
        }
        if self.is_batch {
            details.text("processing", "batch");
        }
        if !self.calls.is_empty() {
            details.object("billedCalls", |calls| {
                for (kind, count) in &self.calls {
                    calls.number(kind, count);
                }
            });
        }
    }
}
