//! `MessageAssembler`: folds deltas into a message (`idle → started → done | error`).
//!
//! In: deltas from a decoder, a batch or the caller.  Out: parts in the order of their numbers, usage, terminal.
//!
//! Laws: a delta that breaks a law of the contract changes nothing.  Text is appended and never copied again, so the cost is
//! linear in the input.

use std::sync::Arc;

use crate::contract::{
    CallId, ContractViolation, Delta, DeltaKind, Destination, Failure, FinishReason, InputFormat,
    Laws, Logprobs, Payload, TextAttributes, TextOnlyDelta, Usage,
};

/// State of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Status {
    /// No delta was consumed.
    #[default]
    Idle,
    /// `start` was consumed.
    Started,
    /// `done` was consumed.
    Done,
    /// `error` was consumed.
    Error,
}

impl Status {
    /// Return the name of the state in the public API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Started => "started",
            Self::Done => "done",
            Self::Error => "error",
        }
    }
}

/// Text part with its attributes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TextPart {
    /// Text received so far.
    pub text: String,
    /// JSON arrays of annotations, one for each delta that had any.
    pub annotations: Vec<Box<str>>,
    /// True for a refusal.
    pub refusal: bool,
    /// True for content that the provider withholds.
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
    /// Id of the call, unique in the run.
    pub id: CallId,
    /// Name of the tool.
    pub name: Box<str>,
    /// Argument text received so far.
    pub args: String,
    /// Format of the argument text.
    pub input_format: InputFormat,
    /// True after the end of the call.
    pub ended: bool,
    /// True for a call whose arguments were cut off.
    pub incomplete: bool,
    /// JSON object `{dialect, modelId, data}`.
    pub provider_state: Option<Box<str>>,
}

/// One part of the message.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// Visible text.
    Text(TextPart),
    /// Thinking (reasoning).
    Thinking(TextPart),
    /// Tool call.
    ToolCall(ToolCall),
    /// Part that is emitted in one delta: a JSON object `{kind, payload, providerState?}`.
    Whole(Box<str>),
}

impl Part {
    fn has_text(&self) -> bool {
        matches!(self, Self::Text(part) if !part.text.is_empty())
    }
}

/// End of a message.
#[derive(Clone, Debug, PartialEq)]
pub enum Terminal {
    /// Normal end.
    Done {
        /// Finish reason in the vocabulary of the contract.
        finish_reason: FinishReason,
        /// Finish reason as the provider wrote it.
        raw_finish_reason: Option<Box<str>>,
    },
    /// End in an error.
    Error(Failure<Box<str>>),
}

/// Metadata of a message: everything but its parts and log probabilities.
///
/// An assembler shares it with the messages that were made of the fold, so that a message can outlive the text of its parts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metadata {
    /// Id of the model that answers, as the stream named it last.
    pub model_id: Box<str>,
    /// Id of the response.
    pub request_id: Box<str>,
    /// Token counts, if the stream had any.
    pub usage: Option<Usage<String>>,
    /// End of the message, if it has ended.
    pub terminal: Option<Terminal>,
    /// JSON array of the terminal's warnings.
    pub warnings: Option<Box<str>>,
    /// JSON object of the terminal's details, under the provider's names.
    pub details: Option<Box<str>>,
}

impl Metadata {
    /// Return the finish reason of a normal end, with the provider's own word.
    pub fn done(&self) -> Option<(FinishReason, Option<&str>)> {
        match &self.terminal {
            Some(Terminal::Done { finish_reason, raw_finish_reason }) => {
                Some((*finish_reason, raw_finish_reason.as_deref()))
            }
            _ => None,
        }
    }
}

/// Initial capacity of a text.  Growth from a few bytes would copy a short answer five times.
const FIRST_BYTES: usize = 128;

/// Message under construction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MessageAssembler {
    laws: Laws,
    status: Status,
    /// Shared with snapshots.  The record is copied only if it changes while a snapshot is alive.
    metadata: Arc<Metadata>,
    parts: Vec<Part>,
    /// True after the first visible text.  Readers ask after each feed, and may not look at all parts each time.
    has_text: bool,
    /// Part numbers of the tool calls, in order.
    calls: Vec<usize>,
    /// Shared with snapshots.  The list is copied only if tokens arrive while a snapshot is alive.
    logprobs: Option<Arc<Logprobs>>,
}

impl MessageAssembler {
    /// Return the state of the message.
    pub fn status(&self) -> Status {
        self.status
    }

    /// Return the sequence number of the last delta; 0 before the first.
    pub fn last_seq(&self) -> u64 {
        self.laws.last_seq()
    }

    /// Return the metadata so far.
    pub fn metadata(&self) -> &Arc<Metadata> {
        &self.metadata
    }

    /// Return the id of the model that answers, as the stream named it last.
    pub fn model_id(&self) -> &str {
        &self.metadata.model_id
    }

    /// Return the id of the response.
    pub fn request_id(&self) -> &str {
        &self.metadata.request_id
    }

    /// Return the parts in order.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Return true after the first visible text.
    pub fn has_text(&self) -> bool {
        self.has_text
    }

    /// Return the message without the parts for which `is_left_out` is true, to be read.  It cannot consume more deltas, because
    /// the other parts get new numbers.
    #[must_use]
    pub fn without(&self, is_left_out: impl Fn(usize, &Part) -> bool) -> Self {
        let mut message = self.clone();
        let mut index = 0;
        message.parts.retain(|part| {
            index += 1;
            !is_left_out(index - 1, part)
        });
        let parts = message.parts.iter().enumerate();
        let calls = parts.filter(|(_, part)| matches!(part, Part::ToolCall(_)));
        message.calls = calls.map(|(at, _)| at).collect();
        message.has_text = message.parts.iter().any(Part::has_text);
        message
    }

