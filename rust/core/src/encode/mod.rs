//! Encoding: deltas of the contract written out as the stream of any protocol.
//!
//! ```text
//! deltas ─► Laws ─► Sequencer ─► Writer ─► Out ─► bytes, or one JSON object an event
//!                   head, order,  words of   framing
//!                   calls, end    a target
//! ```
//!
//! The mechanism is here and does not depend on a target.  A [`Writer`] writes the words of one target.  The mechanism
//! decides the order: which parts are open together, when a call is written, when the stream ends.  Each target has a module
//! of its name with its writer, which takes the tables of its dialect, and a row in [`TARGETS`].
//!
//! Laws (docs/protocols/encoding.md#laws):
//! - The same deltas give the same bytes, however they were batched.
//! - A stream begins with its head and ends in one terminal.  A failure of the source is the target's own error, and last.
//! - Nothing is made up.  What the target cannot say becomes a note.

mod ag_ui;
mod ai_sdk;
pub mod annotations;
mod answers;
mod anthropic_messages;
mod arguments;
mod audio;
mod bedrock_converse;
pub(crate) mod calls;
mod date;
mod draft;
mod encoder;
pub mod errors;
mod escape;
mod facts;
mod finish;
mod freeform;
mod gemini;
mod handover;
mod langchain;
mod logprobs;
mod notes;
mod ollama;
mod openai_chat;
mod openai_responses;
mod out;
mod parts;
mod registry;
mod run;
mod run_facts;
mod sequencer;
mod settings;
mod spans;
mod state;
mod stream;
mod usage;
mod waiting;
mod whole;
mod writer;

pub use answers::AnswersEncoder;
pub use arguments::argument_object;
pub use date::rfc3339;
pub use draft::{Draft, Head};
pub use encoder::Encoder;
pub use escape::{write_compact, write_escaped};
pub use facts::{Fact, facts_of, write_facts};
pub use finish::{finish_word, note_reason};
pub use freeform::Freeform;
pub use handover::of_serving_model;
pub use notes::{Note, Notes};
pub use out::{Form, Out, Prefix, event_headers};
pub use parts::{Call, Extras, TextKind, TextPart, WholeContent, WholePart};
pub use registry::{TARGETS, Target, find};
pub use run::{
    CallStatus, FilePlace, Run, RunCall, RunContent, RunEnd, RunEvent, RunFile, RunResult,
    RunStatus, WrittenCall,
};
pub use sequencer::Sequencer;
pub use settings::{DeclinedCalls, OWN_RESPONSE_FIELDS, Place, Settings, ToolKind, ToolName};
pub use spans::{Span, Spans};
pub use state::{Owner, State, call_envelope, empty_envelope, envelope};
pub use usage::{Counts, optional};
pub use whole::{Headers, WholeBody, whole_body, whole_body_of_answers};
pub use writer::{Answers, Ending, Order, Writer};
