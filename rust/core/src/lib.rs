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
//! A stage imports only the output types of the stages before it.  Framing is independent of providers, dialects are
//! independent of messages, and the assembler is independent of providers.  The crate uses no Python, clock, randomness or
//! I/O.
//!
//! Laws: the same bytes give the same deltas in any chunking.  Every stream ends in exactly one terminal.  Input bytes are
//! untrusted: nothing panics, all memory is bounded, and content received before an error is kept.

#![forbid(unsafe_code)]

pub mod base64;
pub mod contract;
pub mod decoder;
pub mod detect;
pub mod dialect;
pub mod emit;
pub mod encode;
pub mod facts;
pub mod fold;
pub mod framing;
pub mod json;
pub mod limits;
pub mod markup;
pub mod provider_error;
pub mod sink;
pub mod stencil;
pub mod template;

pub use contract::{
    CallId, Delta, DeltaBatch, DeltaKind, ErrorCode, FinishReason, Logprobs, Output, Payload,
};
pub use decoder::Decoder;
pub use fold::MessageAssembler;
pub use limits::Limits;
