//! `ChoicesDecoder`: decodes bytes in any chunking into the deltas of every answer.
//!
//! In: facts about a response, and the bytes of its body.  Out: one `DeltaBatch` for each answer with new deltas, or the
//! assemblers of a whole body.
//!
//! Law: a feed that a signal handler interrupts leaves the decoder unchanged.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use deltafold::contract::DeltaBatch as CoreBatch;
use deltafold::decoder::{Choices, Options, UNDECIDED};
use deltafold::provider_error::FIRST_REFUSAL;
use pyo3::exceptions::PyTypeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple};

use crate::decode::input::{Feeds, Input};
use crate::decode::options::{
    self, Choice, Given, Settings, known, left_the_registry, name_dialect, undecidable,
};
use crate::decode::refusal;
use crate::delta::batch::DeltaBatch;
use crate::message::assembler::MessageAssembler;
use crate::message::fold_state::FoldState;
use crate::support::callback::Callback;
use crate::support::clock::Timestamp;
use crate::support::errors;
use crate::support::failure::{Evidence, failure};
use crate::support::signals::{self, SLICE};
use crate::support::try_lock::TryLock;

/// Decoder of every answer of one response body, for a request that asked for several (`n > 1`).
///
/// `Decoder(dialect, choice="all")` makes it.  An answer appears when the body first shows it, with the deltas that came
/// before, such as `start`.  Its deltas are those of `Decoder(dialect, choice=number)`.  A body without an answer, and every
/// body of a dialect without several answers, has answer 0 alone.  `Limits.choices` bounds the number of answers, and all
/// other limits hold for each answer.
///
/// Args:
///     dialect: the wire protocol, a name of `dialect_names()`; or with a markup, `<dialect>+<markup>`.  None takes it from
///         the first events.
///     options: the options of `Decoder` except `choice`.
///
/// Raises:
///     MisuseError: a method was called while another thread is inside one.
///     InternalError: a bug; the decoder cannot be used any more.
///
/// Example:
///     >>> decoder = Decoder("openai-chat", choice="all", run_id="r1")
///     >>> event = b'data: {"choices":[{"index":1,"delta":{"content":"Hi"}}]}\n\n'
///     >>> batches = decoder.feed(event)
///     >>> {choice: batch.text for choice, batch in batches.items()}
///     {1: 'Hi'}
#[pyclass(frozen, module = "deltafold._core")]
pub(crate) struct ChoicesDecoder {
    core: TryLock<Choices>,
    /// The dialect; empty until the body told it.
    dialect: OnceLock<&'static str>,
    markup: Option<&'static str>,
    run_id: Arc<str>,
    /// The run id as a Python string, built with the first batch.
    run_id_text: PyOnceLock<Py<PyString>>,
    clock: Callback,
    feeds: Feeds,
    closed: AtomicBool,
}

type Batches = BTreeMap<u64, CoreBatch>;

impl ChoicesDecoder {
    /// Build a decoder of every answer.
    pub(crate) fn make(settings: Settings) -> PyResult<Self> {
        let Settings { options, dialect, markup, run_id, clock } = settings;
        Ok(Self {
            core: TryLock::new(Choices::new(options).ok_or_else(left_the_registry)?),
            dialect: known(dialect),
            markup,
            run_id,
            run_id_text: PyOnceLock::new(),
            clock,
            feeds: Feeds::default(),
            closed: AtomicBool::new(false),
        })
    }

    /// Let the core decode, and return the batches of the answers with new deltas.
    fn batches<'py>(
        &self,
        py: Python<'py>,
        f: impl FnOnce(&mut Choices) -> PyResult<()>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let now = options::now(py, &self.clock)?;
        let decode = |core: &mut Choices| {
            f(core).map(|()| (core.take(), core.dialect(), core.undecidable().map(<[_]>::to_vec)))
        };
        let (taken, dialect, candidates) = errors::guarded(py, &self.core, "decoder", decode)??;
        if let Some(candidates) = candidates {
            return Err(undecidable(py, "the body", &candidates));
        }
        if dialect != UNDECIDED {
            let _ = self.dialect.set(dialect);
        }
        let run_id = self.run_id_text.get_or_init(py, || PyString::new(py, &self.run_id).unbind());
        let batches = PyDict::new(py);
        for (number, batch) in taken {
            batches.set_item(number, DeltaBatch::new(batch, run_id.clone_ref(py), now))?;
        }
        Ok(batches)
    }
}

