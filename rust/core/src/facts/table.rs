//! Types of the two-way tables: rows, finish reasons, error codes, and the facts of one protocol.

use super::usage::UsageTable;
use crate::contract::{ErrorCode, FinishReason};

/// One member of a closed list and the words of a protocol for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row<T> {
    /// The member.
    pub member: T,
    /// The words that mean the member and nothing else; the first one is written, unless there is a stand-in.
    pub words: &'static [&'static str],
    /// The word of another member that is written instead.
    pub stand_in: Option<&'static str>,
    /// The word to write beside calls, if the client would run them at the other word.
    pub beside_calls: Option<&'static str>,
}

impl<T: Copy + PartialEq> Row<T> {
    /// Build the row of a member with words of its own.
    pub const fn own(member: T, words: &'static [&'static str]) -> Self {
        Self { member, words, stand_in: None, beside_calls: None }
    }

    /// Build the row of a member without a word, which is written as the word of another member.
    pub const fn as_word(member: T, word: &'static str) -> Self {
        Self { member, words: &[], stand_in: Some(word), beside_calls: None }
    }

    /// Set the word of another member that is written instead of the first one.
    #[must_use]
    pub const fn written_as(self, word: &'static str) -> Self {
        Self { stand_in: Some(word), ..self }
    }

    /// Set the word that is written if the answer has calls, which its end forbids to run.
    #[must_use]
    pub const fn beside_calls(self, word: &'static str) -> Self {
        Self { beside_calls: Some(word), ..self }
    }

    /// Build the row of a member that the protocol cannot express by a word.
    pub const fn none(member: T) -> Self {
        Self { member, words: &[], stand_in: None, beside_calls: None }
    }

    /// Return the word to write.
    pub fn word(&self) -> Option<&'static str> {
        self.stand_in.or_else(|| self.words.first().copied())
    }
}

/// Finish reasons of a protocol.
#[derive(Clone, Copy, Debug)]
pub struct FinishReasons {
    /// One row for each finish reason of the contract.
    pub rows: &'static [Row<FinishReason>],
    /// Words in the place of a finish reason that mean that the answer failed.
    pub failures: &'static [(&'static str, ErrorCode)],
}

/// Meaning of a word in the place of a finish reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The message ended.
    Finish(FinishReason),
    /// The answer failed.
    Failure(ErrorCode),
}

impl Ending {
    /// Return the finish reason: `Error` for an answer that failed.
    pub fn reason(self) -> FinishReason {
        match self {
            Self::Finish(reason) => reason,
            Self::Failure(_) => FinishReason::Error,
        }
    }
}

impl FinishReasons {
    /// Return the meaning of a word, in any case; `None` for an unknown word.
    ///
    /// ```
    /// use deltafold::contract::{ErrorCode, FinishReason};
    /// use deltafold::dialect::cohere_chat::facts::FACTS;
    /// use deltafold::facts::Ending;
    /// assert_eq!(FACTS.finish_reasons.ending("COMPLETE"), Some(Ending::Finish(FinishReason::Stop)));
    /// assert_eq!(FACTS.finish_reasons.ending("TIMEOUT"), Some(Ending::Failure(ErrorCode::Timeout)));
    /// ```
    pub fn ending(&self, word: &str) -> Option<Ending> {
        let is = |own: &&str| own.eq_ignore_ascii_case(word);
        let failure = self.failures.iter().find(|(own, _)| is(own)).map(|(_, code)| *code);
        let row = || self.rows.iter().find(|row| row.words.iter().any(is));
        failure.map(Ending::Failure).or_else(|| row().map(|row| Ending::Finish(row.member)))
    }

    /// Return the word to write for a finish reason; `None` if the protocol expresses it in another way.
    ///
    /// `has_calls` says whether the client gets tool calls of the answer.
    pub fn word(&self, reason: FinishReason, has_calls: bool) -> Option<&'static str> {
        let row = self.rows.iter().find(|row| row.member == reason)?;
        row.beside_calls.filter(|_| has_calls).or(row.word())
    }
}

/// Error codes of a protocol: the word of the error object, and the HTTP status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorCodes {
    /// One row for each error code of the contract, with the HTTP status that an encoder writes.
    pub rows: &'static [(Row<ErrorCode>, u16)],
}

impl ErrorCodes {
    /// Return the error code of a word, in any case.
    pub fn code(&self, word: &str) -> Option<ErrorCode> {
        let own = |row: &Row<ErrorCode>| row.words.iter().any(|own| own.eq_ignore_ascii_case(word));
        self.rows.iter().find(|(row, _)| own(row)).map(|(row, _)| row.member)
    }

    /// Return the word and the HTTP status to write for an error code.
    pub fn word(&self, code: ErrorCode) -> (Option<&'static str>, u16) {
        let row = self.rows.iter().find(|(row, _)| row.member == code);
        row.map_or((None, 500), |(row, status)| (row.word(), *status))
    }
}

/// The facts of one dialect.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// Finish reasons.
    pub finish_reasons: FinishReasons,
    /// Members of a usage record.
    pub usage: UsageTable,
    /// Error codes.
    pub errors: ErrorCodes,
}
