//! `Laws`: a checker of the contract's grammar.
//!
//! In: deltas in order.  Out: the destination of each delta in the message, or the law that it breaks.  The assembler checks
//! every delta; tests and debug builds check the whole output of the decoder.
//!
//! Laws: a delta that breaks a law changes nothing.  Deltas of a caller may omit `part_end`, and their `error` may come while
//! a call is open.  The decoder must end everything first (contract 1.2): [`Laws::of_decoder`] requires the end of every
//! text, thinking part and call before the terminal.

use std::collections::HashMap;
use std::fmt;

use super::delta::{Delta, Payload, TextAttributes};
use super::kinds::DeltaKind;

/// Violation of a law by a delta.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContractViolation {
    /// Sequence number of the delta.
    pub seq: u64,
    /// Description of the law.
    pub law: String,
    /// Wire name of the payload member at fault.
    pub field: Option<&'static str>,
}

impl fmt::Display for ContractViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "delta {}: {}", self.seq, self.law)
    }
}

impl std::error::Error for ContractViolation {}

/// Destination of a lawful delta.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// The stream as a whole.
    Stream,
    /// A new part with this number.
    NewPart(usize),
    /// An existing part.
    Part(usize),
}

/// State of the grammar after the deltas so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Laws {
    last_seq: u64,
    started: bool,
    ended: bool,
    parts: Vec<PartState>,
    /// Number of text and thinking parts that have not ended.
    open_parts: usize,
    /// True if every text, thinking part and call must end before the terminal.
    requires_ends: bool,
    calls: HashMap<Box<str>, Call>,
    open_calls: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PartState {
    kind: DeltaKind,
    ended: bool,
}

impl PartState {
    fn open(kind: DeltaKind) -> Self {
        Self { kind, ended: false }
    }

