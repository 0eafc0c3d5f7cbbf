//! Usage of a stream: records merged over its events, sent when their counts change.
//!
//! In: usage records as JSON with the table of their members, or counts.  Out: `usage` deltas.

use super::counts::Counts;
use super::emitter::{Emitter, EmitterSink};
use super::price_facts::PriceFacts;
use super::usage_record::UsageRecord;
use crate::facts::UsageTable;
use crate::json::{Reader, Str};

/// Cost of one repeated byte of a usage record, in bytes of provider state.
///
/// Merging reads and writes each byte several times.  Known records have at most 2 KB and are repeated once or twice.
const REPEATED_BYTE_COST: usize = 16;

/// Maximum number of bytes of the name of a tier.  The longest known one has 11.
const LONGEST_TIER: usize = 64;

impl EmitterSink<'_> {
    /// Merge a usage record into the earlier ones and send the counts if they changed.
    ///
    /// The last value of each member that is not null wins.  `None` changes nothing.
    pub fn merge_usage(&mut self, record: Option<&str>, table: &UsageTable) {
        let Some(record) = record else { return };
        let known = self.emitter.usage_record.as_ref().map_or(0, |known| known.json().len());
        if !self.take_repeated_bytes(known, record.len()) {
            return;
        }
        let merged = match self.emitter.usage_record.take() {
            Some(mut known) => {
                known.merge(record, table);
                known
            }
            None => Box::new(UsageRecord::first(record, table)),
        };
        if let Some(numbers) = merged.numbers() {
            self.usage(&Counts::from_numbers(table, numbers), merged.json());
        }
        self.emitter.usage_record = Some(merged);
    }

    /// Return true after the first record of [`Self::merge_usage`].
    pub fn has_usage_record(&self) -> bool {
        self.emitter.usage_record.is_some()
    }

    /// Count the bytes that a record of `new` bytes repeats of `known` ones against the bound of provider state.
    ///
    /// Merging and sending a record costs the bytes of both, so many small records after a large one are expensive.  A
    /// record with all members repeats nothing.
    pub fn take_repeated_bytes(&mut self, known: usize, new: usize) -> bool {
        self.take_state_bytes(known.saturating_sub(new).saturating_mul(REPEATED_BYTE_COST))
    }

    /// Send the merged counts if they changed.  `raw` is the usage record of the provider as JSON.
    pub fn usage(&mut self, counts: &Counts, raw: &str) {
        if self.ended() || counts.is_empty() {
            return;
        }
        if counts.is_read_by_total {
            let message =
                "the completion's tokens include those of the reasoning, as their total says";
            self.warn("usage_read_by_total", message, None);
        }
        let Emitter { deltas, usage, price_facts, .. } = &mut *self.emitter;
        let known = usage.get_or_insert_default();
        if counts.replace(known, raw, price_facts.as_deref()) {
            deltas.send_usage(self.out, known);
        }
    }

    /// Record the tier that served the answer: in its details, and in those of its usage if the tier has prices of its own.
    #[inline]
    pub fn service_tier(&mut self, tier: Option<Str<'_>>) {
        // Each chunk may repeat it.
        if self.text_detail("service_tier", tier)
            && let Some(tier) = tier.filter(|tier| !PriceFacts::is_standard(tier.raw))
        {
            self.priced_tier(tier);
        }
    }

    /// Record a tier with prices of its own in the details of the usage.
    #[cold]
    pub fn priced_tier(&mut self, tier: Str<'_>) {
        let tier = tier.text();
        if !PriceFacts::is_standard(&tier) && tier.len() <= LONGEST_TIER {
            self.emitter.price_facts.get_or_insert_default().set_tier(&tier);
        }
    }

    /// Record that the answer has the prices of a batch.
    #[cold]
    pub fn processed_in_batch(&mut self) {
        self.emitter.price_facts.get_or_insert_default().set_batch();
    }

    /// Record calls of a tool that the provider bills apart from tokens.
    #[cold]
    pub fn billed_calls(&mut self, kind: &'static str, count: u64) {
        if count > 0 {
            self.emitter.price_facts.get_or_insert_default().add_calls(kind, count);
        }
    }

    /// Record a number of calls that the provider states beside the calls themselves.
    #[cold]
    pub fn billed_at_least(&mut self, kind: &'static str, count: u64) {
        if count > 0 {
            self.emitter.price_facts.get_or_insert_default().count_at_least(kind, count);
        }
    }

    /// Record the entries of a JSON list, each a call of a tool that the provider bills apart.
    #[cold]
    pub fn billed_list(&mut self, kind: &'static str, list: &str) {
        let mut count = 0;
        // The dialect validated the JSON, so that an error here only means a value that is not a list.
        let _ = Reader::trusted(list).maybe_array(|reader| {
            count += 1;
            reader.skip()
        });
        self.billed_calls(kind, count);
    }

    /// Keep counts from outside the message.  At the end of the message they fill the gaps of its own record.
    pub fn usage_beside(&mut self, counts: Counts, raw: &str) {
        if !counts.is_empty() && self.take_state_bytes(raw.len()) {
            self.emitter.usage_beside = Some(Box::new((counts, raw.to_owned())));
        }
    }
}
