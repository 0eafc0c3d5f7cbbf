//! `Encoder`: deltas in, the bytes of a target out.
//!
//! In: deltas of one stream, from a decoder, a batch or a caller.  Out: bytes, the HTTP status and headers, and notes.
//!
//! Laws: a delta that breaks a law of the contract changes nothing and is reported.  Nothing is written after the terminal.

use super::{State, Target};
use crate::contract::{
    CallId, ContractViolation, Delta, DeltaKind, Destination, ErrorCode, Laws, Output, Payload,
    TextOnlyDelta,
};
use crate::dialect::bedrock_converse;
use crate::encode::{Form, Head, Note, Notes, Out, Page, Settings};
use crate::fold::{MessageAssembler, Terminal};
use crate::grammar::{Checker, check_body};

/// Names and values of HTTP headers.
pub type Headers = Vec<(&'static str, String)>;

/// Encoder of one stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Encoder {
    target: &'static str,
    laws: Laws,
    state: State,
    page: Page,
    /// The call that had the last arguments, and its part.
    call: Option<(CallId, usize)>,
    violation: Option<ContractViolation>,
    /// The failure that ended the stream: its code and the seconds to wait.
    failure: Option<(ErrorCode, Option<f64>)>,
    http_request_id: Option<Box<str>>,
    /// Checks all bytes in debug builds.
    checker: Option<Box<Checker>>,
}

impl Encoder {
    /// Build the encoder of a stream.  With `objects` it gives the JSON of each event, without framing.
    pub fn new(target: &'static Target, settings: Settings, objects: bool) -> Self {
        // Without the events of the run, what is written is only a part of a stream.
        let checks = cfg!(debug_assertions) && !objects && !settings.without_run;
        Self {
            target: target.name,
            laws: Laws::default(),
            state: (target.state)(),
            page: page(target, settings, objects),
            call: None,
            violation: None,
            failure: None,
            http_request_id: None,
            checker: checks.then(|| Checker::new(target.name).map(Box::new)).flatten(),
        }
    }

    /// Return the name of the target.
    pub fn target(&self) -> &'static str {
        self.target
    }

    /// Set the start of the stream in milliseconds since 1970, unless it is set.
    pub fn set_created(&mut self, milliseconds: u64) {
        if self.page.head.created == 0 {
            self.page.head.created = milliseconds;
        }
    }

    /// Return the HTTP status of the answer; `None` until the first delta that decides it.
    pub fn status(&self) -> Option<u16> {
        self.state.status()
    }

    /// Return true after the terminal.
    pub fn ended(&self) -> bool {
        self.state.ended()
    }

    /// Return true if what was written ends in the target's error, or is an HTTP error.
    pub fn failed(&self) -> bool {
        self.state.failed()
    }

    /// Return the HTTP headers of the answer; `None` until the status is decided.
    pub fn headers(&self) -> Option<Headers> {
        let request_id = self.http_request_id.as_deref().unwrap_or(&self.page.head.request_id);
        let form = Some(self.page.out.form());
        Some(headers(self.target, self.status()?, form, request_id, self.failure))
    }

    /// Return the sequence number that the next delta may have.
    pub fn next_seq(&self) -> u64 {
        self.laws.last_seq() + 1
    }

    /// Return what the target could not carry so far.
    pub fn notes(&self) -> &[Note] {
        self.page.notes.list()
    }

    /// Return the delta that broke a law of the contract, if one did; it and all later ones were dropped.
    pub fn violation(&self) -> Option<&ContractViolation> {
        self.violation.as_ref()
    }

    /// Take the bytes written so far.
    pub fn take(&mut self) -> Vec<u8> {
        let bytes = self.page.out.take();
        if self.checker.is_some() {
            self.check(&bytes);
        }
        bytes
    }

    /// Check bytes against the grammar of the target.
    fn check(&mut self, bytes: &[u8]) {
        let Some(checker) = &mut self.checker else { return };
        let verdict = match self.state.status() {
            Some(status) if status != 200 => {
                if bytes.is_empty() {
                    Ok(())
                } else {
                    check_body(self.target, status, bytes)
                }
            }
            Some(_) if self.state.ended() => {
                let verdict = checker.feed(bytes).and_then(|()| checker.close());
                self.checker = None;
                verdict
            }
            _ => checker.feed(bytes),
        };
        debug_assert!(verdict.is_ok(), "{verdict:?}");
    }

    /// Return the output, to read it without giving up its memory.
    pub fn out(&mut self) -> &mut Out {
        &mut self.page.out
    }

    /// Write something that keeps the connection alive.  Decides the status for 200.
    pub fn keep_alive(&mut self) {
        self.state.keep_alive(&mut self.page);
    }

    fn consume(&mut self, delta: &Delta<&str>) {
        match self.laws.check(delta) {
            Ok(place) => {
                if let Payload::Error(failure) = &delta.payload {
                    self.failure = Some((failure.code, failure.retry_after));
                    self.http_request_id = failure.http_request_id.map(Into::into);
                }
                self.state.delta(&mut self.page, delta, place);
            }
            Err(violation) => self.violation = Some(violation),
        }
    }

    /// Write a delta that the laws accepted and that cannot be written at once.
    #[cold]
    fn later(&mut self, seq: u64, part: usize, delta: TextOnlyDelta<'_>) {
        let delta = Delta { seq, payload: delta.into(), provider_raw: None };
        self.state.delta(&mut self.page, &delta, Destination::Part(part));
    }
}

impl Output for Encoder {
    fn delta(&mut self, delta: &Delta<&str>) {
        if self.violation.is_none() {
            if let Payload::ToolCallEnd { .. } = delta.payload {
                self.call = None;
            }
            self.consume(delta);
        }
    }

