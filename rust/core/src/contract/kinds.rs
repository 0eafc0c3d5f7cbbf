//! Closed lists of the contract: kinds of deltas, finish reasons, error codes and formats of input.
//!
//! Law: a list grows only with the version of the contract.

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
