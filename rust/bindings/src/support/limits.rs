//! `Limits`: bounds of everything that a hostile stream can make grow.
//!
//! In: keywords.  Out: the limits of the core, and each bound as a property.

use deltafold::limits::Limits as Core;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};

/// Maximum of `depth`.  A block is read again inside a provider part, a few levels deeper, so the reader needs a reserve.
const MAX_DEPTH: usize = deltafold::json::MAX_DEPTH - 100;

/// Bounds of one stream.  A stream that reaches a bound ends in `error{protocol_error}`, whose message names the limit.
///
/// Args:
///     event_bytes: bytes of one framed event, including a line without its end (default 32 MiB).
///     depth: nesting depth of the JSON of one event, at most 900 (default 128).
///     message_bytes: bytes of text, thinking and tool arguments of one message (default 256 MiB).
///     parts: parts of one message (default 65,536).
///     tool_calls: tool calls of one message (default 16,384).
///     warnings: distinct warnings of one stream (default 1,000).
///     identifier_bytes: bytes of one tool call id, tool name, model name or response id (default 64 KiB).
///     provider_state_bytes: bytes of provider state and whole provider parts (default 128 MiB).
///     choices: answers of one stream, if all are decoded (default 1,024); the other limits hold for each answer.
///
/// Raises:
///     ValueError: a bound is 0, or the depth exceeds 900.
///
/// Example:
///     >>> Limits(event_bytes=1 << 20).event_bytes
///     1048576
#[pyclass(frozen, module = "deltafold._core", eq, hash)]
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Limits {
    pub(crate) core: Core,
}

/// Class, arguments and keywords of `copyreg.__newobj_ex__`.
type Reduced<'py> = (Bound<'py, PyType>, Bound<'py, PyTuple>, Bound<'py, PyDict>);

#[pymethods]
impl Limits {
    #[new]
    #[pyo3(signature = (*, event_bytes=None, depth=None, message_bytes=None, parts=None, tool_calls=None, warnings=None, identifier_bytes=None, provider_state_bytes=None, choices=None))]
    #[expect(clippy::too_many_arguments, reason = "one keyword for each bound")]
    fn new(
        event_bytes: Option<usize>,
        depth: Option<usize>,
        message_bytes: Option<usize>,
        parts: Option<usize>,
        tool_calls: Option<usize>,
        warnings: Option<usize>,
        identifier_bytes: Option<usize>,
        provider_state_bytes: Option<usize>,
        choices: Option<usize>,
    ) -> PyResult<Self> {
        let mut core = Core::default();
        for (name, given, place) in [
            ("event_bytes", event_bytes, &mut core.event_bytes),
            ("depth", depth, &mut core.depth),
            ("message_bytes", message_bytes, &mut core.message_bytes),
            ("parts", parts, &mut core.parts),
            ("tool_calls", tool_calls, &mut core.tool_calls),
            ("warnings", warnings, &mut core.warnings),
            ("identifier_bytes", identifier_bytes, &mut core.identifier_bytes),
            ("provider_state_bytes", provider_state_bytes, &mut core.provider_state_bytes),
            ("choices", choices, &mut core.choices),
        ] {
            match given {
                Some(0) => return Err(PyValueError::new_err(format!("{name} must be at least 1"))),
                Some(value) => *place = value,
                None => {}
            }
        }
        if core.depth > MAX_DEPTH {
            return Err(PyValueError::new_err(format!("depth must be at most {MAX_DEPTH}")));
        }
        Ok(Self { core })
    }

    #[getter]
    fn event_bytes(&self) -> usize {
        self.core.event_bytes
    }

    #[getter]
    fn depth(&self) -> usize {
        self.core.depth
    }

    #[getter]
    fn message_bytes(&self) -> usize {
        self.core.message_bytes
    }

    #[getter]
    fn parts(&self) -> usize {
        self.core.parts
    }

    #[getter]
    fn tool_calls(&self) -> usize {
        self.core.tool_calls
    }

    #[getter]
    fn warnings(&self) -> usize {
        self.core.warnings
    }

    #[getter]
    fn identifier_bytes(&self) -> usize {
        self.core.identifier_bytes
    }

    #[getter]
    fn provider_state_bytes(&self) -> usize {
        self.core.provider_state_bytes
    }

    #[getter]
    fn choices(&self) -> usize {
        self.core.choices
    }

    /// Return the class and the bounds, for pickle and copy.
    fn __reduce__<'py>(this: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Reduced<'py>)> {
        let (py, core) = (this.py(), &this.get().core);
        let bounds = PyDict::new(py);
        for (name, bound) in [
            ("event_bytes", core.event_bytes),
            ("depth", core.depth),
            ("message_bytes", core.message_bytes),
            ("parts", core.parts),
            ("tool_calls", core.tool_calls),
            ("warnings", core.warnings),
            ("provider_state_bytes", core.provider_state_bytes),
            ("identifier_bytes", core.identifier_bytes),
            ("choices", core.choices),
        ] {
            bounds.set_item(name, bound)?;
        }
        let make = py.import("copyreg")?.getattr("__newobj_ex__")?;
        Ok((make, (this.get_type(), PyTuple::empty(py), bounds)))
    }

    fn __repr__(&self) -> String {
        let c = &self.core;
        format!(
            "Limits(event_bytes={}, depth={}, message_bytes={}, parts={}, tool_calls={}, warnings={}, identifier_bytes={}, provider_state_bytes={}, choices={})",
            c.event_bytes,
            c.depth,
            c.message_bytes,
            c.parts,
            c.tool_calls,
            c.warnings,
            c.identifier_bytes,
            c.provider_state_bytes,
            c.choices
        )
    }
}