#[pymethods]
impl ChoicesDecoder {
    #[new]
    #[pyo3(signature = (dialect=None, **options))]
    fn new<'py>(
        py: Python<'py>,
        dialect: Option<&str>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Self> {
        Self::make(Given::of("ChoicesDecoder", options, None)?.read(py, dialect, Choice::All)?)
    }

    /// The wire protocol; empty until the body told it.
    #[getter]
    fn dialect(&self) -> &'static str {
        self.dialect.get().copied().unwrap_or(UNDECIDED)
    }

    /// The markup that is decoded in plain text; `None` without one.
    #[getter]
    fn markup(&self) -> Option<&'static str> {
        self.markup
    }

    #[getter]
    fn run_id(&self) -> &str {
        &self.run_id
    }

    /// Numbers of the answers so far, lowest first.
    #[getter]
    fn choices<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let numbers: Vec<u64> = errors::lock(py, &self.core, "decoder")?.numbers().collect();
        PyTuple::new(py, numbers)
    }

    /// True if no delta of any answer can follow, at the latest after `close()`.
    #[getter]
    fn finished(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(errors::lock(py, &self.core, "decoder")?.finished())
    }

    /// Set the status and the headers of the response, which arrive after the request.
    ///
    /// Raises:
    ///     MisuseError: bytes of the body were fed already.
    #[pyo3(signature = (status, headers, /))]
    fn set_response(
        &self,
        py: Python<'_>,
        status: u16,
        headers: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let now = (status >= FIRST_REFUSAL).then(|| options::now(py, &self.clock)).transpose()?;
        let response = refusal::response(status, Some(headers), now.map(Timestamp::seconds))?;
        let accepted =
            errors::guarded(py, &self.core, "decoder", |core| core.set_response(response))?;
        if accepted {
            return Ok(());
        }
        Err(errors::misuse(py, "set_response after feed(): the response comes before its body"))
    }

    /// Decode the next bytes of the body, in any chunking, and return the completed deltas of each answer that has any.
    ///
    /// The bytes are framed and read once for all answers.  The GIL is held.  Ctrl-C interrupts a feed of many megabytes,
    /// and the decoder is then unchanged.
    ///
    /// Raises:
    ///     MisuseError: called after `close()`.
    ///     TypeError: `data` is neither bytes nor an event, a dict or an object of an SDK.
    #[pyo3(signature = (data, /))]
    fn feed<'py>(&self, py: Python<'py>, data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
        if self.closed.load(Ordering::Relaxed) {
            return Err(errors::misuse(py, "feed after close(): the body has ended"));
        }
        self.feeds.take(self.dialect(), data, |input| {
            self.batches(py, |core| {
                let bytes = match input {
                    Input::Bytes(bytes) => bytes,
                    Input::Event(frame, dialect) => {
                        core.decide(dialect);
                        core.feed_frame(frame);
                        return Ok(());
                    }
                };
                if bytes.len() <= SLICE {
                    core.feed(bytes);
                    return Ok(());
                }
                let before = core.clone();
                signals::in_slices(bytes, |slice| core.feed(slice), || py.check_signals())
                    .inspect_err(|_| *core = before)
            })
        })
    }

    /// Refuse: an assembler holds one message, and this decoder has one for each answer.
    ///
    /// Raises:
    ///     TypeError: always.
    #[pyo3(signature = (assembler, data, /))]
    #[expect(clippy::unused_self, reason = "a method of the decoder of one answer")]
    fn feed_into(&self, assembler: &Bound<'_, PyAny>, data: &Bound<'_, PyAny>) -> PyResult<()> {
        let _ = (assembler, data);
        Err(PyTypeError::new_err(
            "feed_into() fills one assembler, and choice=\"all\" has a message for each choice: \
             let an assembler of each choice consume its batch of feed(), or use fold_choices()",
        ))
    }

    /// Take the end of the body.  Afterwards every answer has its terminal.  A second call has no effect.
    fn close<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let batches = self.batches(py, |core| {
            core.close();
            Ok(())
        })?;
        self.closed.store(true, Ordering::Relaxed);
        Ok(batches)
    }

    /// End every answer for an external reason, as `Decoder.fail()` does.
    ///
    /// Raises:
    ///     ValueError: `code` is unknown; the message lists the error codes.
    #[pyo3(signature = (code, message, retryable=None, *, retry_after=None, status=None, provider_code=None, http_request_id=None))]
    #[expect(clippy::too_many_arguments, reason = "one keyword a piece of evidence")]
    fn fail<'py>(
        &self,
        py: Python<'py>,
        code: &Bound<'py, PyString>,
        message: &Bound<'py, PyString>,
        retryable: Option<bool>,
        retry_after: Option<f64>,
        status: Option<u16>,
        provider_code: Option<&Bound<'py, PyString>>,
        http_request_id: Option<&Bound<'py, PyString>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let evidence = Evidence { retry_after, status, provider_code, http_request_id };
        let failure = failure(code, message, retryable, evidence)?;
        self.batches(py, |core| {
            core.fail(&failure);
            Ok(())
        })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.clock.traverse(&visit)
    }

    fn __clear__(&self) {
        self.clock.clear();
    }

    fn __repr__(&self) -> String {
        let markup = self.markup.map(|markup| format!("+{markup}")).unwrap_or_default();
        format!("<ChoicesDecoder of {}{markup}, run {}>", self.dialect(), self.run_id)
    }
}

