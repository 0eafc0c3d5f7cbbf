//! Requests as Python objects: `RequestOutline` and the `RequestStencil` that it is written with.
//!
//! In: the bytes of a request, and rows of data about its protocol.  Out: the bytes of the request in another protocol.
//!
//! Law: reading and writing hold no lock and no interpreter, so that the streams of the process go on.

mod kept_messages;

use std::collections::HashMap;

use deltafold::stencil::{KnownForms, Outline, Rows, Sample, Stencil};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

pub(crate) use kept_messages::KeptMessages;

/// The plain messages of a protocol, as data.
#[pyclass(module = "deltafold._core", frozen)]
pub(crate) struct RequestRows {
    rows: Rows,
}

#[pymethods]
impl RequestRows {
    #[new]
    #[pyo3(signature = (json, /))]
    fn new(json: &str) -> PyResult<Self> {
        let rows = Rows::from_json(json)
            .map_err(|error| PyValueError::new_err(format!("rows of a protocol: {error}")))?;
        Ok(Self { rows })
    }
}

/// The body; for each message its place in the request, and its unit if it has marks; for each unit the number behind those of
/// its marks, its form (None at an edge of the request) and the number of its stretch.
type RequestSample<'py> = (
    Bound<'py, PyBytes>,
    Vec<(usize, Option<usize>)>,
    Vec<(usize, Option<Bound<'py, PyBytes>>, usize)>,
);

/// A request with rounds of plain messages.
#[pyclass(module = "deltafold._core", frozen)]
pub(crate) struct RequestOutline {
    body: Py<PyBytes>,
    outline: Outline,
}

#[pymethods]
impl RequestOutline {
    /// Read a request; None if no stretch of it is worth a stencil.
    #[staticmethod]
    #[pyo3(signature = (body, rows, /))]
    fn read(py: Python<'_>, body: Bound<'_, PyBytes>, rows: &RequestRows) -> Option<Self> {
        let bytes = body.as_bytes();
        let read = || Outline::read(std::str::from_utf8(bytes).ok()?, &rows.rows);
        let outline = py.detach(read)?;
        Some(Self { body: body.unbind(), outline })
    }

    /// The request.
    #[getter]
    fn body<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        self.body.bind(py).clone()
    }

    /// What a stencil of the request is found by.
    #[getter]
    fn key<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.outline.key())
    }

    /// Whether all messages are plain.
    #[getter]
    fn is_whole(&self) -> bool {
        self.outline.is_whole()
    }

    /// Number of messages, and of the tokens that were found in them.
    #[getter]
    fn sizes(&self) -> (usize, usize) {
        self.outline.sizes()
    }

    /// Number of the messages that a stencil writes.
    #[getter]
    fn written(&self) -> usize {
        self.outline.written()
    }

    /// Return the forms of the rounds of each stretch in order.
    fn forms<'py>(&self, py: Python<'py>) -> Vec<Vec<Bound<'py, PyBytes>>> {
        let mut made: HashMap<&[u8], Bound<'py, PyBytes>> = HashMap::new();
        let mut bytes = |form| made.entry(form).or_insert_with(|| PyBytes::new(py, form)).clone();
        let mut of_stretch = |forms: Vec<_>| forms.into_iter().map(&mut bytes).collect();
        self.outline.forms().into_iter().map(&mut of_stretch).collect()
    }

    /// Return the ids of the calls, and the names of the tools that they call.
    fn identifiers<'py>(&'py self, py: Python<'py>) -> (Vec<&'py str>, Vec<&'py str>) {
        self.outline.identifiers(self.json(py))
    }

    /// Return whether a stencil has all forms of the request.
    #[pyo3(signature = (stencil, /))]
    fn is_covered(&self, stencil: &RequestStencil) -> bool {
        self.outline.is_covered(&stencil.stencil)
    }

    /// Return a short request of the same kind, with marks for what a stencil leaves open.
    #[pyo3(signature = (known, mark, /))]
    fn sample<'py>(
        &self,
        py: Python<'py>,
        known: Option<&RequestStencil>,
        mark: &str,
    ) -> Option<RequestSample<'py>> {
        let known = known.map(|known| &known.stencil as &dyn KnownForms);
        let Sample { body, messages, units } = self.outline.sample(self.json(py), known, mark)?;
        let bytes = |form: Vec<u8>| PyBytes::new(py, &form);
        let units = units.into_iter().map(|unit| (unit.end, unit.form.map(bytes), unit.stretch));
        Some((PyBytes::new(py, body.as_bytes()), messages, units.collect()))
    }

    /// Return the stencil that follows from the translation of a sample, None if none does.
    #[pyo3(signature = (known, translated, mark, /))]
    fn learn(
        &self,
        known: Option<&RequestStencil>,
        translated: &[u8],
        mark: &str,
    ) -> Option<RequestStencil> {
        let known = known.map(|known| &known.stencil);
        let translated = std::str::from_utf8(translated).ok()?;
        let stencil = Stencil::learn(&self.outline, known, translated, mark)?;
        Some(RequestStencil { stencil })
    }

    /// Return the places of the messages that begin the rounds of a whole request; none if there is one round at most.
    fn round_starts(&self) -> Vec<usize> {
        self.outline.round_starts()
    }

    /// Return the translation of the request, None if the stencil lacks one of its forms; and the place in it of the rounds of the
    /// first stretch, without its last round.
    #[pyo3(signature = (stencil, /))]
    fn filled<'py>(
        &self,
        py: Python<'py>,
        stencil: &RequestStencil,
    ) -> Option<(Bound<'py, PyBytes>, usize, usize)> {
        let body = self.body.bind(py).as_bytes();
        let (filled, rounds) = py.detach(|| {
            let json = std::str::from_utf8(body).ok()?;
            stencil.stencil.fill(&self.outline, json)
        })?;
        Some((PyBytes::new(py, filled.as_bytes()), rounds.start, rounds.end))
    }
}

impl RequestOutline {
    fn json<'py>(&'py self, py: Python<'py>) -> &'py str {
        std::str::from_utf8(self.body.as_bytes(py)).unwrap_or("")
    }
}

/// Number of the part of a whole request that has its rounds.
const ROUNDS: usize = 1;

/// A translation of a kind of requests, without their texts.
#[pyclass(module = "deltafold._core", frozen)]
pub(crate) struct RequestStencil {
    stencil: Stencil,
}

#[pymethods]
impl RequestStencil {
    /// Return the forms of rounds that `other`, of another whole request, writes and this one does not know; None if both know one
    /// and write it in different ways.
    #[pyo3(signature = (other, /))]
    fn lacking<'py>(&self, py: Python<'py>, other: &Self) -> Option<Vec<Bound<'py, PyBytes>>> {
        let forms = self.stencil.lacking(&other.stencil, ROUNDS)?;
        Some(forms.into_iter().map(|form| PyBytes::new(py, form)).collect())
    }

    /// Size in bytes, about.
    fn __len__(&self) -> usize {
        self.stencil.size()
    }
}
