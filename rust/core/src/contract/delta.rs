//! Types of the contract: the deltas that all stages after the dialects use.
//!
//! A [`Delta`] is generic over its string type `S`: `Delta<&str>` borrows from a batch, an arena or a Python string, and
//! `Delta<Box<str>>` owns its strings.  Values that the contract leaves open (annotations, provider state, whole parts, raw
//! usage) are valid JSON text without surrounding bytes.  No stage parses them.  Log probabilities are arrays.
//!
//! Laws (checked by [`super::laws`]):
//! - `start` comes first, and one `done` or `error` comes last.
//! - `seq` rises strictly.
//! - A call starts, takes arguments, then ends.
//! - Parts are numbered densely in the order of their first delta.

use std::ops::Deref;
use std::sync::Arc;

use super::failure::Failure;
use super::kinds::{DeltaKind, FinishReason, InputFormat};
use super::logprobs::Logprobs;

/// Version of the contract; `CONTRACT_VERSION` in Python.
pub const CONTRACT_VERSION: &str = "1.6";

/// Cumulative token counts of a stream.  An unknown count is `None`, never 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Usage<S> {
    /// Tokens of the whole prompt, including cached ones.
    pub input: Option<u64>,
    /// Generated tokens, including reasoning.
    pub output: Option<u64>,
    /// `input + output`; `None` if either is unknown.
    pub total: Option<u64>,
    /// Cost in US dollars, if the provider states it.
    pub cost: Option<f64>,
    /// Prompt tokens read from a cache.
    pub cache_read: Option<u64>,
    /// Prompt tokens written to a cache.
    pub cache_write: Option<u64>,
    /// Generated tokens spent on reasoning.
    pub reasoning: Option<u64>,
    /// JSON object `{audioInputTokens?, audioOutputTokens?, service_tier?, processing?, billedCalls?, raw?}`.
    pub details: Option<S>,
}

impl<S> Default for Usage<S> {
    fn default() -> Self {
        Self {
            input: None,
            output: None,
            total: None,
            cost: None,
            cache_read: None,
            cache_write: None,
            reasoning: None,
            details: None,
        }
    }
}

/// String type of a delta, and its container of log probabilities, which is borrowed or owned like the strings.
///
/// Deltas name the container as a separate type parameter.  Otherwise the compiler would not shorten the lifetime of a
/// borrowed delta.
pub trait Text: AsRef<str> {
    /// Container of log probabilities.
    type Logprobs: Deref<Target = Logprobs>;
}

impl<'a> Text for &'a str {
    type Logprobs = &'a Logprobs;
}

impl Text for Box<str> {
    type Logprobs = Arc<Logprobs>;
}

/// Attributes of a text or thinking delta.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TextAttributes<S: Text, L = <S as Text>::Logprobs> {
    /// JSON array of citations and other annotations.
    pub annotations: Option<S>,
    /// The text is a refusal.
    pub refusal: bool,
    /// The reasoning is withheld, and only its provider state exists.
    pub redacted: bool,
    /// `{tokens, logprobs, tokenIds?, top?}`, as arrays.
    pub logprobs: Option<L>,
    /// JSON object `{dialect, modelId, data}`.
    pub provider_state: Option<S>,
}

impl<S: Text, L> Default for TextAttributes<S, L> {
    fn default() -> Self {
        Self {
            annotations: None,
            refusal: false,
            redacted: false,
            logprobs: None,
            provider_state: None,
        }
    }
}

impl<S: Text, L> TextAttributes<S, L> {
    /// Return true if a delta with these attributes may have an empty `textDelta`.
    pub fn allow_empty_text(&self) -> bool {
        self.annotations.is_some()
            || self.redacted
            || self.logprobs.is_some()
            || self.provider_state.is_some()
    }
}

