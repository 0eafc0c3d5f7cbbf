//! Bounds of everything that a hostile stream can make grow.
//!
//! A stream that reaches a bound ends in `error{protocol_error}`, whose message names the limit.  Content received before is
//! kept.  The default of `event_bytes` comes from docs/protocols/decoding.md#limits: real signatures and
//! inline images exceed 1 MiB.

/// Bounds of one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// Bytes of one framed event, including a line without its end.  Default 32 MiB.
    pub event_bytes: usize,
    /// Nesting depth of the JSON of one event.  Default 128.
    pub depth: usize,
    /// Bytes of text, thinking and tool arguments of one message.  Default 256 MiB.
    pub message_bytes: usize,
    /// Parts of one message.  Default 65,536.
    pub parts: usize,
    /// Tool calls of one message.  Default 16,384.
    pub tool_calls: usize,
    /// Distinct warnings of one stream.  Default 1,000.
    pub warnings: usize,
    /// Bytes of one identifier: the id of a tool call or a response, the name of a tool or a model.  Default 64 KiB, because
    /// some gateways carry signatures in call ids.
    pub identifier_bytes: usize,
    /// Bytes of provider state and whole provider parts of one message.  Default 128 MiB.
    pub provider_state_bytes: usize,
    /// Answers of one stream, if all are followed.  Default 1,024, eight times what the largest providers allow.  The other
    /// limits hold for each answer.
    pub choices: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            event_bytes: 32 << 20,
            depth: 128,
            message_bytes: 256 << 20,
            parts: 1 << 16,
            tool_calls: 1 << 14,
            warnings: 1_000,
            identifier_bytes: 64 << 10,
            provider_state_bytes: 128 << 20,
            choices: 1_024,
        }
    }
}
