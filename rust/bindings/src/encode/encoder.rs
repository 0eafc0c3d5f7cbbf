//! `Encoder`: writes deltas as the stream of another protocol; `Transcoder`: bytes of one protocol as bytes of another.
//!
//! In: deltas and batches, or the bytes of a source.  Out: bytes, or one mapping an event.
//!
//! Law: the lock protects the core alone.  The written bytes leave the lock before a Python object is built of them.

use std::collections::BTreeMap;

use deltafold::contract::{ContractViolation, Output};
use deltafold::encode::{
    self, AnswersEncoder, Encoder as Core, Headers, Note, Out, TARGETS, WholeBody,
};
use pyo3::exceptions::PyTypeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};

use crate::decode::decoder::Decoder;
use crate::decode::input::Input;
use crate::delta::batch::DeltaBatch;
use crate::delta::message_delta::MessageDelta;
use crate::encode::run::{Told, told};
use crate::encode::settings::{self, Choices};
use crate::message::assembler::MessageAssembler;
use crate::support::clock::Timestamp;
use crate::support::errors;
use crate::support::failure::{Evidence, failure};
use crate::support::json;
use crate::support::signals;
use crate::support::try_lock::TryLock;

/// Encoder of one stream: deltas of the contract become the bytes of a target.
///
/// Args:
///     target: the protocol to write, a name of `target_names()`.
///     model_id: the model to name instead of the source's.
///     request_id: the response id of a stream that has none.
///     response_id: the response id to write in place of the source's.
///     include_usage: write a chunk of usage (openai-chat).  Default True.
///     input_tokens: tokens of the prompt by the caller's estimate, for a head that names them (anthropic-messages); the
///         real number follows at the end.
///     reasoning_member: `"reasoning_content"` (default) or `"reasoning"` (openai-chat).
///     signatures: where signatures of the source go: `"reasoning_details"`, `"thinking_blocks"` or `"extra_content"`
///         (openai-chat).  By default nowhere.
///     envelope: write provider state of other dialects into the opaque fields of the target, so that the client sends it
///         back; `parse_request` opens it again.
///     own_models: models whose signatures the client may have as those of its own protocol.  Those of any other model are
///         written as state of another dialect is.  By default those of every model of the target's dialect.
///     hold: hold thinking back until its part ends, for sources that name its id with its encrypted form
///         (openai-responses).
///     declined_calls: what becomes of the calls before a `fallback` block of Anthropic, which are of a model that declined
///         and never run, in another protocol.  With `"filter"` (default) calls are written at once, and an answer with such
///         a call ends as one that a filter stopped.  `"hold"` holds all calls back until the end, and leaves those out.
///         `"keep"` writes them and the end of the source, for callers that take the calls back.
///     raw_reasoning: write thinking as raw reasoning and not as a summary (openai-responses).
///     codex: write for Codex (openai-responses): refusals are text, and errors that a retry does not mend end the turn.
///     incomplete_as_completed: write `response.completed` for an answer that a limit cut (openai-responses).
///     response_fields: members of the response object that repeat the request, such as `temperature` (openai-responses).
///     tools: tools by the names that the source knows, as `{kind?, namespace?, name?}`, where the client declared them
///         otherwise (openai-responses).  `kind` is `"function"`, `"custom"` or `"tool_search"`.
///     thread_id: the id of the conversation (ag-ui).
///     without_run: write no event of the run itself, which the caller owns (ag-ui).
///     as_bytes: give bytes.  With False, every method gives a list of mappings, one an event.
///     limits: bounds; see `Limits`.
///
/// Raises:
///     UnknownDialectError: no target has this name; the message lists them.
///     TypeError, ValueError: an option is unknown or has a wrong value; the message names it.
///     MisuseError: a method was called while another thread is inside one.
///     InternalError: a bug; the encoder cannot be used any more.
///
/// Example:
///     >>> encoder = Encoder("anthropic-messages", model_id="claude")
///     >>> for batch in stream.batches():
///     ...     send(encoder.feed(batch))
///     >>> send(encoder.close())
#[pyclass(frozen, generic, module = "deltafold._core")]
pub(crate) struct Encoder {
    core: TryLock<Core>,
    target: &'static str,
    as_bytes: bool,
}