/// Content of a delta: one variant for each kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Payload<S: Text, L = <S as Text>::Logprobs> {
    /// `{"modelId": "m", "requestId": "r"}`
    Start {
        /// Model that answers; "" if unknown.
        model_id: S,
        /// Response id of the body, or its replacement.
        request_id: S,
    },
    /// `{"textDelta": "Hel", "partIndex": 0}`
    Text {
        /// New text.
        text: S,
        /// Number of the part.
        part_index: Option<u32>,
        /// Attributes of the delta.
        attributes: TextAttributes<S, L>,
    },
    /// `{"textDelta": "Let me see", "partIndex": 0}`
    Thinking {
        /// New text.
        text: S,
        /// Number of the part.
        part_index: Option<u32>,
        /// Attributes of the delta.
        attributes: TextAttributes<S, L>,
    },
    /// `{"toolCallId": "call_1", "toolName": "add", "partIndex": 1}`
    ToolCallStart {
        /// Id of the call, unique in the run.
        id: S,
        /// Name of the tool.
        name: S,
        /// Number of the part.
        part_index: Option<u32>,
        /// Format of the arguments; JSON by default.
        input_format: InputFormat,
        /// JSON object `{dialect, modelId, data}`.
        provider_state: Option<S>,
    },
    /// `{"toolCallId": "call_1", "argsTextDelta": "{\"a\"", "partIndex": 1}`
    ToolCallArgs {
        /// Id of the call.
        id: S,
        /// New text of the arguments.
        text: S,
        /// Number of the part.
        part_index: Option<u32>,
    },
    /// `{"toolCallId": "call_1", "partIndex": 1}`
    ToolCallEnd {
        /// Id of the call.
        id: S,
        /// Number of the part.
        part_index: Option<u32>,
        /// The arguments were cut off, so the call must not be run.
        incomplete: bool,
        /// JSON object `{dialect, modelId, data}`.
        provider_state: Option<S>,
    },
    /// `{"inputTokens": 9, "outputTokens": 2, "totalTokens": 11}`
    Usage(Usage<S>),
    /// `{"finishReason": "stop"}`
    Done {
        /// Finish reason of the contract.
        finish_reason: FinishReason,
        /// Finish reason as the provider wrote it.
        raw_finish_reason: Option<S>,
        /// Model that answered, if it differs from the model of `start`.
        model_id: Option<S>,
        /// JSON object of facts without a member in the contract, under the provider's names (`stop_sequence` …).
        details: Option<S>,
        /// JSON array of `{code, message, offset?}`.
        warnings: Option<S>,
    },
    /// `{"errorCode": "overloaded", "message": "…", "retryable": true}`
    Error(Failure<S>),
    /// `{"partIndex": 2, "part": {"kind": "provider", "payload": {…}}}`
    Part {
        /// Number of the part.
        part_index: Option<u32>,
        /// JSON object `{kind, payload, providerState?}`.
        part: S,
    },
    /// `{"partIndex": 0}`
    PartEnd {
        /// Number of the text or thinking part that ended.
        part_index: u32,
    },
    /// `{"audioDelta": "UklGRg=="}`
    Audio {
        /// New data in base64, as the provider cut it.
        data: S,
    },
}

/// One event of a stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delta<S: Text, L = <S as Text>::Logprobs> {
    /// Sequence number; rises strictly from 1 within a stream.
    pub seq: u64,
    /// Content of the delta.
    pub payload: Payload<S, L>,
    /// JSON of the frame, on the first delta of the frame and only if requested.
    pub provider_raw: Option<S>,
}

impl<S> Usage<S> {
    /// Return the same counts over another string type.
    pub fn map<'a, T>(&'a self, f: impl FnOnce(&'a S) -> T) -> Usage<T> {
        Usage { details: self.details.as_ref().map(f), ..self.without_details() }
    }
}

impl<S> Usage<S> {
    /// Return the counts without the details.
    #[inline]
    pub fn without_details<T>(&self) -> Usage<T> {
        Usage {
            input: self.input,
            output: self.output,
            total: self.total,
            cost: self.cost,
            cache_read: self.cache_read,
            cache_write: self.cache_write,
            reasoning: self.reasoning,
            details: None,
        }
    }
}

impl Usage<String> {
    /// Replace the counts by those of a later record, and reuse the memory of the details.
    pub fn replace<S: AsRef<str>>(&mut self, later: &Usage<S>) {
        let Usage { input, output, total, cost, cache_read, cache_write, reasoning, ref details } =
            *later;
        (self.input, self.output, self.total, self.cost) = (input, output, total, cost);
        (self.cache_read, self.cache_write, self.reasoning) = (cache_read, cache_write, reasoning);
        match (&mut self.details, details.as_ref().map(AsRef::as_ref)) {
            (Some(buffer), Some(details)) => {
                buffer.clear();
                buffer.push_str(details);
            }
            (own, details) => *own = details.map(str::to_owned),
        }
    }
}

impl<'a> From<&'a Usage<String>> for Payload<&'a str> {
    fn from(usage: &'a Usage<String>) -> Self {
        Self::Usage(usage.map(String::as_str))
    }
}

