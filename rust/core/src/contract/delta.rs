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

use super::logprobs::Logprobs;

/// Version of the contract; `CONTRACT_VERSION` in Python.
pub const CONTRACT_VERSION: &str = "1.5";

macro_rules! closed_list {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$vmeta])* $variant,)+ }

        impl $name {
            /// All members, in the order of the contract.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Return the wire name.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }

            /// Return the member with this wire name.
            pub fn from_wire(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}

closed_list! {
    /// Kind of a delta.
    DeltaKind {
        /// `{modelId, requestId}`: the start of the stream.
        Start = "start",
        /// `{textDelta, partIndex, …}`: visible text.
        Text = "text",
        /// `{textDelta, partIndex, …}`: thinking (reasoning).
        Thinking = "thinking",
        /// `{toolCallId, toolName, …}`: the start of a tool call.
        ToolCallStart = "tool_call_start",
        /// `{toolCallId, argsTextDelta, partIndex}`: more argument text of a tool call (`partIndex` since contract 1.5).
        ToolCallArgs = "tool_call_args",
        /// `{toolCallId, partIndex, incomplete?}`: the end of a tool call (`partIndex` since contract 1.5).
        ToolCallEnd = "tool_call_end",
        /// Cumulative counts.  Each record replaces the one before.
        Usage = "usage",
        /// Normal end of the stream.
        Done = "done",
        /// End of the stream in an error.
        Error = "error",
        /// A whole part in one delta (contract 1.1).
        Part = "part",
        /// `{partIndex}`: the end of a text or thinking part (contract 1.2).
        PartEnd = "part_end",
        /// `{audioDelta}`: a piece of audio as it arrives (contract 1.5).  A part with the whole audio follows.
        Audio = "audio",
    }
}

closed_list! {
    /// Reason for the end of a message.
    FinishReason {
        /// The model completed its answer.
        Stop = "stop",
        /// A token limit was reached.
        Length = "length",
        /// The model called tools that the caller must run.
        ToolCalls = "tool_calls",
        /// A filter cut the answer.
        ContentFilter = "content_filter",
        /// The model refused.
        Refusal = "refusal",
        /// The provider paused the turn; the caller must send it back to continue.
        Pause = "pause",
        /// A normal end of the stream with a failure reason and without an error object.
        Error = "error",
        /// A reason outside the list.
        Other = "other",
    }
}

closed_list! {
    /// Cause of a failed stream, see docs/protocols/decoding.md#errors.
    ErrorCode {
        /// The key is missing or wrong.
        Authentication = "authentication",
        /// The key lacks a permission.
        Permission = "permission",
        /// The model or resource does not exist.
        NotFound = "not_found",
        /// The request is malformed.
        InvalidRequest = "invalid_request",
        /// The prompt is too long.
        ContextLengthExceeded = "context_length_exceeded",
        /// Reasoning or a signature of the history was refused: it is bound to another conversation, or it is not valid.
        ReplayRefused = "replay_refused",
        /// Too many requests.
        RateLimited = "rate_limited",
        /// The credit or quota is used up.
        QuotaExceeded = "quota_exceeded",
        /// The provider lacks capacity at the moment.
        Overloaded = "overloaded",
        /// The provider failed.
        ServerError = "server_error",
        /// A time limit of the provider, the transport or the caller passed.
        Timeout = "timeout",
        /// The stream stopped without a sign of its end.
        ConnectionLost = "connection_lost",
        /// A policy blocked the prompt or the answer.
        ContentBlocked = "content_blocked",
        /// The bytes break their protocol.
        ProtocolError = "protocol_error",
        /// The caller cancelled the stream.
        Cancelled = "cancelled",
    }
}

impl FinishReason {
    /// Return true if the model ended by itself, so that the message is whole.
    pub fn says_done(self) -> bool {
        matches!(self, Self::Stop | Self::ToolCalls)
    }

    /// Return the reason why no tool call of the answer may run; `None` if whole calls may.
    ///
    /// Source: the providers' pages on their finish reasons, listed in docs/concepts/cuts.md.
    pub fn forbids_calls(self) -> Option<&'static str> {
        match self {
            Self::Refusal => Some("the answer was refused"),
            Self::ContentFilter => Some("a filter stopped the answer"),
            Self::Error => Some("the answer ended with an error"),
            Self::Stop | Self::Length | Self::ToolCalls | Self::Pause | Self::Other => None,
        }
    }
}

impl ErrorCode {
    /// Return true if the same request may succeed later.  A statement of the provider takes precedence.
    pub fn retryable(self) -> bool {
        matches!(
            self,
            Self::RateLimited
                | Self::Overloaded
                | Self::ServerError
                | Self::Timeout
                | Self::ConnectionLost
        )
    }
}

closed_list! {
    /// Format of the arguments of a tool call.
    InputFormat {
        /// JSON text.
        Json = "json",
        /// Free text (custom tools); the part's arguments are `{"input": text}`.
        Text = "text",
    }
}

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

/// Failure that ends a stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Failure<S> {
    /// Code of the contract.
    pub code: ErrorCode,
    /// Message of the provider, or one written by deltafold.
    pub message: Option<S>,
    /// True if the same request may succeed later.
    pub retryable: Option<bool>,
    /// Seconds to wait before a retry.
    pub retry_after: Option<f64>,
    /// HTTP status.
    pub status: Option<u16>,
    /// Error code of the provider.
    pub provider_code: Option<S>,
    /// HTTP request id, for the support of the provider.
    pub http_request_id: Option<S>,
    /// JSON object with facts of the answer so far, under the provider's names.
    pub details: Option<S>,
    /// JSON array of `{code, message, offset?}`.
    pub warnings: Option<S>,
    /// JSON of the error as the provider wrote it.  It is no member of the wire: a gateway would show it to its client.
    pub body: Option<S>,
}

impl<S> Failure<S> {
    /// Build a failure with a code and a message only.
    pub fn new(code: ErrorCode, message: S) -> Self {
        Self {
            code,
            message: Some(message),
            retryable: Some(code.retryable()),
            retry_after: None,
            status: None,
            provider_code: None,
            http_request_id: None,
            details: None,
            warnings: None,
            body: None,
        }
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

impl<S> Failure<S> {
    /// Return the same failure over another string type.
    pub fn map<'a, T>(&'a self, f: &mut impl FnMut(&'a S) -> T) -> Failure<T> {
        Failure {
            code: self.code,
            message: self.message.as_ref().map(&mut *f),
            retryable: self.retryable,
            retry_after: self.retry_after,
            status: self.status,
            provider_code: self.provider_code.as_ref().map(&mut *f),
            http_request_id: self.http_request_id.as_ref().map(&mut *f),
            details: self.details.as_ref().map(&mut *f),
            warnings: self.warnings.as_ref().map(&mut *f),
            body: self.body.as_ref().map(&mut *f),
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