/// An encoder of the core: of one answer or of several.
pub(crate) trait Writes {
    fn take(&mut self) -> Vec<u8>;
    fn out(&mut self) -> &mut Out;
    fn violation(&self) -> Option<&ContractViolation>;
}

impl Writes for Core {
    fn take(&mut self) -> Vec<u8> {
        self.take()
    }

    fn out(&mut self) -> &mut Out {
        self.out()
    }

    fn violation(&self) -> Option<&ContractViolation> {
        self.violation()
    }
}

impl Writes for AnswersEncoder {
    fn take(&mut self) -> Vec<u8> {
        self.take()
    }

    fn out(&mut self) -> &mut Out {
        self.out()
    }

    fn violation(&self) -> Option<&ContractViolation> {
        self.violation()
    }
}

/// Let the core of an encoder run `f`, and return the written bytes or mappings.
pub(crate) fn write<'py, C: Writes>(
    py: Python<'py>,
    core: &TryLock<C>,
    as_bytes: bool,
    f: impl FnOnce(&mut C) -> PyResult<()>,
) -> PyResult<Bound<'py, PyAny>> {
    let (written, violation) = errors::guarded(py, core, "encoder", |core| {
        f(core)?;
        PyResult::Ok((Written::take(core, as_bytes), core.violation().cloned()))
    })??;
    if let Some(violation) = violation {
        return Err(errors::contract_violation(py, &violation));
    }
    written.into_python(py)
}

/// Return headers as a dict.
pub(crate) fn headers_dict(py: Python<'_>, headers: Headers) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    for (name, value) in headers {
        dict.set_item(name, value)?;
    }
    Ok(dict)
}

/// Return notes as a list of dicts.
pub(crate) fn note_list<'py>(py: Python<'py>, notes: &[Note]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for note in notes {
        let dict = PyDict::new(py);
        dict.set_item("code", note.code)?;
        dict.set_item("what", &note.what)?;
        dict.set_item("count", note.count)?;
        list.append(dict)?;
    }
    Ok(list)
}

/// Bytes or JSON of events that left the lock.
enum Written {
    Bytes(Vec<u8>),
    Objects(Vec<String>),
}

impl Written {
    fn take(core: &mut impl Writes, as_bytes: bool) -> Self {
        if as_bytes {
            return Self::Bytes(core.take());
        }
        let mut objects = Vec::new();
        core.out().drain_objects(|object| objects.push(object.to_owned()));
        Self::Objects(objects)
    }

    fn into_python(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        match self {
            Self::Bytes(bytes) => Ok(PyBytes::new(py, &bytes).into_any()),
            Self::Objects(objects) => {
                let list = PyList::empty(py);
                for object in objects {
                    list.append(json::to_python(py, &object)?)?;
                }
                Ok(list.into_any())
            }
        }
    }
}

impl Encoder {
    /// Let the core run `f`, and return the written bytes or mappings.
    fn write<'py>(
        &self,
        py: Python<'py>,
        f: impl FnOnce(&mut Core),
    ) -> PyResult<Bound<'py, PyAny>> {
        write(py, &self.core, self.as_bytes, |core| {
            f(core);
            Ok(())
        })
    }

    /// Write an event of a run.
    fn feed_run<'py>(&self, py: Python<'py>, told: Told<'py>) -> PyResult<Bound<'py, PyAny>> {
        if !self.read(py, Core::has_runs)? {
            let runs: Vec<_> =
                TARGETS.iter().filter(|row| row.has_runs).map(|row| row.name).collect();
            let message = format!(
                "{} has no stream of a run: the targets for events of an Agent are {}; of one answer, feed the deltas",
                self.target,
                runs.join(" and ")
            );
            return Err(errors::misuse(py, &message));
        }
        match told {
            Told::Delta(delta) => {
                let delta = delta.get();
                let now = delta.now();
                let delta = delta.as_core(py)?;
                self.write(py, |core| {
                    core.begin_run();
                    core.set_created(now.milliseconds());
                    core.delta(&delta);
                })
            }
            Told::Event(event) => self.write(py, |core| {
                core.begin_run();
                core.run_event(&event);
            }),
            Told::Nothing => self.write(py, |core| {
                core.begin_run();
            }),
        }
    }

    fn read<R>(&self, py: Python<'_>, f: impl FnOnce(&Core) -> R) -> PyResult<R> {
        Ok(f(&*errors::lock(py, &self.core, "encoder")?))
    }
}

