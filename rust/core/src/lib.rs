//! deltafold: any LLM provider's byte stream → one delta contract → the final message.
//!
//! ```text
//! bytes ─► framing ─► dialect.read ─► dialect.apply ─► markup? ─► finisher ─► Output
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

pub mod assemble;
pub mod base64;
pub mod batch;
pub mod call_id;
pub mod decoder;
pub mod delta;
pub mod detect;
pub mod dialect;
pub mod error;
pub mod finisher;
pub mod framing;
pub mod laws;
pub mod limits;
pub mod logprobs;
pub mod markup;
pub mod plain;
pub mod provider_error;
pub mod scan;
pub mod sniff;
pub mod warnings;
pub mod wire;

pub use assemble::MessageAssembler;
pub use batch::DeltaBatch;
pub use call_id::CallId;
pub use decoder::Decoder;
pub use delta::{Delta, DeltaKind, ErrorCode, FinishReason, Output, Payload};
pub use limits::Limits;
pub use logprobs::Logprobs;
