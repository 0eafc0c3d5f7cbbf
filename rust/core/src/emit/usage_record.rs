//! `UsageRecord`: the merged usage records of a stream, with their numbers.
//!
//! In: records as JSON.  Out: the merged record, and the numbers that its table names.
//!
//! Law: the numbers are those of the merged record, read anew.

use crate::facts::{UsageNumbers, UsageTable};
use crate::json::{self, Patch, Reader, Result};

/// The merged usage records of a stream.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct UsageRecord {
    json: String,
    /// The numbers of `json`; `None` if it cannot be read.
    numbers: Option<UsageNumbers>,
}

impl UsageRecord {
    fn new(json: String, table: &UsageTable) -> Self {
        Self { numbers: table.read(&json).ok(), json }
    }

    /// Build the first record of a stream.
    pub(super) fn first(record: &str, table: &UsageTable) -> Self {
        Self::new(json::compact(record), table)
    }

    /// Merge a later record into this one.
    pub(super) fn merge(&mut self, record: &str, table: &UsageTable) {
        match self.merge_in_one_pass(record, table) {
            Some(json) => self.json = json,
            None => *self = Self::new(json::merge_deep(&self.json, record), table),
        }
    }

    pub(super) fn json(&self) -> &str {
        &self.json
    }

    pub(super) fn numbers(&self) -> Option<&UsageNumbers> {
        self.numbers.as_ref()
    }

    /// Read the numbers of a later record, and return the JSON of both in the same pass.
    ///
    /// `None` for records that need another reading of the result; the numbers are invalid then.
    fn merge_in_one_pass(&mut self, record: &str, table: &UsageTable) -> Option<String> {
        let numbers = self.numbers.as_mut()?;
        let mut patch = Patch::default();
        let read = Reader::trusted(record).entries(|reader, key| {
            let start = reader.position();
            table.read_member(reader, key.raw, numbers)?;
            patch.add(key, reader.since(start));
            Result::Ok(())
        });
        read.ok()?;
        json::merge_patch(&self.json, &patch).filter(|_| numbers.can_grow())
    }
}
