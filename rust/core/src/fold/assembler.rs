//! Folds deltas into a message: `idle → started → done | error`.
//!
//! In: lawful deltas, from a decoder, a batch or by hand.  Out: parts in the order of their numbers, usage, terminal.
//! A delta that breaks a law changes nothing.  Text is appended, never copied again; cost is linear in what comes.

use std::collections::HashMap;
use std::sync::Arc;

use crate::contract::{
    CallId, ContractViolation, Delta, DeltaKind, Destination, Failure, FinishReason, InputFormat,
    Laws, Logprobs, Payload, TextAttributes, TextOnlyDelta, Usage,
};

/// Where a message stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Status {
    /// Nothing came.
    #[default]
    Idle,
    /// `start` came.
    Started,
    /// `done` came.
    Done,
    /// `error` came.
    Error,
}

impl Status {
    /// The name that users see.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Started => "started",
            Self::Done => "done",
            Self::Error => "error",
        }
    }
}

/// Text of a part and what rides on it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TextPart {
    /// The text so far.
    pub text: String,
    /// JSON arrays, one a delta.
    pub annotations: Vec<Box<str>>,
    /// It is a refusal.
    pub refusal: bool,
    /// It is withheld.
    pub redacted: bool,
    /// JSON object `{dialect, modelId, data}`.
    pub provider_state: Option<Box<str>>,
}

impl TextPart {
    fn append(&mut self, text: &str, attributes: &TextAttributes<&str>) {
        self.text.push_str(text);
        if *attributes == TextAttributes::default() {
            return;
        }
        self.annotations.extend(attributes.annotations.map(Into::into));
        self.refusal |= attributes.refusal;
        self.redacted |= attributes.redacted;
        if let Some(state) = attributes.provider_state {
            self.provider_state = Some(state.into());
        }
    }
}

/// A tool call.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// Unique in the run.
    pub id: CallId,
    /// The tool.
    pub name: Box<str>,
    /// The text of its arguments so far.
    pub args: String,
    /// What the text is.
    pub input_format: InputFormat,
    /// Whether its end came.
    pub ended: bool,
    /// Half a call.
    pub incomplete: bool,
    /// JSON object `{dialect, modelId, data}`.
    pub provider_state: Option<Box<str>>,
}

/// One part of the message.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// Visible text.
    Text(TextPart),
    /// Reasoning.
    Thinking(TextPart),
    /// A call.
    ToolCall(ToolCall),
    /// A part that came whole: JSON object `{kind, payload, providerState?}`.
    Whole(Box<str>),
}

/// How the message ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Terminal {
    /// Normally.
    Done {
        /// The closed reason.
        finish_reason: FinishReason,
        /// The provider's word.
        raw_finish_reason: Option<Box<str>>,
    },
    /// In an error.
    Error(Failure<Box<str>>),
}

/// Bytes that a text has room for at first: growing from a few would copy a short answer five times.
const FIRST_BYTES: usize = 128;

/// Part numbers of calls that another part follows, by the address of the call's id: an index of what the parts say, which
/// makes no assembler differ from another.
#[derive(Clone, Debug, Default)]
struct InterleavedCalls(HashMap<usize, usize>);

impl PartialEq for InterleavedCalls {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// The assembler.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MessageAssembler {
    laws: Laws,
    status: Status,
    model_id: Box<str>,
    request_id: Box<str>,
    parts: Vec<Part>,
    /// Part numbers of the tool calls, in order.
    calls: Vec<usize>,
    interleaved: InterleavedCalls,
    usage: Option<Usage<String>>,
    terminal: Option<Terminal>,
    warnings: Option<Box<str>>,
    details: Option<Box<str>>,
    /// Shared with whoever looks at a message; copied only when tokens come while somebody does.
    logprobs: Option<Arc<Logprobs>>,
}

impl MessageAssembler {
    /// Where the message stands.
    pub fn status(&self) -> Status {
        self.status
    }

