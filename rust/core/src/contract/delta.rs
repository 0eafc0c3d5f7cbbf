//! THE CONTRACT as types: what every stage after the dialects speaks.
//!
//! A [`Delta`] is generic over its string type `S`: `Delta<&str>` borrows from a batch, an arena or a Python string,
//! `Delta<Box<str>>` owns.  Values that the contract leaves open (annotations, provider state, whole parts, raw usage)
//! are JSON text, valid and without a byte around it; nobody parses them on the way.  Log probabilities are arrays.
//!
//! Laws (checked by [`super::laws`]): `start` first; one `done` or `error` last; `seq` rises strictly; calls start, then
//! take arguments, then end; parts are numbered densely in the order of their first delta.

use std::ops::Deref;
use std::sync::Arc;

use super::logprobs::Logprobs;

/// Version of the contract, shown to Python as `CONTRACT_VERSION`.
pub const CONTRACT_VERSION: &str = "1.2";

macro_rules! closed_list {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$vmeta])* $variant,)+ }

        impl $name {
            /// All members, in the order of the contract.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The wire name.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }

            /// The member with this wire name.
            pub fn from_wire(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}

closed_list! {
    /// Kinds of delta.
    DeltaKind {
        /// `{modelId, requestId}`: the stream began.
        Start = "start",
        /// `{textDelta, partIndex, …}`: visible text.
        Text = "text",
        /// `{textDelta, partIndex, …}`: reasoning.
        Thinking = "thinking",
        /// `{toolCallId, toolName, …}`: a tool call began.
        ToolCallStart = "tool_call_start",
        /// `{toolCallId, argsTextDelta}`: more of its arguments' text.
        ToolCallArgs = "tool_call_args",
        /// `{toolCallId, incomplete?}`: its arguments are over.
        ToolCallEnd = "tool_call_end",
        /// Cumulative counts; each record replaces the one before.
        Usage = "usage",
        /// The normal end.
        Done = "done",
        /// The failed end.
        Error = "error",
        /// A whole part at once (contract 1.1).
        Part = "part",
        /// `{partIndex}`: a text or thinking part is over (contract 1.2).
        PartEnd = "part_end",
    }
}

closed_list! {
    /// Why a message ended.
    FinishReason {
        /// The model was done.
        Stop = "stop",
        /// A token limit.
        Length = "length",
        /// The caller must run tools.
        ToolCalls = "tool_calls",
        /// A filter cut the answer.
        ContentFilter = "content_filter",
        /// The model refused.
        Refusal = "refusal",
        /// The provider wants the turn sent back to go on.
        Pause = "pause",
        /// A normal ending with a failure reason and no error object.
        Error = "error",
        /// A reason outside the list.
        Other = "other",
    }
}

closed_list! {
    /// Why a stream failed: mapping.md section 6.
    ErrorCode {
        /// The key is missing or wrong.
        Authentication = "authentication",
        /// The key may not do this.
        Permission = "permission",
        /// Model or resource does not exist.
        NotFound = "not_found",
        /// The request is malformed.
        InvalidRequest = "invalid_request",
        /// The prompt is too long.
        ContextLengthExceeded = "context_length_exceeded",
        /// Too many requests.
        RateLimited = "rate_limited",
        /// Money or quota is used up.
        QuotaExceeded = "quota_exceeded",
        /// The provider has no capacity now.
        Overloaded = "overloaded",
        /// The provider failed.
        ServerError = "server_error",
        /// Somebody waited too long.
        Timeout = "timeout",
        /// The stream stopped without any sign of an end.
        ConnectionLost = "connection_lost",
        /// A policy blocked prompt or answer.
        ContentBlocked = "content_blocked",
        /// The bytes break their protocol.
        ProtocolError = "protocol_error",
        /// The caller gave up.
        Cancelled = "cancelled",
    }
}

impl FinishReason {
    /// Whether the model ended by itself, so that nothing of its message is missing.
    pub fn says_done(self) -> bool {
        matches!(self, Self::Stop | Self::ToolCalls)
    }
}

impl ErrorCode {
    /// Whether the same request may succeed later, where the provider does not say it itself.
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
    /// What the arguments of a call are.
    InputFormat {
        /// JSON text.
        Json = "json",
        /// Free text (custom tools); the part's arguments are `{"input": text}`.
        Text = "text",
    }
}

/// Cumulative token counts of a stream.  Unknown is `None`, never 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Usage<S> {
    /// Tokens of the whole prompt, cached ones included.
    pub input: Option<u64>,
    /// Tokens generated, reasoning included.
    pub output: Option<u64>,
    /// `input + output`; unknown when either is.
    pub total: Option<u64>,
    /// US dollars, where the provider states them.
    pub cost: Option<f64>,
    /// Prompt tokens read from a cache.
    pub cache_read: Option<u64>,
    /// Prompt tokens written to a cache.
    pub cache_write: Option<u64>,
    /// Generated tokens spent on reasoning.
    pub reasoning: Option<u64>,
    /// JSON object `{audioInputTokens?, audioOutputTokens?, raw?}`.
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

/// The string type of a delta, and how a delta over it holds log probabilities: borrowed or owned, like its text.
///
/// Deltas name the second as a parameter of their own, else the compiler would not let a borrowed delta live shorter.
pub trait Text: AsRef<str> {
    /// The log probabilities.
    type Logprobs: Deref<Target = Logprobs>;
}

impl<'a> Text for &'a str {
    type Logprobs = &'a Logprobs;
}

impl Text for Box<str> {
    type Logprobs = Arc<Logprobs>;
}

/// What rides on a text or thinking delta beside its text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TextAttributes<S: Text, L = <S as Text>::Logprobs> {
    /// JSON array of citations and the like.
    pub annotations: Option<S>,
    /// The text is a refusal.
    pub refusal: bool,
    /// The reasoning is withheld; only its provider state exists.
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
    /// Whether an empty `textDelta` may leave with them.
    pub fn allow_empty_text(&self) -> bool {
        self.annotations.is_some()
            || self.redacted
            || self.logprobs.is_some()
            || self.provider_state.is_some()
    }
}