    fn has_text(self) -> bool {
        matches!(self.kind, DeltaKind::Text | DeltaKind::Thinking)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Call {
    part: usize,
    open: bool,
}

impl Laws {
    /// Build the laws of a decoder's output, which ends every part and every call.
    pub fn of_decoder() -> Self {
        Self { requires_ends: true, ..Self::default() }
    }

    /// Return the sequence number of the last lawful delta; 0 before the first.
    pub fn last_seq(&self) -> u64 {
        self.last_seq
    }

    /// Return true after a terminal.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// Check the next delta, and return its destination.
    pub fn check(&mut self, delta: &Delta<&str>) -> Result<Destination, ContractViolation> {
        let destination = self.judge(delta).map_err(|(field, law)| ContractViolation {
            seq: delta.seq,
            law,
            field,
        })?;
        self.last_seq = delta.seq;
        match delta.payload {
            Payload::Start { .. } => self.started = true,
            Payload::Done { .. } | Payload::Error(_) => self.ended = true,
            Payload::ToolCallStart { id, .. } => {
                self.calls.insert(id.into(), Call { part: self.parts.len(), open: true });
                self.open_calls += 1;
            }
            Payload::ToolCallEnd { id, .. } => {
                if let Some(call) = self.calls.get_mut(id) {
                    call.open = false;
                }
                self.open_calls = self.open_calls.saturating_sub(1);
            }
            Payload::PartEnd { part_index } => {
                if let Some(part) = self.parts.get_mut(part_index as usize) {
                    part.ended = true;
                }
                self.open_parts = self.open_parts.saturating_sub(1);
            }
            _ => {}
        }
        if let Destination::NewPart(_) = destination {
            let part = PartState::open(delta.payload.kind());
            self.open_parts += usize::from(part.has_text());
            self.parts.push(part);
        }
        Ok(destination)
    }

    /// Accept a delta that carries only more text of an existing part, and return true.
    ///
    /// Returns false without a change for any other delta, which [`Laws::check`] must decide.
    #[inline]
    pub fn more_text(&mut self, seq: u64, kind: DeltaKind, part: usize, text: &str) -> bool {
        let open = PartState::open(kind);
        let lawful = self.takes(seq, text) && self.parts.get(part) == Some(&open);
        if lawful {
            self.last_seq = seq;
        }
        lawful
    }

    /// Accept more arguments as [`Self::more_text`] does.  The caller guarantees that the call is open.
    #[inline]
    pub fn more_args(&mut self, seq: u64, text: &str) -> bool {
        let lawful = self.takes(seq, text);
        if lawful {
            self.last_seq = seq;
        }
        lawful
    }

    /// Accept token counts as [`Self::more_text`] does text.
    #[inline]
    pub fn more_usage(&mut self, seq: u64) -> bool {
        let lawful = self.goes_on(seq);
        if lawful {
            self.last_seq = seq;
        }
        lawful
    }

    #[inline]
    fn takes(&self, seq: u64, text: &str) -> bool {
        self.goes_on(seq) && !text.is_empty()
    }

    #[inline]
    fn goes_on(&self, seq: u64) -> bool {
        self.started && !self.ended && seq > self.last_seq
    }

    fn judge(&self, delta: &Delta<&str>) -> Result<Destination, (Option<&'static str>, String)> {
        let broken = |field, law: &str| Err((field, law.to_owned()));
        if self.ended {
            return broken(None, "nothing may follow the terminal");
        }
        if delta.seq <= self.last_seq {
            return Err((Some("seq"), format!("seq must rise, the last was {}", self.last_seq)));
        }
        let kind = delta.payload.kind();
        if self.started == (kind == DeltaKind::Start) {
            let law = if self.started { "start came twice" } else { "start must come first" };
            return broken(Some("kind"), law);
        }
        match delta.payload {
            Payload::Text { text, part_index, attributes }
            | Payload::Thinking { text, part_index, attributes } => {
                self.text_destination(kind, text, part_index, &attributes)
            }
            Payload::ToolCallStart { id, part_index, .. } => {
                if self.calls.contains_key(id) {
                    return Err((
                        Some("toolCallId"),
                        format!("tool call id {id:?} was used before"),
                    ));
                }
                self.new_part(part_index)
            }
            Payload::ToolCallArgs { id, part_index, .. }
            | Payload::ToolCallEnd { id, part_index, .. } => match self.calls.get(id) {
                Some(call) if part_index.is_some_and(|at| at as usize != call.part) => {
                    let law = format!("tool call {id:?} is part {}", call.part);
                    Err((Some("partIndex"), law))
                }
                Some(call) if call.open => Ok(Destination::Part(call.part)),
                Some(_) => Err((Some("toolCallId"), format!("tool call {id:?} has ended"))),
                None => Err((Some("toolCallId"), format!("tool call {id:?} has not started"))),
            },
            Payload::Part { part_index, .. } => self.new_part(part_index),
            Payload::PartEnd { part_index } => self.part_end(part_index as usize),
            Payload::Done { .. } if self.open_calls > 0 => {
                broken(None, "a tool call is open at the terminal")
            }
            // A producer other than a decoder may fail in the middle of a call.
            Payload::Error(_) if self.requires_ends && self.open_calls > 0 => {
                broken(None, "a tool call is open at the terminal")
            }
            Payload::Done { .. } | Payload::Error(_)
                if self.requires_ends && self.open_parts > 0 =>
            {
                broken(None, "a text or thinking part is open at the terminal")
            }
            Payload::Audio { data: "" } => {
                broken(Some("audioDelta"), "an empty audioDelta carries nothing")
            }
            Payload::Start { .. }
            | Payload::Usage(_)
            | Payload::Done { .. }
            | Payload::Audio { .. }
            | Payload::Error(_) => Ok(Destination::Stream),
        }
    }

    fn new_part(&self, index: Option<u32>) -> Result<Destination, (Option<&'static str>, String)> {
        let next = self.parts.len();
        match index {
            Some(index) if index as usize != next => {
                Err((Some("partIndex"), format!("a new part must be number {next}, not {index}")))
            }
            _ => Ok(Destination::NewPart(next)),
        }
    }

    fn text_destination(
        &self,
        kind: DeltaKind,
        text: &str,
        index: Option<u32>,
        attributes: &TextAttributes<&str>,
    ) -> Result<Destination, (Option<&'static str>, String)> {
        if text.is_empty() && !attributes.allow_empty_text() {
            return Err((Some("textDelta"), "an empty textDelta carries nothing".to_owned()));
        }
        let next = self.parts.len();
        let at = match index {
            Some(index) => index as usize,
            // Attributes on an empty text may follow the end of the last part.
            None if self
                .parts
                .last()
                .is_some_and(|last| last.kind == kind && (!last.ended || text.is_empty())) =>
            {
                next - 1
            }
            None => next,
        };
        match self.parts.get(at) {
            Some(known) if known.kind != kind => {
                let law = format!("part {at} is {}, not {}", known.kind.as_str(), kind.as_str());
                Err((Some("partIndex"), law))
            }
            Some(known) if known.ended && !text.is_empty() => {
                Err((Some("partIndex"), format!("part {at} has ended")))
            }
            Some(_) => Ok(Destination::Part(at)),
            None => self.new_part(index),
        }
    }

    fn part_end(&self, at: usize) -> Result<Destination, (Option<&'static str>, String)> {
        let law = match self.parts.get(at) {
            None => format!("part {at} has not started"),
            Some(part) if !part.has_text() => {
                format!("part {at} is {}: only text and thinking parts end", part.kind.as_str())
            }
            Some(part) if part.ended => format!("part {at} has ended"),
            Some(_) => return Ok(Destination::Part(at)),
        };
        Err((Some("partIndex"), law))
    }
}
