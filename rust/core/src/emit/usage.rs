//! Usage of a stream: records merged over its events, sent when their counts change.
//!
//! In: usage records as JSON with the table of their members, or counts.  Out: `usage` deltas.

use super::counts::Counts;
use super::emitter::{Emitter, EmitterSink};
use super::usage_record::UsageRecord;
use crate::facts::UsageTable;

/// Cost of one repeated byte of a usage record, in bytes of provider state.
///
/// Merging reads and writes each byte several times.  Known records have at most 2 KB and are repeated once or twice.
const REPEATED_BYTE_COST: usize = 16;

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
        let Emitter { deltas, usage, .. } = &mut *self.emitter;
        let known = usage.get_or_insert_default();
        if counts.replace(known, raw) {
            deltas.send_usage(self.out, known);
        }
    }

    /// Keep counts from outside the message.  At the end of the message they fill the gaps of its own record.
    pub fn usage_beside(&mut self, counts: Counts, raw: &str) {
        if !counts.is_empty() && self.take_state_bytes(raw.len()) {
            self.emitter.usage_beside = Some(Box::new((counts, raw.to_owned())));
        }
    }
}