impl<S: Text> TextAttributes<S> {
    fn map<'a, T: Text>(
        &'a self,
        f: &mut impl FnMut(&'a S) -> T,
        logprobs: impl FnOnce(&'a Logprobs) -> T::Logprobs,
    ) -> TextAttributes<T> {
        TextAttributes {
            annotations: self.annotations.as_ref().map(&mut *f),
            refusal: self.refusal,
            redacted: self.redacted,
            logprobs: self.logprobs.as_deref().map(logprobs),
            provider_state: self.provider_state.as_ref().map(&mut *f),
        }
    }
}

impl<S: Text> Payload<S> {
    /// Return the kind of the delta.
    pub fn kind(&self) -> DeltaKind {
        match self {
            Self::Start { .. } => DeltaKind::Start,
            Self::Text { .. } => DeltaKind::Text,
            Self::Thinking { .. } => DeltaKind::Thinking,
            Self::ToolCallStart { .. } => DeltaKind::ToolCallStart,
            Self::ToolCallArgs { .. } => DeltaKind::ToolCallArgs,
            Self::ToolCallEnd { .. } => DeltaKind::ToolCallEnd,
            Self::Usage(_) => DeltaKind::Usage,
            Self::Done { .. } => DeltaKind::Done,
            Self::Error(_) => DeltaKind::Error,
            Self::Part { .. } => DeltaKind::Part,
            Self::PartEnd { .. } => DeltaKind::PartEnd,
            Self::Audio { .. } => DeltaKind::Audio,
        }
    }

    /// Return the same payload over another string type.
    fn map<'a, T: Text>(
        &'a self,
        mut f: impl FnMut(&'a S) -> T,
        logprobs: impl FnOnce(&'a Logprobs) -> T::Logprobs,
    ) -> Payload<T> {
        let f = &mut f;
        match self {
            Self::Start { model_id, request_id } => {
                Payload::Start { model_id: f(model_id), request_id: f(request_id) }
            }
            Self::Text { text, part_index, attributes } => {
                let attributes = attributes.map(f, logprobs);
                Payload::Text { text: f(text), part_index: *part_index, attributes }
            }
            Self::Thinking { text, part_index, attributes } => {
                let attributes = attributes.map(f, logprobs);
                Payload::Thinking { text: f(text), part_index: *part_index, attributes }
            }
            Self::ToolCallStart { id, name, part_index, input_format, provider_state } => {
                Payload::ToolCallStart {
                    id: f(id),
                    name: f(name),
                    part_index: *part_index,
                    input_format: *input_format,
                    provider_state: provider_state.as_ref().map(f),
                }
            }
            Self::ToolCallArgs { id, text, part_index } => {
                Payload::ToolCallArgs { id: f(id), text: f(text), part_index: *part_index }
            }
            Self::ToolCallEnd { id, part_index, incomplete, provider_state } => {
                Payload::ToolCallEnd {
                    id: f(id),
                    part_index: *part_index,
                    incomplete: *incomplete,
                    provider_state: provider_state.as_ref().map(f),
                }
            }
            Self::Usage(usage) => Payload::Usage(usage.map(f)),
            Self::Done { finish_reason, raw_finish_reason, model_id, details, warnings } => {
                Payload::Done {
                    finish_reason: *finish_reason,
                    raw_finish_reason: raw_finish_reason.as_ref().map(&mut *f),
                    model_id: model_id.as_ref().map(&mut *f),
                    details: details.as_ref().map(&mut *f),
                    warnings: warnings.as_ref().map(f),
                }
            }
            Self::Error(failure) => Payload::Error(failure.map(f)),
            Self::Part { part_index, part } => {
                Payload::Part { part_index: *part_index, part: f(part) }
            }
            Self::PartEnd { part_index } => Payload::PartEnd { part_index: *part_index },
            Self::Audio { data } => Payload::Audio { data: f(data) },
        }
    }
}

impl<S: Text> Payload<S> {
    /// Return a payload that borrows from this one.
    pub fn as_deref(&self) -> Payload<&str> {
        self.map(AsRef::as_ref, |logprobs| logprobs)
    }

    /// Return a copy that owns its strings.
    pub fn to_owned(&self) -> Payload<Box<str>> {
        self.map(|text| text.as_ref().into(), |logprobs| Arc::new(logprobs.clone()))
    }
}

impl<S: Text> Delta<S> {
    /// Return a delta that borrows from this one.
    pub fn as_deref(&self) -> Delta<&str> {
        Delta {
            seq: self.seq,
            payload: self.payload.as_deref(),
            provider_raw: self.provider_raw.as_ref().map(AsRef::as_ref),
        }
    }

    /// Return a copy that owns its strings.
    pub fn to_owned(&self) -> Delta<Box<str>> {
        Delta {
            seq: self.seq,
            payload: self.payload.to_owned(),
            provider_raw: self.provider_raw.as_ref().map(|raw| raw.as_ref().into()),
        }
    }
}