#[pymethods]
impl Encoder {
    #[new]
    #[pyo3(signature = (target, **options))]
    pub(crate) fn new(
        py: Python<'_>,
        target: &str,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let row = settings::find(py, target)?;
        let Choices { settings, as_bytes } = settings::read(options)?;
        let core = Core::new(row, settings, !as_bytes);
        Ok(Self { core: TryLock::new(core), target: row.name, as_bytes })
    }

    #[getter]
    fn target(&self) -> &'static str {
        self.target
    }

    /// HTTP status of the answer, None until the first delta that decides it: a failure before all content is an HTTP error.
    #[getter]
    fn status(&self, py: Python<'_>) -> PyResult<Option<u16>> {
        self.read(py, Core::status)
    }

    /// HTTP headers that the clients of the target need, None until `status` is decided.
    #[getter]
    fn headers<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let headers = self.read(py, Core::headers)?;
        headers.map(|headers| headers_dict(py, headers)).transpose()
    }

    /// Notes of the losses, as `{code, what, count}`: content that the target could not carry.
    #[getter]
    fn notes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        note_list(py, &self.read(py, |core| core.notes().to_vec())?)
    }

    /// True after the terminal.
    #[getter]
    fn finished(&self, py: Python<'_>) -> PyResult<bool> {
        self.read(py, Core::ended)
    }

    /// True if the stream ended in the target's error, or the answer is an HTTP error.
    #[getter]
    fn failed(&self, py: Python<'_>) -> PyResult<bool> {
        self.read(py, Core::failed)
    }

    /// Write a delta, a batch or an event of a run, and return the written bytes, or a list of mappings.
    ///
    /// The events of `Agent.stream` become one stream of the whole run (ai-sdk, ag-ui), which begins with the first event of an
    /// `Agent` and ends with its `run_end`.  docs/protocols/encoding.md#e17 has the rules.
    ///
    /// Raises:
    ///     ContractError: a delta breaks the contract; it and all later ones are dropped.
    ///     MisuseError: the target has no runs.
    ///     TypeError: `deltas` is neither a MessageDelta, a DeltaBatch nor an AgentEvent.
    #[pyo3(signature = (deltas, /))]
    fn feed<'py>(
        &self,
        py: Python<'py>,
        deltas: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Ok(batch) = deltas.cast::<DeltaBatch>() {
            let batch = batch.get();
            return self.write(py, |core| {
                core.set_created(batch.now.milliseconds());
                batch.core.replay(core);
            });
        }
        if let Ok(delta) = deltas.cast::<MessageDelta>() {
            let delta = delta.get();
            let now = delta.now();
            let delta = delta.as_core(py)?;
            return self.write(py, |core| {
                core.set_created(now.milliseconds());
                core.delta(&delta);
            });
        }
        if let Some(told) = told(deltas)? {
            return self.feed_run(py, told);
        }
        let kind = deltas.get_type().name()?;
        let message =
            format!("feed takes a MessageDelta, a DeltaBatch or an AgentEvent, not {kind}");
        Err(PyTypeError::new_err(message))
    }

    /// End the stream, and return the last bytes.  A source that gave no terminal is a failure, and is written as one.
    fn close<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.write(py, Core::close)
    }

    /// Return bytes that keep the connection alive, to be sent between two other results.
    ///
    /// The caller's clock decides when.  Before the first content this decides the status for 200.
    fn keep_alive<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.write(py, Core::keep_alive)
    }

    fn __repr__(&self) -> String {
        format!("<Encoder to {}>", self.target)
    }
}

