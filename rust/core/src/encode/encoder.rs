//! `Encoder`: deltas in, the bytes of a target out.
//!
//! In: deltas of one stream, from a decoder, a batch or a caller.  Out: bytes, the HTTP status and headers, and notes.
//!
//! Laws: a delta that breaks a law of the contract changes nothing and is reported.  Nothing is written after the terminal.

use super::registry::Target;
use super::stream::{OnDraft, Stream};
use super::whole::{Headers, draft, headers};
use crate::contract::{
    ContractViolation, Delta, ErrorCode, Failure, Output, Payload, TextOnlyDelta,
};
use crate::encode::{Draft, Note, Out, RunEvent, Settings};

/// Message of the failure of a stream without an end.
pub(super) const LOST: &str = "the stream stopped without any sign of its end";

/// Encoder of one stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Encoder {
    target: &'static str,
    has_runs: bool,
    stream: Stream,
    draft: Draft,
}

impl Encoder {
    /// Build the encoder of a stream.  With `objects` it gives the JSON of each event, without framing.
    pub fn new(target: &'static Target, settings: Settings, objects: bool) -> Self {
        Self {
            target: target.name,
            has_runs: target.has_runs,
            stream: Stream::new(target),
            draft: draft(target, settings, objects),
        }
    }

    /// Return the name of the target.
    pub fn target(&self) -> &'static str {
        self.target
    }

    /// Return true if the target has the events of a run.
    pub fn has_runs(&self) -> bool {
        self.has_runs
    }

    /// Set the start of the stream in milliseconds since 1970, unless it is set.
    pub fn set_created(&mut self, milliseconds: u64) {
        self.draft.head.set_created(milliseconds);
    }

    /// Return the HTTP status of the answer; `None` until the first delta that decides it.
    pub fn status(&self) -> Option<u16> {
        let is_begun = self.draft.run.as_ref().is_some_and(|run| run.has_head);
        self.stream.status().or(is_begun.then_some(200))
    }

    /// Return true after the terminal.
    pub fn ended(&self) -> bool {
        self.stream.ended()
    }

    /// Return true if the output ends in the error of the target, or is an HTTP error.
    pub fn failed(&self) -> bool {
        self.stream.failed()
    }

    /// Return the HTTP headers of the answer; `None` until the status is decided.
    pub fn headers(&self) -> Option<Headers> {
        let request_id = self.stream.http_request_id().unwrap_or(&self.draft.head.request_id);
        let form = Some(self.draft.out.form());
        Some(headers(self.target, self.status()?, form, request_id, self.stream.failure()))
    }

    /// Return what the target could not carry so far.
    pub fn notes(&self) -> &[Note] {
        self.draft.notes.list()
    }

    /// Return the delta that broke a law of the contract, if one did; it and all later ones were dropped.
    pub fn violation(&self) -> Option<&ContractViolation> {
        self.stream.violation()
    }

    /// Take the bytes written so far.
    pub fn take(&mut self) -> Vec<u8> {
        self.draft.out.take()
    }

    /// Return the output, to read it without giving up its memory.
    pub fn out(&mut self) -> &mut Out {
        &mut self.draft.out
    }

    /// Let the deltas that follow be those of a run, whose answers are written as one stream.  Returns false, and changes
    /// nothing, if the target has no runs.
    pub fn begin_run(&mut self) -> bool {
        if self.has_runs {
            self.draft.run.get_or_insert_default();
        }
        self.has_runs
    }

    /// Write an event of a run.  Nothing is written before [`Self::begin_run`].
    pub fn run_event(&mut self, event: &RunEvent) {
        if self.draft.run.is_some() {
            self.stream.run_event(&mut self.draft, event);
        }
    }

    /// End a stream whose source stopped without a terminal.
    pub fn close(&mut self) {
        if self.ended() {
            return;
        }
        let failure = Failure::new(ErrorCode::ConnectionLost, LOST);
        if self.draft.run.is_some() {
            return self.stream.lose_run(&mut self.draft, &failure);
        }
        let start = Payload::Start { model_id: "", request_id: "" };
        let first = self.stream.next_seq();
        let payloads = [start, Payload::Error(failure)];
        for (seq, payload) in (first..).zip(payloads.into_iter().skip(usize::from(first > 1))) {
            self.delta(&Delta { seq, payload, provider_raw: None });
        }
    }

    /// Write something that keeps the connection alive.  Decides the status for 200.
    pub fn keep_alive(&mut self) {
        self.stream.keep_alive(&mut self.draft);
    }
}

impl Output for Encoder {
    fn delta(&mut self, delta: &Delta<&str>) {
        OnDraft { stream: &mut self.stream, draft: &mut self.draft }.delta(delta);
    }

    #[inline]
    fn text_only(&mut self, seq: u64, delta: TextOnlyDelta<'_>) {
        OnDraft { stream: &mut self.stream, draft: &mut self.draft }.text_only(seq, delta);
    }
}
