//! `AnswersEncoder`: the deltas of every answer of a response in, the bytes of one stream out.
//!
//! In: deltas with the number of their answer, for a client that asked for several (`n > 1`).  Out: bytes, the HTTP status and
//! headers, and notes.
//!
//! Laws: each answer is written as an [`super::Encoder`] writes it alone, under its number.  Counts, the failure of an answer
//! and the end of the stream come once, when the caller closes, because another answer may begin until then.

use std::collections::BTreeMap;

use super::encoder::LOST;
use super::registry::Target;
use super::stream::{OnDraft, Stream};
use super::whole::{Headers, draft, headers};
use crate::contract::{ContractViolation, Delta, ErrorCode, Failure, Output, Payload};
use crate::encode::{Draft, Note, Out, Settings};

/// Encoder of one stream with several answers.
#[derive(Clone, Debug)]
pub struct AnswersEncoder {
    target: &'static Target,
    streams: BTreeMap<u64, Stream>,
    draft: Draft,
    /// Status of a response that is an HTTP error.
    refused: Option<u16>,
    closed: bool,
}

impl AnswersEncoder {
    /// Build the encoder of a stream; `None` if the target has one answer only.
    pub fn new(target: &'static Target, settings: Settings, objects: bool) -> Option<Self> {
        target.has_answers.then(|| Self {
            target,
            streams: BTreeMap::new(),
            draft: draft(target, settings, objects),
            refused: None,
            closed: false,
        })
    }

    /// Return the name of the target.
    pub fn target(&self) -> &'static str {
        self.target.name
    }

    /// Set the start of the stream in milliseconds since 1970, unless it is set.
    pub fn set_created(&mut self, milliseconds: u64) {
        self.draft.head.set_created(milliseconds);
    }

    /// Return the HTTP status; `None` until the first delta that decides it, of any answer.
    pub fn status(&self) -> Option<u16> {
        self.refused.or_else(|| self.has_head().then_some(200))
    }

    /// Return true after [`Self::close`].
    pub fn ended(&self) -> bool {
        self.closed
    }

    /// Return true if an answer failed: the stream ends in the target's error, or is an HTTP error.
    pub fn failed(&self) -> bool {
        self.draft.deferred.is_some()
    }

    /// Return the HTTP headers; `None` until the status is decided.
    pub fn headers(&self) -> Option<Headers> {
        let failing = self.streams.values().find(|stream| stream.failure().is_some());
        let request_id = failing.and_then(Stream::http_request_id);
        let request_id = request_id.unwrap_or(&self.draft.head.request_id);
        let form = Some(self.draft.out.form());
        let failure = failing.and_then(Stream::failure);
        Some(headers(self.target.name, self.status()?, form, request_id, failure))
    }

    /// Return what the target could not carry so far.
    pub fn notes(&self) -> &[Note] {
        self.draft.notes.list()
    }

    /// Return the first delta that broke a law of the contract, if one did; it and all later ones of its answer were dropped.
    pub fn violation(&self) -> Option<&ContractViolation> {
        self.streams.values().find_map(Stream::violation)
    }

    /// Take the bytes written so far.
    pub fn take(&mut self) -> Vec<u8> {
        self.draft.out.take()
    }

    /// Return the output, to read it without giving up its memory.
    pub fn out(&mut self) -> &mut Out {
        &mut self.draft.out
    }

    /// Return the output of an answer; `None` beyond the bound of answers, and after the end.
    pub fn answer(&mut self, number: u64) -> Option<impl Output> {
        let is_new = !self.streams.contains_key(&number);
        let is_full = is_new && self.streams.len() >= self.draft.settings.limits.choices;
        if self.closed || is_full {
            return None;
        }
        let target = self.target;
        let stream = self.streams.entry(number).or_insert_with(|| Stream::new(target));
        self.draft.answer = Some(number);
        Some(OnDraft { stream, draft: &mut self.draft })
    }

    /// Write something that keeps the connection alive.  Decides the status for 200.
    pub fn keep_alive(&mut self) {
        let number = self.streams.keys().next().copied().unwrap_or(0);
        if self.answer(number).is_some()
            && let Some(stream) = self.streams.get_mut(&number)
        {
            stream.keep_alive(&mut self.draft);
        }
    }

    /// End the stream.  An answer without a terminal is a failure, and so is a stream without an answer.
    pub fn close(&mut self) {
        if self.closed {
            return;
        }
        if self.streams.is_empty() {
            // The failure needs an answer that it ends.
            let _ = self.answer(0);
        }
        let open: Vec<u64> =
            self.streams.iter().filter(|(_, answer)| !answer.ended()).map(|(at, _)| *at).collect();
        for number in open {
            self.lose(number);
        }
        self.closed = true;
        let has_head = self.has_head();
        let deferred = self.draft.deferred.take();
        let number = deferred.as_ref().map(|failed| failed.0);
        let number = number.or_else(|| self.streams.keys().next().copied()).unwrap_or(0);
        self.draft.answer = Some(number);
        let Some(stream) = self.streams.get_mut(&number) else { return };
        let failure = deferred.as_ref().map(|failed| failed.1.map(&mut |text| text.as_ref()));
        stream.end_answers(&mut self.draft, failure.as_ref(), has_head);
        if !has_head {
            self.refused = stream.status();
        }
        self.draft.deferred = deferred;
    }

    fn has_head(&self) -> bool {
        self.streams.values().any(|stream| stream.status() == Some(200))
    }

    /// End an answer whose source stopped without a terminal.
    fn lose(&mut self, number: u64) {
        let Some(first) = self.streams.get(&number).map(Stream::next_seq) else { return };
        let Some(mut answer) = self.answer(number) else { return };
        let start = Payload::Start { model_id: "", request_id: "" };
        let failure = Payload::Error(Failure::new(ErrorCode::ConnectionLost, LOST));
        for (seq, payload) in
            (first..).zip([start, failure].into_iter().skip(usize::from(first > 1)))
        {
            answer.delta(&Delta { seq, payload, provider_raw: None });
        }
    }
}