/// Decoder and encoder in one object: bytes of one protocol in, bytes of another out.
///
/// One call of the extension per chunk, without a Python object an event.
///
/// Args:
///     source: the protocol of the bytes, a name of `dialect_names()`, None for the one that the first bytes tell; or a
///         `Decoder` with its own options.
///     target: the protocol to write, a name of `target_names()`.
///     options: the options of `Encoder`.
///
/// Raises:
///     UnknownDialectError: no dialect or target has this name, or the body does not tell its dialect.
///     TypeError, ValueError: an option is unknown or has a wrong value.
///
/// Example:
///     >>> transcoder = Transcoder("openai-chat", "anthropic-messages")
///     >>> for chunk in chunks:
///     ...     send(transcoder.feed(chunk))
///     >>> send(transcoder.close())
#[pyclass(frozen, generic, module = "deltafold._core")]
pub(crate) struct Transcoder {
    decoder: Py<Decoder>,
    encoder: Py<Encoder>,
}

impl Transcoder {
    fn run<'py>(
        &self,
        py: Python<'py>,
        f: impl FnOnce(&mut deltafold::Decoder, &mut Core) -> PyResult<()>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let encoder = self.encoder.get();
        let now: Timestamp = self.decoder.get().now(py)?;
        let as_bytes = encoder.as_bytes;
        let (read, written) = errors::guarded_pair(
            py,
            (self.decoder.get().core(), "decoder"),
            (&encoder.core, "encoder"),
            |decoder, core| {
                core.set_created(now.milliseconds());
                let read = f(decoder, core);
                (read, Written::take(core, as_bytes))
            },
        )?;
        read?;
        self.decoder.get().learn(py)?;
        written.into_python(py)
    }
}

#[pymethods]
impl Transcoder {
    #[new]
    #[pyo3(signature = (source, target, **options))]
    fn new(
        source: &Bound<'_, PyAny>,
        target: &str,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let py = source.py();
        let decoder = match source.cast::<Decoder>() {
            Ok(decoder) => decoder.clone().unbind(),
            Err(_) => Decoder::from_options(source, None)?,
        };
        let encoder = Py::new(py, Encoder::new(py, target, options)?)?;
        Ok(Self { decoder, encoder })
    }

    /// Decoder of the source.
    #[getter]
    fn decoder(&self, py: Python<'_>) -> Py<Decoder> {
        self.decoder.clone_ref(py)
    }

    /// Encoder of the target, with its notes.
    #[getter]
    fn encoder(&self, py: Python<'_>) -> Py<Encoder> {
        self.encoder.clone_ref(py)
    }

    /// HTTP status of the answer; see `Encoder.status`.
    #[getter]
    fn status(&self, py: Python<'_>) -> PyResult<Option<u16>> {
        self.encoder.get().status(py)
    }