    /// The seq of the last delta; 0 before the first.
    pub fn last_seq(&self) -> u64 {
        self.laws.last_seq()
    }

    /// The model that answers; the last one named.
    pub fn model_id(&self) -> &str {
        &self.model_id
    }

    /// The response's id.
    pub fn request_id(&self) -> &str {
        &self.request_id
    }

    /// The parts in order.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The tool calls in order, each with the number of its part.
    pub fn tool_calls(&self) -> impl Iterator<Item = (usize, &ToolCall)> {
        self.calls.iter().filter_map(|at| match self.parts.get(*at) {
            Some(Part::ToolCall(call)) => Some((*at, call)),
            _ => None,
        })
    }

    /// The counts, when any came.
    pub fn usage(&self) -> Option<Usage<&str>> {
        self.usage.as_ref().map(|usage| usage.map(AsRef::as_ref))
    }

    /// The log probabilities of all tokens, text and thinking, in the order in which they came.
    pub fn logprobs(&self) -> Option<&Arc<Logprobs>> {
        self.logprobs.as_ref()
    }

    /// How the message ended.
    pub fn terminal(&self) -> Option<&Terminal> {
        self.terminal.as_ref()
    }

    /// JSON object of the facts that the terminal tells under the provider's names.
    pub fn details(&self) -> Option<&str> {
        self.details.as_deref()
    }

    /// JSON array of the terminal's warnings.
    pub fn warnings(&self) -> Option<&str> {
        self.warnings.as_deref()
    }

