//! deltafold: any LLM provider's byte stream → one delta contract → the final message.
//!
//! ```text
//! bytes ─► framing ─► dialect.read ─► dialect.apply ─► markup? ─► emitter ─► Output
//!          SSE         borrows an       owns the          think,      seq, ids,   DeltaBatch, or the
//!          NDJSON      Event from a     dialect's         Qwen …      pairing,    MessageAssembler itself
//!          JSON array  frame's JSON     state                         terminal
//!          AWS frames
//! ```
//!
//! A stage imports only what the stages before it put out: framing knows no provider, dialects know no messages, the
//! assembler knows no provider, and nothing here knows Python, clocks, randomness or I/O.
//!
//! Laws: the same bytes give the same deltas in any chunking; every stream ends in exactly one terminal; bytes are
//! hostile, so nothing panics, everything is bounded, and what was received before an error stays.

#![forbid(unsafe_code)]

pub mod base64;
pub mod contract;
pub mod decoder;
pub mod detect;
pub mod dialect;
pub mod emit;
pub mod error;
pub mod facts;
pub mod fold;
pub mod framing;
pub mod json;
pub mod limits;
pub mod markup;
pub mod provider_error;
pub mod template;

pub use contract::{
    CallId, Delta, DeltaBatch, DeltaKind, ErrorCode, FinishReason, Logprobs, Output, Payload,
};
pub use decoder::Decoder;
pub use fold::MessageAssembler;
pub use limits::Limits;
