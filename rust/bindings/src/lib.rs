//! `deltafold._core`: the Python extension, with frozen classes over the core, conversions and error mapping.
//!
//! The rooms by what Python sees, bottom first: `support`, `delta`, `message`, `decode`; above them `arrow`, `encode` and
//! `stream`.
//!
//! Laws:
//! - A room imports only rooms below it.  `arrow`, `encode` and `stream` do not import each other.
//! - No Python object is built, dropped or called while a lock is held.  Signal handlers between the slices of a huge feed
//!   are the exception; they find the object busy.
//! - A busy lock raises `MisuseError` and never waits.  The lock of a lazy message is the exception: it is held for a few
//!   instructions, and a message is data that threads may share.
//! - A panic becomes `InternalError` and poisons its object.

use pyo3::prelude::*;
use pyo3::types::PyTuple;

mod arrow;
mod decode;
mod delta;
mod encode;
mod message;
mod stream;
mod support;

/// Compiled half of deltafold.
#[pymodule(gil_used = false)]
mod _core {
    #[pymodule_export]
    use crate::arrow::fold::fold_columns;
    #[pymodule_export]
    use crate::decode::bodies::{decode_body, detect_dialects, fold_bodies};
    #[pymodule_export]
    use crate::decode::choices::{ChoicesDecoder, fold_body_choices};
    #[pymodule_export]
    use crate::decode::decoder::Decoder;
    #[pymodule_export]
    use crate::decode::event_framer::{EventFramer, event_ends};
    #[pymodule_export]
    use crate::decode::fold::{Fold, fold_chunks};
    #[pymodule_export]
    use crate::decode::options::{dialect_content_type, dialect_names, markup_names};
    #[pymodule_export]
    use crate::decode::refusal::{classify_refusal, error_code_from_word, seconds_until_reset};
    #[pymodule_export]
    use crate::delta::batch::{DeltaBatch, DeltaBatchIterator};
    #[pymodule_export]
    use crate::delta::message_delta::MessageDelta;
    #[pymodule_export]
    use crate::encode::choices::ChoicesEncoder;
    #[pymodule_export]
    use crate::encode::encoder::{Encoder, Transcoder, encode_body, encode_choices_body};
    #[pymodule_export]
    use crate::encode::settings::target_names;
    #[pymodule_export]
    use crate::message::assembler::MessageAssembler;
    #[pymodule_export]
    use crate::message::lazy::{
        LazyDict, LazyField, folded_json, folded_text, folded_tool_calls, set_late_fields,
        set_lazy_field,
    };
    #[pymodule_export]
    use crate::message::logprobs::Logprobs;
    #[pymodule_export]
    use crate::message::partial_json::{JsonDefect, PartialJson};
    #[pymodule_export]
    use crate::message::snapshot::ToolCallBuffer;
    #[pymodule_export]
    use crate::message::text_message::message_of_text;
    #[pymodule_export]
    use crate::stream::cursor::Cursor;
    #[pymodule_export]
    use crate::stream::timer::{StreamTimer, StreamTimes};
    #[pymodule_export]
    use crate::support::contract::forbids_calls;
    #[pymodule_export]
    use crate::support::json::read_json;
    #[pymodule_export]
    use crate::support::limits::Limits;
    #[pymodule_export]
    use crate::support::plain_json::plain_json;

    use super::{Bound, PyModule, PyModuleMethods, PyResult, PyTuple};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("CONTRACT_VERSION", ::deltafold::contract::CONTRACT_VERSION)?;
        module.add("OVER", crate::stream::cursor::over(module.py())?)?;
        module.add("MAX_ARGUMENT_DEPTH", crate::support::json::MAX_ARGUMENT_DEPTH)?;
        module.add("MAX_REFUSAL_BYTES", ::deltafold::provider_error::BODY_BYTES)?;
        module.add("FIRST_REFUSAL", ::deltafold::provider_error::FIRST_REFUSAL)?;
        let names = PyTuple::new(module.py(), ::deltafold::provider_error::REQUEST_ID_HEADERS)?;
        module.add("REQUEST_ID_HEADERS", names)
    }
}

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