    /// The visible text so far, all parts joined.
    pub fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            Part::Text(part) => Some(part.text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    /// Takes the next delta, which is plain; the same as [`Self::consume`].
    #[inline]
    pub fn consume_text_only(
        &mut self,
        seq: u64,
        delta: TextOnlyDelta<'_>,
    ) -> Result<(), ContractViolation> {
        match delta {
            TextOnlyDelta::Text { part: at, text } => {
                if let Some(Part::Text(part)) = self.parts.get_mut(at as usize)
                    && self.laws.more_text(seq, DeltaKind::Text, at as usize, text)
                {
                    part.text.push_str(text);
                    return Ok(());
                }
            }
            TextOnlyDelta::Thinking { part: at, text } => {
                if let Some(Part::Thinking(part)) = self.parts.get_mut(at as usize)
                    && self.laws.more_text(seq, DeltaKind::Thinking, at as usize, text)
                {
                    part.text.push_str(text);
                    return Ok(());
                }
            }
            TextOnlyDelta::Args { id, text } => {
                // Most arguments are the last part's.
                let last = self.parts.len().saturating_sub(1);
                for at in [Some(last), self.interleaved.0.get(&id.address()).copied()] {
                    if let Some(Part::ToolCall(call)) = at.and_then(|at| self.parts.get_mut(at))
                        && call.id.is_clone_of(id)
                        && !call.ended
                        && self.laws.more_args(seq, text)
                    {
                        call.args.push_str(text);
                        return Ok(());
                    }
                }
                return self.consume_first_args(seq, id, text);
            }
        }
        self.consume(&Delta { seq, payload: delta.into(), provider_raw: None })
    }

    /// Takes arguments under an id whose address is new here, and remembers the address: the next arguments of the call are
    /// found by it, without a look at the text of the id.
    #[cold]
    fn consume_first_args(
        &mut self,
        seq: u64,
        id: &CallId,
        text: &str,
    ) -> Result<(), ContractViolation> {
        let last = self.parts.len().saturating_sub(1);
        if let Some(Part::ToolCall(call)) = self.parts.get_mut(last)
            && call.id == *id
            && !call.ended
            && self.laws.more_args(seq, text)
        {
            call.args.push_str(text);
            call.id = id.clone();
            return Ok(());
        }
        self.consume(&Delta {
            seq,
            payload: TextOnlyDelta::Args { id, text }.into(),
            provider_raw: None,
        })?;
        if let Some(at) = self.laws.call_part(id)
            && let Some(Part::ToolCall(call)) = self.parts.get_mut(at)
        {
            call.id = id.clone();
            self.interleaved.0.insert(id.address(), at);
        }
        Ok(())
    }

    /// Takes the next delta; one that breaks a law changes nothing.
    pub fn consume(&mut self, delta: &Delta<&str>) -> Result<(), ContractViolation> {
        let destination = self.laws.check(delta)?;
        match (delta.payload, destination) {
            (Payload::Start { model_id, request_id }, _) => {
                self.status = Status::Started;
                self.model_id = model_id.into();
                self.request_id = request_id.into();
            }
            (
                Payload::Text { text, attributes, .. } | Payload::Thinking { text, attributes, .. },
                destination,
            ) => {
                if let Some(logprobs) = attributes.logprobs {
                    Arc::make_mut(self.logprobs.get_or_insert_default()).append(logprobs);
                }
                self.text_part(&delta.payload, destination, text, &attributes);
            }
            (Payload::ToolCallStart { id, name, input_format, provider_state, .. }, _) => {
                self.calls.push(self.parts.len());
                self.parts.push(Part::ToolCall(ToolCall {
                    id: id.into(),
                    name: name.into(),
                    args: String::new(),
                    input_format,
                    ended: false,
                    incomplete: false,
                    provider_state: provider_state.map(Into::into),
                }));
            }
            (Payload::ToolCallArgs { text, .. }, Destination::Part(at)) => {
                if let Some(Part::ToolCall(call)) = self.parts.get_mut(at) {
                    call.args.push_str(text);
                }
            }
            (Payload::ToolCallEnd { incomplete, provider_state, .. }, Destination::Part(at)) => {
                if let Some(Part::ToolCall(call)) = self.parts.get_mut(at) {
                    call.ended = true;
                    call.incomplete = incomplete;
                    if let Some(state) = provider_state {
                        call.provider_state = Some(state.into());
                    }
                }
            }
            (Payload::Usage(usage), _) => {
                self.usage.get_or_insert_default().replace(&usage);
            }
            (
                Payload::Done { finish_reason, raw_finish_reason, model_id, details, warnings },
                _,
            ) => {
                self.status = Status::Done;
                self.details = details.map(Into::into);
                self.warnings = warnings.map(Into::into);
                if let Some(model_id) = model_id {
                    self.model_id = model_id.into();
                }
                let raw_finish_reason = raw_finish_reason.map(Into::into);
                self.terminal = Some(Terminal::Done { finish_reason, raw_finish_reason });
            }
            (Payload::Error(failure), _) => {
                self.status = Status::Error;
                self.warnings = failure.warnings.map(Into::into);
                let failure = failure.map(&mut |text| Box::<str>::from(*text));
                self.terminal = Some(Terminal::Error(failure));
            }
            (Payload::Part { part, .. }, _) => self.parts.push(Part::Whole(part.into())),
            // The laws give arguments and ends of calls a part.  The end of a text part changes no message.
            (
                Payload::ToolCallArgs { .. }
                | Payload::ToolCallEnd { .. }
                | Payload::PartEnd { .. },
                _,
            ) => {}
        }
        Ok(())
    }

    fn text_part(
        &mut self,
        payload: &Payload<&str>,
        destination: Destination,
        text: &str,
        attributes: &TextAttributes<&str>,
    ) {
        if let Destination::Part(at) = destination {
            if let Some(Part::Text(part) | Part::Thinking(part)) = self.parts.get_mut(at) {
                part.append(text, attributes);
            }
            return;
        }
        let text_so_far = String::with_capacity(text.len().max(FIRST_BYTES));
        let mut part = TextPart { text: text_so_far, ..TextPart::default() };
        part.append(text, attributes);
        self.parts.push(match payload {
            Payload::Thinking { .. } => Part::Thinking(part),
            _ => Part::Text(part),
        });
    }
}