/// Fold a whole response body with the options of `decoder`, into one assembler for each answer.
///
/// The GIL is released, and Ctrl-C ends the call.  `decoder` itself is not fed.
///
/// Raises:
///     InternalError: a bug.
#[pyfunction]
pub(crate) fn fold_body_choices<'py>(
    py: Python<'py>,
    decoder: &Bound<'py, ChoicesDecoder>,
    body: &Bound<'py, PyBytes>,
) -> PyResult<Bound<'py, PyDict>> {
    let decoder = decoder.get();
    let mut options = errors::lock(py, &decoder.core, "decoder")?.options();
    let now = options::now(py, &decoder.clock)?;
    let body = body.as_bytes();
    name_dialect(&mut options, body)
        .map_err(|candidates| undecidable(py, "the body", &candidates))?;
    let fold = || fold_all(options, &decoder.run_id, body, now);
    let fold = std::panic::AssertUnwindSafe(fold);
    let states = py.detach(|| std::panic::catch_unwind(fold).unwrap_or(Ok(None)))?;
    let folded = PyDict::new(py);
    for (number, state) in states.ok_or_else(|| errors::bug(py, "decoder"))? {
        folded.set_item(number, Bound::new(py, MessageAssembler::from_state(state))?)?;
    }
    Ok(folded)
}

/// Fold a body; `None` if the deltas of the core break a law, which is a bug.
fn fold_all(
    options: Options,
    run_id: &Arc<str>,
    body: &[u8],
    now: Timestamp,
) -> PyResult<Option<BTreeMap<u64, FoldState>>> {
    let Some(mut core) = Choices::new(options) else { return Ok(None) };
    let mut states = BTreeMap::new();
    let mut lawful = true;
    let mut receive = |batches: Batches| {
        for (number, batch) in batches {
            let new = || FoldState::new(Some(Arc::clone(run_id)));
            let state: &mut FoldState = states.entry(number).or_insert_with(new);
            lawful &= state.receive_batch(run_id, now, &batch).is_ok();
        }
    };
    let feed = |slice: &[u8]| {
        core.feed(slice);
        receive(core.take());
    };
    signals::in_slices(body, feed, signals::look_detached)?;
    core.close();
    receive(core.take());
    Ok(lawful.then_some(states))
}
