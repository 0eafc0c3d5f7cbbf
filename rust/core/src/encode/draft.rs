//! `Draft` and `Head`: a response as far as it is written, and the facts of its stream.

use super::notes::Notes;
use super::out::Out;
use super::run::Run;
use super::settings::Settings;
use crate::contract::{Failure, Usage};

/// Facts of a stream that all of its events may need.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Head {
    /// Model to name: the caller's, else the one of `start`.
    pub model_id: String,
    /// Id of the response.
    pub request_id: String,
    /// Start of the stream: milliseconds since 1970.
    pub created: u64,
    /// Token counts so far, without the details of the provider, which no target has a place for.
    pub usage: Usage<String>,
    /// True if a usage record came.
    pub has_usage: bool,
}

impl Head {
    /// Set the start of the stream in milliseconds since 1970, unless it is set.
    pub fn set_created(&mut self, milliseconds: u64) {
        if self.created == 0 {
            self.created = milliseconds;
        }
    }

    /// Return the start of the stream in seconds.
    pub fn created_seconds(&self) -> u64 {
        self.created / 1_000
    }
}

impl Draft {
    /// Return the number of the answer that is written.
    pub fn answer_number(&self) -> u64 {
        self.answer.unwrap_or(0)
    }

    /// Return the number of a part of this answer in the whole stream.
    #[inline]
    pub fn part_number(&self, index: usize) -> usize {
        self.run.as_ref().map_or(0, |run| run.first_part) + index
    }
}

/// A response as far as it is written: its output, what was left out, and the facts of its stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    /// The events.
    pub out: Out,
    /// Notes of the content that the target could not carry.
    pub notes: Notes,
    /// Choices of the caller.
    pub settings: Settings,
    /// Facts of the stream.
    pub head: Head,
    /// Number of the answer that is written now, in a stream of several answers; `None` in a stream of one.
    pub answer: Option<u64>,
    /// The first failure of an answer, in a stream of several: its number and the failure, which is written last.
    pub deferred: Option<Box<(u64, Failure<Box<str>>)>>,
    /// What is known of the run whose answers are written; `None` in a stream of one answer.
    pub run: Option<Box<Run>>,
}
