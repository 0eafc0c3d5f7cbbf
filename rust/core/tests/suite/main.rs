//! The tests of the core, in one binary: to link each file by itself would take longer than to run all of them.

#![allow(
    clippy::allow_attributes,
    clippy::expect_used,
    clippy::format_collect,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::too_many_lines,
    clippy::unwrap_used,
    reason = "a test fails loudly, and where it stands"
)]

mod allocations;
mod choices;
mod chunking;
mod conformance;
mod corpus;
mod cost;
mod cutting;
mod detect;
mod encode;
mod encode_answers;
mod encode_any;
mod encode_corpus;
mod encode_faults;
mod encode_runs;
mod facts;
mod first_text;
mod frames;
mod framings;
mod grammar;
mod hostile;
mod hostile_encoders;
mod hostile_frames;
mod hostile_gemini;
mod joined;
mod json_reader;
mod laws;
mod limits;
mod logprobs;
mod markup;
mod markup_laws;
mod markup_parts;
mod memory;
mod mutated;
mod partial_json;
mod placing;
mod provider_error;
mod registry;
mod repeating;
mod shapes;
mod sse;
mod stencil;
mod support;
mod tables;
mod template;
mod unframed;
mod usage_records;
mod vendors;
