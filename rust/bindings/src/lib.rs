//! `deltafold._core`: the Python extension, with frozen classes over the core, conversions and error mapping.
//!
//! The rooms by what Python sees, bottom first: `support`, `delta`, `message`, `decode`; above them `arrow`, `encode`,
//! `requests` and `stream`.
//!
//! Laws:
//! - A room imports only rooms below it.  `arrow`, `encode`, `requests` and `stream` do not import each other.
//! - No Python object is built, dropped or called while a lock is held.  Signal handlers between the slices of a huge feed
//!   are the exception; they find the object busy.
//! - A busy lock raises `MisuseError` and never waits.  The lock of a lazy message is the exception: it is held for a few
//!   instructions, and a message is data that threads may share.
//! - A panic becomes `InternalError` and poisons its object.
//! - Only the main interpreter imports the module; nothing is cached before that is known.

use pyo3::prelude::*;
use pyo3::types::PyTuple;

mod arrow;
mod decode;
mod delta;
mod encode;
mod message;
mod requests;
mod stream;
mod support;

/// Compiled half of deltafold.
//
// A function, because a declarative module makes its classes before it calls any code.
#[pymodule(gil_used = false)]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    support::interpreter::require_main(module.py())?;
    add_classes(module)?;
    add_functions(module)?;
    add_constants(module)
}

fn add_classes(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<decode::choices::ChoicesDecoder>()?;
    module.add_class::<decode::decoder::Decoder>()?;
    module.add_class::<decode::event_framer::EventFramer>()?;
    module.add_class::<decode::fold::Fold>()?;
    module.add_class::<delta::batch::DeltaBatch>()?;
    module.add_class::<delta::batch::DeltaBatchIterator>()?;
    module.add_class::<delta::message_delta::MessageDelta>()?;
    module.add_class::<encode::choices::ChoicesEncoder>()?;
    module.add_class::<encode::encoder::Encoder>()?;
    module.add_class::<encode::encoder::Transcoder>()?;
    module.add_class::<message::assembler::MessageAssembler>()?;
    module.add_class::<message::lazy::LazyDict>()?;
    module.add_class::<message::lazy::LazyField>()?;
    module.add_class::<delta::logprobs::Logprobs>()?;
    module.add_class::<message::partial_json::JsonDefect>()?;
    module.add_class::<message::partial_json::PartialJson>()?;
    module.add_class::<message::snapshot::ToolCallBuffer>()?;
    module.add_class::<requests::KeptMessages>()?;
    module.add_class::<requests::RequestOutline>()?;
    module.add_class::<requests::RequestRows>()?;
    module.add_class::<requests::RequestStencil>()?;
    module.add_class::<stream::cursor::Cursor>()?;
    module.add_class::<stream::timer::StreamTimer>()?;
    module.add_class::<stream::timer::StreamTimes>()?;
    module.add_class::<support::limits::Limits>()
}

fn add_functions(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(arrow::fold::fold_columns, module)?)?;
    module.add_function(wrap_pyfunction!(decode::bodies::decode_body, module)?)?;
    module.add_function(wrap_pyfunction!(decode::bodies::detect_dialects, module)?)?;
    module.add_function(wrap_pyfunction!(decode::bodies::is_batch_line, module)?)?;
    module.add_function(wrap_pyfunction!(decode::bodies::fold_bodies, module)?)?;
    module.add_function(wrap_pyfunction!(decode::choices::fold_body_choices, module)?)?;
    module.add_function(wrap_pyfunction!(decode::event_framer::event_ends, module)?)?;
    module.add_function(wrap_pyfunction!(decode::fold::fold_chunks, module)?)?;
    module.add_function(wrap_pyfunction!(decode::options::dialect_content_type, module)?)?;
    module.add_function(wrap_pyfunction!(decode::options::dialect_names, module)?)?;
    module.add_function(wrap_pyfunction!(decode::options::markup_names, module)?)?;
    module.add_function(wrap_pyfunction!(decode::refusal::classify_refusal, module)?)?;
    module.add_function(wrap_pyfunction!(decode::refusal::error_code_from_word, module)?)?;
    module.add_function(wrap_pyfunction!(decode::refusal::seconds_until_reset, module)?)?;
    module.add_function(wrap_pyfunction!(encode::encoder::encode_body, module)?)?;
    module.add_function(wrap_pyfunction!(encode::encoder::encode_choices_body, module)?)?;
    module.add_function(wrap_pyfunction!(encode::settings::target_names, module)?)?;
    module.add_function(wrap_pyfunction!(message::lazy::folded_json, module)?)?;
    module.add_function(wrap_pyfunction!(message::lazy::folded_text, module)?)?;
    module.add_function(wrap_pyfunction!(message::lazy::folded_tool_calls, module)?)?;
    module.add_function(wrap_pyfunction!(message::lazy::set_late_fields, module)?)?;
    module.add_function(wrap_pyfunction!(message::lazy::set_lazy_field, module)?)?;
    module.add_function(wrap_pyfunction!(message::text_message::message_of_text, module)?)?;
    module.add_function(wrap_pyfunction!(support::contract::forbids_calls, module)?)?;
    module.add_function(wrap_pyfunction!(support::json::read_json, module)?)?;
    module.add_function(wrap_pyfunction!(support::plain_json::plain_json, module)?)
}

fn add_constants(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("CONTRACT_VERSION", deltafold::contract::CONTRACT_VERSION)?;
    module.add("OVER", stream::cursor::over(module.py())?)?;
    module.add("MAX_ARGUMENT_DEPTH", support::json::MAX_ARGUMENT_DEPTH)?;
    module.add("MAX_REFUSAL_BYTES", deltafold::provider_error::BODY_BYTES)?;
    module.add("FIRST_REFUSAL", deltafold::provider_error::FIRST_REFUSAL)?;
    let names = PyTuple::new(module.py(), deltafold::provider_error::REQUEST_ID_HEADERS)?;
    module.add("REQUEST_ID_HEADERS", names)
}

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
