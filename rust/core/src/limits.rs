//! Every bound that a hostile stream can reach.
//!
//! Reaching one ends the stream in `error{protocol_error}` whose message names the limit; what was received before stays.
//! The default event bound is the one of framing-sse.md part 3 (a signature or an inline image exceeds 1 MiB in real streams).

/// Bounds of one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// Bytes of one framed event, the unterminated line included.  Default 32 MiB.
    pub event_bytes: usize,
    /// Nesting of the JSON of one event.  Default 128.
    pub depth: usize,
    /// Bytes of text, thinking and tool arguments of one message.  Default 256 MiB.
    pub message_bytes: usize,
    /// Parts of one message.  Default 65,536.
    pub parts: usize,
    /// Tool calls of one message.  Default 16,384.
    pub tool_calls: usize,
    /// Different warnings of one stream.  Default 1,000.
    pub warnings: usize,
    /// Bytes of one identifier: a tool call's id, a tool's name, a model's name, a response's id.  Default 64 KiB: some gateways
    /// carry signatures in call ids.
    pub identifier_bytes: usize,
    /// Bytes of provider state and whole provider parts of one message.  Default 128 MiB.
    pub provider_state_bytes: usize,
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
        }
    }
}