    /// HTTP headers of the answer; see `Encoder.headers`.
    #[getter]
    fn headers<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.encoder.get().headers(py)
    }

    /// Notes of the losses; see `Encoder.notes`.
    #[getter]
    fn notes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.encoder.get().notes(py)
    }

    /// True after the terminal.
    #[getter]
    fn finished(&self, py: Python<'_>) -> PyResult<bool> {
        self.encoder.get().finished(py)
    }

    /// True if the stream ended in the target's error, or the answer is an HTTP error.
    #[getter]
    fn failed(&self, py: Python<'_>) -> PyResult<bool> {
        self.encoder.get().failed(py)
    }

    /// Transcode the next bytes of the body, in any chunking, and return the written bytes, or a list of mappings.
    ///
    /// Ctrl-C interrupts a feed of many megabytes; the decoder then refuses more bytes.
    ///
    /// Raises:
    ///     MisuseError: called after `close()`.
    ///     TypeError: `data` is neither bytes nor an event, a dict or an object of an SDK.
    #[pyo3(signature = (data, /))]
    fn feed<'py>(&self, py: Python<'py>, data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let decoder = self.decoder.get();
        decoder.check_open(py)?;
        decoder.feeds().take(decoder.dialect(), data, |input| {
            let written = self.run(py, |decoder, encoder| match input {
                Input::Bytes(bytes) => signals::in_slices(
                    bytes,
                    |slice| decoder.feed(slice, encoder),
                    || py.check_signals(),
                ),
                Input::Event(frame, dialect) => {
                    decoder.decide(dialect, encoder);
                    decoder.feed_frame(frame, encoder);
                    Ok(())
                }
            });
            written.inspect_err(|_| self.decoder.get().tear())
        })
    }

    /// Take the end of the body, and return the last bytes.  A second call returns nothing.
    fn close<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let written = self.run(py, |decoder, encoder| {
            decoder.close(encoder);
            Ok(())
        })?;
        self.decoder.get().mark_closed();
        Ok(written)
    }

    /// End the stream for an external reason, as `Decoder.fail` does, and return the last bytes.
    #[pyo3(signature = (code, message, retryable=None, *, retry_after=None, status=None, provider_code=None, http_request_id=None))]
    #[expect(clippy::too_many_arguments, reason = "one keyword a piece of evidence")]
    fn fail<'py>(
        &self,
        py: Python<'py>,
        code: &Bound<'_, PyString>,
        message: &Bound<'_, PyString>,
        retryable: Option<bool>,
        retry_after: Option<f64>,
        status: Option<u16>,
        provider_code: Option<&Bound<'_, PyString>>,
        http_request_id: Option<&Bound<'_, PyString>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let failure = failure(
            code,
            message,
            retryable,
            Evidence { retry_after, status, provider_code, http_request_id },
        )?;
        self.run(py, |decoder, encoder| {
            decoder.fail(failure, encoder);
            Ok(())
        })
    }

    /// Return bytes that keep the connection alive; see `Encoder.keep_alive`.
    fn keep_alive<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.encoder.get().keep_alive(py)
    }

    /// Visit the decoder, which holds the clock of the caller.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.decoder)?;
        visit.call(&self.encoder)
    }

    fn __repr__(&self) -> String {
        format!(
            "<Transcoder from {} to {}>",
            self.decoder.get().dialect(),
            self.encoder.get().target
        )
    }
}

/// Status, headers, body and notes.
type WholeAnswer<'py> = (u16, Bound<'py, PyDict>, Bound<'py, PyBytes>, Bound<'py, PyList>);

fn whole_answer(py: Python<'_>, body: WholeBody) -> PyResult<WholeAnswer<'_>> {
    let notes = note_list(py, body.notes.list())?;
    let headers = headers_dict(py, body.headers)?;
    Ok((body.status, headers, PyBytes::new(py, body.json.as_bytes()), notes))
}

/// Encode a folded message, or the failure that ended it, as a whole body: status, headers, body and notes.
///
/// `None` if the target has no whole bodies.
#[pyfunction]
#[pyo3(signature = (target, assembler, /, **options))]
pub(crate) fn encode_body<'py>(
    py: Python<'py>,
    target: &str,
    assembler: &Bound<'_, MessageAssembler>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Option<WholeAnswer<'py>>> {
    let row = settings::find(py, target)?;
    let Choices { settings, .. } = settings::read(options)?;
    let (core, began) = assembler.get().shared(py)?;
    let created = began.unwrap_or_else(Timestamp::now).milliseconds();
    let body = encode::whole_body(row, settings, created, &core);
    body.map(|body| whole_answer(py, body)).transpose()
}

/// Encode the folded answers of one response, by number, as a whole body: status, headers, body and notes.
///
/// `None` if the target has one answer only, or if there is none.
#[pyfunction]
#[pyo3(signature = (target, assemblers, /, **options))]
#[expect(clippy::needless_pass_by_value, reason = "a map is extracted by value")]
pub(crate) fn encode_choices_body<'py>(
    py: Python<'py>,
    target: &str,
    assemblers: BTreeMap<u64, Py<MessageAssembler>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Option<WholeAnswer<'py>>> {
    let row = settings::find(py, target)?;
    let Choices { settings, .. } = settings::read(options)?;
    let mut created = None;
    let mut cores = Vec::new();
    for (number, assembler) in &assemblers {
        let (core, began) = assembler.get().shared(py)?;
        created = created.or(began);
        cores.push((*number, core));
    }
    let created = created.unwrap_or_else(Timestamp::now).milliseconds();
    let answers: Vec<_> = cores.iter().map(|(number, core)| (*number, &**core)).collect();
    let body = encode::whole_body_of_answers(row, settings, created, &answers);
    body.map(|body| whole_answer(py, body)).transpose()
}