/// A failed end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Failure<S> {
    /// The closed code.
    pub code: ErrorCode,
    /// The provider's words, or ours.
    pub message: Option<S>,
    /// Whether the same request may succeed later.
    pub retryable: Option<bool>,
    /// Seconds to wait.
    pub retry_after: Option<f64>,
    /// HTTP status.
    pub status: Option<u16>,
    /// The provider's own code.
    pub provider_code: Option<S>,
    /// The HTTP request id, for the provider's support.
    pub http_request_id: Option<S>,
    /// JSON array of `{code, message, offset?}`.
    pub warnings: Option<S>,
}

impl<S> Failure<S> {
    /// A failure that says only its code and words.
    pub fn new(code: ErrorCode, message: S) -> Self {
        Self {
            code,
            message: Some(message),
            retryable: Some(code.retryable()),
            retry_after: None,
            status: None,
            provider_code: None,
            http_request_id: None,
            warnings: None,
        }
    }
}

/// One variant a kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Payload<S: Text, L = <S as Text>::Logprobs> {
    /// `{"modelId": "m", "requestId": "r"}`
    Start {
        /// The model that answers; "" when nobody said.
        model_id: S,
        /// The response's id in the body, or its stand-in.
        request_id: S,
    },
    /// `{"textDelta": "Hel", "partIndex": 0}`
    Text {
        /// The new text.
        text: S,
        /// The part it belongs to.
        part_index: Option<u32>,
        /// What rides on it.
        attributes: TextAttributes<S, L>,
    },
    /// `{"textDelta": "Let me see", "partIndex": 0}`
    Thinking {
        /// The new text.
        text: S,
        /// The part it belongs to.
        part_index: Option<u32>,
        /// What rides on it.
        attributes: TextAttributes<S, L>,
    },
    /// `{"toolCallId": "call_1", "toolName": "add", "partIndex": 1}`
    ToolCallStart {
        /// Unique in the run.
        id: S,
        /// The tool's name.
        name: S,
        /// The part that the call is.
        part_index: Option<u32>,
        /// JSON unless said otherwise.
        input_format: InputFormat,
        /// JSON object `{dialect, modelId, data}`.
        provider_state: Option<S>,
    },
    /// `{"toolCallId": "call_1", "argsTextDelta": "{\"a\""}`
    ToolCallArgs {
        /// The call.
        id: S,
        /// The new text of its arguments.
        text: S,
    },
    /// `{"toolCallId": "call_1"}`
    ToolCallEnd {
        /// The call.
        id: S,
        /// Half a call: nobody may run it.
        incomplete: bool,
        /// JSON object `{dialect, modelId, data}`.
        provider_state: Option<S>,
    },
    /// `{"inputTokens": 9, "outputTokens": 2, "totalTokens": 11}`
    Usage(Usage<S>),
    /// `{"finishReason": "stop"}`
    Done {
        /// The closed reason.
        finish_reason: FinishReason,
        /// The provider's own word.
        raw_finish_reason: Option<S>,
        /// The model, where it turned out to be another than `start` said.
        model_id: Option<S>,
        /// JSON object of facts that the contract has no member for, under the provider's names (`stop_sequence` …).
        details: Option<S>,
        /// JSON array of `{code, message, offset?}`.
        warnings: Option<S>,
    },
    /// `{"errorCode": "overloaded", "message": "…", "retryable": true}`
    Error(Failure<S>),
    /// `{"partIndex": 2, "part": {"kind": "provider", "payload": {…}}}`
    Part {
        /// The part's number.
        part_index: Option<u32>,
        /// JSON object `{kind, payload, providerState?}`.
        part: S,
    },
    /// `{"partIndex": 0}`
    PartEnd {
        /// Number of the text or thinking part that is over.
        part_index: u32,
    },
}

