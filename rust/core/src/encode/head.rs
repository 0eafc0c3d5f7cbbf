//! `Head` and `Page`: what a writer knows of its stream, and where it writes.

use super::notes::Notes;
use super::out::Out;
use super::settings::Settings;
use crate::contract::Usage;

/// Facts of a stream that all of its events may need.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Head {
    /// Model to name: the caller's, else the one of `start`.
    pub model_id: String,
    /// Id of the response.
    pub request_id: String,
    /// Start of the stream: milliseconds since 1970.
    pub created: u64,
    /// Token counts so far.
    pub usage: Usage<String>,
    /// True if a usage record came.
    pub has_usage: bool,
}

impl Head {
    /// Return the start of the stream in seconds.
    pub fn created_seconds(&self) -> u64 {
        self.created / 1_000
    }
}

/// Where a writer writes, and what it knows of the stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// The events.
    pub out: Out,
    /// What the target could not carry.
    pub notes: Notes,
    /// Choices of the caller.
    pub settings: Settings,
    /// Facts of the stream.
    pub head: Head,
}