    /// Return the tool calls in order, each with its part number.
    pub fn tool_calls(&self) -> impl Iterator<Item = (usize, &ToolCall)> {
        self.calls.iter().filter_map(|at| match self.parts.get(*at) {
            Some(Part::ToolCall(call)) => Some((*at, call)),
            _ => None,
        })
    }

    /// Return the token counts, if the stream had any.
    pub fn usage(&self) -> Option<Usage<&str>> {
        self.metadata.usage.as_ref().map(|usage| usage.map(AsRef::as_ref))
    }

    /// Return the log probabilities of all tokens, text and thinking, in the order of the stream.
    pub fn logprobs(&self) -> Option<&Arc<Logprobs>> {
        self.logprobs.as_ref()
    }

    /// Return the end of the message, if it has ended.
    pub fn terminal(&self) -> Option<&Terminal> {
        self.metadata.terminal.as_ref()
    }

    /// Return the JSON object of the terminal's details, under the provider's names.
    pub fn details(&self) -> Option<&str> {
        self.metadata.details.as_deref()
    }

    /// Return the JSON array of the terminal's warnings.
    pub fn warnings(&self) -> Option<&str> {
        self.metadata.warnings.as_deref()
    }

    /// Return the visible text received so far, with all parts joined.
    pub fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            Part::Text(part) => Some(part.text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    /// Consume the next delta, which carries text and no attributes.  The effect is that of [`Self::consume`].
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
                    self.has_text = true;
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
            TextOnlyDelta::Args { part: at, id, text } => {
                if let Some(Part::ToolCall(call)) = self.parts.get_mut(at as usize)
                    && call.id.is_clone_of(id)
                    && !call.ended
                    && self.laws.more_args(seq, text)
                {
                    call.args.push_str(text);
                    return Ok(());
                }
                return self.consume_first_args(seq, at, id, text);
            }
        }
        self.consume(&Delta { seq, payload: delta.into(), provider_raw: None })
    }

    /// Consume the next delta, which carries only token counts.  The effect is that of [`Self::consume`].
    pub fn consume_usage_only(
        &mut self,
        seq: u64,
        usage: &Usage<String>,
    ) -> Result<(), ContractViolation> {
        if self.laws.more_usage(seq) {
            self.metadata_mut().usage.get_or_insert_default().replace(usage);
            return Ok(());
        }
        self.consume(&Delta { seq, payload: usage.into(), provider_raw: None })
    }

    /// Consume arguments under a handle of the id that is new to the assembler, and keep the handle.
    ///
    /// The next arguments of the call are then accepted without comparing the text of the id.
    #[cold]
    fn consume_first_args(
        &mut self,
        seq: u64,
        at: u32,
        id: &CallId,
        text: &str,
    ) -> Result<(), ContractViolation> {
        let payload = TextOnlyDelta::Args { part: at, id, text }.into();
        self.consume(&Delta { seq, payload, provider_raw: None })?;
        if let Some(Part::ToolCall(call)) = self.parts.get_mut(at as usize) {
            call.id = id.clone();
        }
        Ok(())
    }

    /// Consume the next delta.  A delta that breaks a law changes nothing.
    pub fn consume(&mut self, delta: &Delta<&str>) -> Result<(), ContractViolation> {
        let destination = self.laws.check(delta)?;
        match (delta.payload, destination) {
            (Payload::Start { model_id, request_id }, _) => {
                self.status = Status::Started;
                let metadata = self.metadata_mut();
                metadata.model_id = model_id.into();
                metadata.request_id = request_id.into();
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
                self.metadata_mut().usage.get_or_insert_default().replace(&usage);
            }
            (
                Payload::Done { finish_reason, raw_finish_reason, model_id, details, warnings },
                _,
            ) => {
                self.status = Status::Done;
                let metadata = self.metadata_mut();
                metadata.details = details.map(Into::into);
                metadata.warnings = warnings.map(Into::into);
                if let Some(model_id) = model_id {
                    metadata.model_id = model_id.into();
                }
                let raw_finish_reason = raw_finish_reason.map(Into::into);
                metadata.terminal = Some(Terminal::Done { finish_reason, raw_finish_reason });
            }
            (Payload::Error(failure), _) => {
                self.status = Status::Error;
                self.cut_open_calls();
                let metadata = self.metadata_mut();
                metadata.details = failure.details.map(Into::into);
                metadata.warnings = failure.warnings.map(Into::into);
                let failure = failure.map(&mut |text| Box::<str>::from(*text));
                metadata.terminal = Some(Terminal::Error(failure));
            }
            (Payload::Part { part, .. }, _) => self.parts.push(Part::Whole(part.into())),
            // The laws guarantee a part for the arguments and the end of a call.  The end of a text part and a piece of audio do
            // not change the message: the part with the whole audio follows.
            (
                Payload::ToolCallArgs { .. }
                | Payload::ToolCallEnd { .. }
                | Payload::PartEnd { .. }
                | Payload::Audio { .. },
                _,
            ) => {}
        }
        Ok(())
    }

    /// End the calls that an error cut off.
    fn cut_open_calls(&mut self) {
        for &at in &self.calls {
            if let Some(Part::ToolCall(call)) = self.parts.get_mut(at)
                && !call.ended
            {
                call.ended = true;
                call.incomplete = true;
            }
        }
    }

    fn metadata_mut(&mut self) -> &mut Metadata {
        Arc::make_mut(&mut self.metadata)
    }

    fn text_part(
        &mut self,
        payload: &Payload<&str>,
        destination: Destination,
        text: &str,
        attributes: &TextAttributes<&str>,
    ) {
        self.has_text |= !text.is_empty() && matches!(payload, Payload::Text { .. });
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