    #[inline]
    fn text_only(&mut self, seq: u64, delta: TextOnlyDelta<'_>) {
        if self.violation.is_some() {
            return;
        }
        let (kind, part, text) = match delta {
            TextOnlyDelta::Text { part, text } => (DeltaKind::Text, part as usize, text),
            TextOnlyDelta::Thinking { part, text } => (DeltaKind::Thinking, part as usize, text),
            TextOnlyDelta::Args { id, text } => {
                return match &self.call {
                    Some((known, part))
                        if known.is_clone_of(id) && self.laws.more_args(seq, text) =>
                    {
                        let part = *part;
                        if !self.state.more_args(&mut self.page, part, text) {
                            self.later(seq, part, delta);
                        }
                    }
                    _ => self.first_args(seq, id, delta),
                };
            }
        };
        if !self.laws.more_text(seq, kind, part, text) {
            self.consume(&Delta { seq, payload: delta.into(), provider_raw: None });
        } else if !self.state.more_text(&mut self.page, part, text) {
            self.later(seq, part, delta);
        }
    }
}

impl Encoder {
    /// Consume arguments of another call than the last ones.
    #[cold]
    fn first_args(&mut self, seq: u64, id: &CallId, delta: TextOnlyDelta<'_>) {
        self.consume(&Delta { seq, payload: delta.into(), provider_raw: None });
        self.call = self.laws.call_part(id).map(|part| (id.clone(), part));
    }
}

fn page(target: &Target, settings: Settings, objects: bool) -> Page {
    Page {
        out: Out::new(target.form, objects),
        notes: Notes::default(),
        settings,
        head: Head::default(),
    }
}

/// Return the headers of an answer; without a framing, of a whole body.
///
/// Source: protocols/encode.md, E15 and section 12.
fn headers(
    target: &str,
    status: u16,
    form: Option<Form>,
    request_id: &str,
    failure: Option<(ErrorCode, Option<f64>)>,
) -> Headers {
    let mut headers = Headers::new();
    if status == 200 {
        headers.push(("content-type", form.map_or("application/json", content_type).to_owned()));
        if matches!(form, Some(Form::Sse | Form::NamedSse)) {
            headers.push(("cache-control", "no-cache".to_owned()));
            headers.push(("x-accel-buffering", "no".to_owned()));
        }
        if target == "ai-sdk" {
            headers.push(("x-vercel-ai-ui-message-stream", "v1".to_owned()));
        }
    } else {
        let plain = target == "ai-sdk";
        let kind = if plain { "text/plain; charset=utf-8" } else { "application/json" };
        headers.push(("content-type", kind.to_owned()));
    }
    if let Some((code, retry_after)) = failure.filter(|_| status != 200) {
        if let Some(seconds) = retry_after.filter(|seconds| seconds.is_finite()) {
            headers.push(("retry-after", format!("{:.0}", seconds.max(0.0).ceil())));
        }
        if target == "bedrock-converse" {
            headers
                .push(("x-amzn-errortype", bedrock_converse::write::error_type(code).to_owned()));
        }
    }
    if let Some(name) = request_id_header(target).filter(|_| is_header_value(request_id)) {
        headers.push((name, request_id.to_owned()));
    }
    headers
}

/// Return the content type of a framing.
fn content_type(form: Form) -> &'static str {
    match form {
        Form::Sse | Form::NamedSse => "text/event-stream",
        Form::Ndjson => "application/x-ndjson",
        Form::JsonArray => "application/json",
        Form::Frames => "application/vnd.amazon.eventstream",
    }
}

/// Return the header in which clients look for the request id.
fn request_id_header(target: &str) -> Option<&'static str> {
    match target {
        "anthropic-messages" => Some("request-id"),
        "openai-chat" | "openai-responses" => Some("x-request-id"),
        "bedrock-converse" => Some("x-amzn-requestid"),
        _ => None,
    }
}

fn is_header_value(text: &str) -> bool {
    !text.is_empty() && text.len() <= 256 && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Whole body of a message.
#[derive(Clone, Debug, PartialEq)]
pub struct WholeBody {
    /// HTTP status.
    pub status: u16,
    /// HTTP headers.
    pub headers: Headers,
    /// JSON of the body; text for a target whose clients show it.
    pub json: String,
    /// What the target could not carry.
    pub notes: Notes,
}

/// Write a folded message as a whole body: the answer, or the error that ended it.  `None` if the target has no bodies.
pub fn whole_body(
    target: &'static Target,
    settings: Settings,
    created: u64,
    message: &MessageAssembler,
) -> Option<WholeBody> {
    let mut page = page(target, settings, true);
    let head = &mut page.head;
    head.created = created;
    head.model_id = page.settings.model_id.as_deref().unwrap_or(message.model_id()).to_owned();
    message.request_id().clone_into(&mut head.request_id);
    if let Some(usage) = message.usage() {
        head.usage.replace(&usage);
        head.has_usage = true;
    }
    let (status, json, failure, http_request_id) = match message.terminal() {
        Some(Terminal::Error(failure)) => {
            let borrowed = failure.map(&mut |text| text.as_ref());
            let (status, json) = (target.refusal)(&mut page, &borrowed);
            let evidence = Some((failure.code, failure.retry_after));
            (status, json, evidence, failure.http_request_id.as_deref())
        }
        _ => (200, (target.body)(&mut page, message)?, None, None),
    };
    let request_id = http_request_id.unwrap_or(&page.head.request_id);
    let headers = headers(target.name, status, None, request_id, failure);
    Some(WholeBody { status, headers, json, notes: page.notes })
}