/// One step of a stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delta<S: Text, L = <S as Text>::Logprobs> {
    /// Rises strictly from 1 within a stream.
    pub seq: u64,
    /// What happened.
    pub payload: Payload<S, L>,
    /// The frame's JSON, on the first delta of its frame and only when asked for.
    pub provider_raw: Option<S>,
}

impl<S> Usage<S> {
    /// The same counts over another string type.
    pub fn map<'a, T>(&'a self, f: impl FnOnce(&'a S) -> T) -> Usage<T> {
        Usage {
            input: self.input,
            output: self.output,
            total: self.total,
            cost: self.cost,
            cache_read: self.cache_read,
            cache_write: self.cache_write,
            reasoning: self.reasoning,
            details: self.details.as_ref().map(f),
        }
    }
}

impl Usage<String> {
    /// Takes over the counts of a later record, in the memory of this one.
    pub fn replace(&mut self, later: &Usage<&str>) {
        let mut buffer = self.details.take().unwrap_or_default();
        *self = later.map(|details| {
            buffer.clear();
            buffer.push_str(details);
            buffer
        });
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
    /// The same failure over another string type.
    pub fn map<'a, T>(&'a self, f: &mut impl FnMut(&'a S) -> T) -> Failure<T> {
        Failure {
            code: self.code,
            message: self.message.as_ref().map(&mut *f),
            retryable: self.retryable,
            retry_after: self.retry_after,
            status: self.status,
            provider_code: self.provider_code.as_ref().map(&mut *f),
            http_request_id: self.http_request_id.as_ref().map(&mut *f),
            warnings: self.warnings.as_ref().map(&mut *f),
        }
    }
}

impl<S: Text> Payload<S> {
    /// The kind.
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
        }
    }

    /// The same payload over another string type.
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
            Self::ToolCallArgs { id, text } => Payload::ToolCallArgs { id: f(id), text: f(text) },
            Self::ToolCallEnd { id, incomplete, provider_state } => Payload::ToolCallEnd {
                id: f(id),
                incomplete: *incomplete,
                provider_state: provider_state.as_ref().map(f),
            },
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
        }
    }
}

impl<S: Text> Payload<S> {
    /// A view that borrows.
    pub fn as_deref(&self) -> Payload<&str> {
        self.map(AsRef::as_ref, |logprobs| logprobs)
    }

    /// A copy that owns.
    pub fn to_owned(&self) -> Payload<Box<str>> {
        self.map(|text| text.as_ref().into(), |logprobs| Arc::new(logprobs.clone()))
    }
}

impl<S: Text> Delta<S> {
    /// A view that borrows.
    pub fn as_deref(&self) -> Delta<&str> {
        Delta {
            seq: self.seq,
            payload: self.payload.as_deref(),
            provider_raw: self.provider_raw.as_ref().map(AsRef::as_ref),
        }
    }

    /// A copy that owns.
    pub fn to_owned(&self) -> Delta<Box<str>> {
        Delta {
            seq: self.seq,
            payload: self.payload.to_owned(),
            provider_raw: self.provider_raw.as_ref().map(|raw| raw.as_ref().into()),
        }
    }
}
