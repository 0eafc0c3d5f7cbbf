//! `Decoder`: decodes bytes in any chunking into deltas.
//!
//! In: facts about a response (dialect, status, headers, tools) and the bytes of its body.  Out: one `DeltaBatch` for each
//! feed, or deltas folded into an assembler.
//!
//! Laws: a feed that a signal handler interrupts leaves the decoder unchanged.  `feed_into` cannot be undone, so after an
//! interruption the decoder refuses more bytes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use deltafold::contract::DeltaBatch as CoreBatch;
use deltafold::decoder::{Decoder as Core, Options, UNDECIDED};
use deltafold::fold::FoldingOutput;
use deltafold::provider_error::FIRST_REFUSAL;
use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString};

use crate::decode::choices::ChoicesDecoder;
use crate::decode::input::{Feeds, Input};
use crate::decode::options::{
    Choice, Given, Settings, docstring, given_now, keywords, known, left_the_registry, now,
    undecidable,
};
use crate::decode::refusal;
use crate::delta::batch::DeltaBatch;
use crate::message::assembler::MessageAssembler;
use crate::support::callback::Callback;
use crate::support::clock::Timestamp;
use crate::support::errors;
use crate::support::failure::{Evidence, failure};
use crate::support::signals::{self, SLICE};
use crate::support::try_lock::TryLock;

/// Decoder of one response body.  Bytes are fed in any chunking and decoded into deltas.
///
/// Args:
///     dialect: the wire protocol, a name of `dialect_names()`; or with a markup, `<dialect>+<markup>`.  None takes it from
///         the first events: bytes are held, 64 KiB at most, until they tell it.
///     choice: the number of the answer to decode, if the request asked for several (`n > 1`); or "all", which makes a
///         `ChoicesDecoder` of every answer; or "joined" for a server that writes the text and the calls of one answer as
///         several choices, as GitHub Copilot does.
#[doc = keywords!(docstring)]
///
/// Raises:
///     UnknownDialectError: no dialect, or no markup, has this name; the message lists them.  Raised by a feed or `close()`: no
///         dialect was named, and the body fits none, or two that would read it in different ways.
///     TypeError, ValueError: an item of `tools` is not a tool; the message names the field.
///     ValueError: two different markups are given, or `starts_in_thinking` is given without a markup.
///     MisuseError: a method was called while another thread is inside one.
///     InternalError: a bug; the decoder cannot be used any more.
///
/// Example:
///     >>> decoder = Decoder("openai-chat", run_id="r1")
///     >>> event = b'data: {"choices":[{"delta":{"content":"Hi"}}]}\n\n'
///     >>> batch = decoder.feed(event + b"data: [DONE]\n\n")
///     >>> batch.text, decoder.finished
///     ('Hi', True)
#[pyclass(frozen, module = "deltafold._core")]
pub(crate) struct Decoder {
    core: TryLock<Core>,
    /// The dialect; empty until the body told it.
    dialect: OnceLock<&'static str>,
    markup: Option<&'static str>,
    run_id: Arc<str>,
    /// The run id as a Python string, built with the first batch.
    run_id_text: PyOnceLock<Py<PyString>>,
    clock: Callback,
    feeds: Feeds,
    closed: AtomicBool,
    /// A signal handler raised during `feed_into`, so only a part of the bytes was read.
    torn: AtomicBool,
}

/// Result of a feed: the deltas or their number, and whether the terminal was among them.
pub(crate) struct Taken<D> {
    pub(crate) deltas: D,
    pub(crate) finished: bool,
}

impl Decoder {
    /// Build a decoder with the options of a mapping.
    pub(crate) fn from_options(
        dialect: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<Self>> {
        let py = dialect.py();
        let mut choice = Choice::One(0);
        let given = Given::of("Decoder", options, Some(&mut choice))?;
        if matches!(choice, Choice::All) {
            return Err(PyValueError::new_err(
                "choice=\"all\" has a message for each choice, and this reads one: \
                 fold_choices() folds them, and Decoder(choice=\"all\") decodes them",
            ));
        }
        Py::new(py, Self::make(given.read(py, dialect.extract()?, choice)?)?)
    }

    /// Build a decoder of one answer.
    fn make(settings: Settings) -> PyResult<Self> {
        let Settings { options, dialect, markup, run_id, clock } = settings;
        Ok(Self {
            core: TryLock::new(Core::new(options).ok_or_else(left_the_registry)?),
            dialect: known(dialect),
            markup,
            run_id,
            run_id_text: PyOnceLock::new(),
            clock,
            feeds: Feeds::default(),
            closed: AtomicBool::new(false),
            torn: AtomicBool::new(false),
        })
    }

    pub(crate) fn run_id_text(&self, py: Python<'_>) -> Py<PyString> {
        let run_id = self.run_id_text.get_or_init(py, || PyString::new(py, &self.run_id).unbind());
        run_id.clone_ref(py)
    }

    pub(crate) fn run(&self) -> &Arc<str> {
        &self.run_id
    }

    /// Read the clock of this decoder.
    pub(crate) fn now(&self, py: Python<'_>) -> PyResult<Timestamp> {
        now(py, &self.clock)
    }

    /// Return a copy of the caller's options.
    pub(crate) fn options(&self, py: Python<'_>) -> PyResult<Options> {
        Ok(errors::lock(py, &self.core, "decoder")?.options())
    }

    pub(crate) fn core(&self) -> &TryLock<Core> {
        &self.core
    }

    pub(crate) fn feeds(&self) -> &Feeds {
        &self.feeds
    }

    /// Refuse more bytes, because a feed was interrupted.
    pub(crate) fn tear(&self) {
        self.torn.store(true, Ordering::Relaxed);
    }

    /// Refuse more bytes, because the body has ended.
    pub(crate) fn mark_closed(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    /// Refuse bytes after `close()` and after an interrupted `feed_into()`.
    pub(crate) fn check_open(&self, py: Python<'_>) -> PyResult<()> {
        if self.torn.load(Ordering::Relaxed) {
            let message = "feed after an interrupted feed_into(): a part of its bytes was read; close(), or fail()";
            return Err(errors::misuse(py, message));
        }
        if self.closed.load(Ordering::Relaxed) {
            return Err(errors::misuse(py, "feed after close(): the body has ended"));
        }
        Ok(())
    }

    /// Learn the dialect that the body told.
    ///
    /// Raises:
    ///     UnknownDialectError: the body does not tell it.
    #[inline]
    pub(crate) fn learn(&self, py: Python<'_>) -> PyResult<()> {
        if self.dialect.get().is_some() { Ok(()) } else { self.ask(py) }
    }

    #[cold]
    fn ask(&self, py: Python<'_>) -> PyResult<()> {
        let core = errors::lock(py, &self.core, "decoder")?;
        let (dialect, candidates) = (core.dialect(), core.undecidable().map(<[_]>::to_vec));
        drop(core);
        if let Some(candidates) = candidates {
            return Err(undecidable(py, "the body", &candidates));
        }
        if dialect != UNDECIDED {
            let _ = self.dialect.set(dialect);
        }
        Ok(())
    }

    fn batch(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&mut Core, &mut CoreBatch) -> PyResult<()>,
    ) -> PyResult<DeltaBatch> {
        let (taken, now) = self.core_batch(py, f)?;
        Ok(DeltaBatch::new(taken.deltas, self.run_id_text(py), now))
    }

    fn core_batch(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&mut Core, &mut CoreBatch) -> PyResult<()>,
    ) -> PyResult<(Taken<CoreBatch>, Timestamp)> {
        let now = self.now(py)?;
        let mut deltas = CoreBatch::default();
        let finished = errors::guarded(py, &self.core, "decoder", |core| {
            f(core, &mut deltas).map(|()| core.finished())
        })??;
        self.learn(py)?;
        Ok((Taken { deltas, finished }, now))
    }

    /// Decode the next bytes as `feed` does, and return the deltas and their time.
    pub(crate) fn decode(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
    ) -> PyResult<(Taken<CoreBatch>, Timestamp)> {
        self.check_open(py)?;
        self.feeds.take(self.dialect(), data, |input| {
            self.core_batch(py, |core, batch| {
                let bytes = match input {
                    Input::Bytes(bytes) => bytes,
                    Input::Event(frame, dialect) => {
                        core.decide(dialect, batch);
                        core.feed_frame(frame, batch);
                        return Ok(());
                    }
                };
                if bytes.len() <= SLICE {
                    core.feed(bytes, batch);
                    return Ok(());
                }
                let before = core.clone();
                signals::in_slices(bytes, |slice| core.feed(slice, batch), || py.check_signals())
                    .inspect_err(|_| *core = before)
            })
        })
    }

    /// Return true after the terminal.
    pub(crate) fn has_finished(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(errors::lock(py, &self.core, "decoder")?.finished())
    }

    fn fold(
        &self,
        py: Python<'_>,
        assembler: &MessageAssembler,
        f: impl FnOnce(&mut Core, &mut FoldingOutput<'_>) -> PyResult<()>,
    ) -> PyResult<Taken<usize>> {
        // A message keeps the timestamp of its first delta only, so the system clock is read at most once.
        let given = given_now(py, &self.clock).transpose()?;
        let outcome = errors::guarded_pair(
            py,
            (&self.core, "decoder"),
            (assembler.state(), "assembler"),
            |core, state| {
                let now = || given.unwrap_or_else(Timestamp::now);
                let first_seq = core.last_seq() + 1;
                let outcome = state.receive(&self.run_id, now, first_seq, |output| f(core, output));
                outcome
                    .map(|(count, read)| (Taken { deltas: count, finished: core.finished() }, read))
            },
        )?;
        let (taken, read) =
            outcome.map_err(|violation| errors::contract_violation(py, &violation))?;
        read.inspect_err(|_| self.torn.store(true, Ordering::Relaxed))?;
        self.learn(py)?;
        Ok(taken)
    }

    /// Decode the next bytes into an assembler.
    pub(crate) fn take_into(
        &self,
        py: Python<'_>,
        assembler: &MessageAssembler,
        data: &Bound<'_, PyAny>,
    ) -> PyResult<Taken<usize>> {
        self.check_open(py)?;
        self.feeds.take(self.dialect(), data, |input| {
            self.fold(py, assembler, |core, sink| match input {
                Input::Bytes(bytes) => {
                    signals::in_slices(bytes, |slice| core.feed(slice, sink), || py.check_signals())
                }
                Input::Event(frame, dialect) => {
                    core.decide(dialect, sink);
                    core.feed_frame(frame, sink);
                    Ok(())
                }
            })
        })
    }

    /// Take the end of the body into an assembler, and return the number of deltas.
    pub(crate) fn take_end_into(
        &self,
        py: Python<'_>,
        assembler: &MessageAssembler,
    ) -> PyResult<usize> {
        let taken = self.fold(py, assembler, |core, sink| {
            core.close(sink);
            Ok(())
        })?;
        self.closed.store(true, Ordering::Relaxed);
        Ok(taken.deltas)
    }
}

#[pymethods]
impl Decoder {
    #[new]
    #[pyo3(
        signature = (dialect=None, *, choice=Choice::One(0), **options),
        text_signature = "(dialect=None, *, choice=0, **options)"
    )]
    #[expect(clippy::new_ret_no_self, reason = "`choice` decides the class")]
    fn new<'py>(
        py: Python<'py>,
        dialect: Option<&str>,
        choice: Choice,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let settings = Given::of("Decoder", options, None)?.read(py, dialect, choice)?;
        match choice {
            Choice::One(_) | Choice::Joined => {
                Ok(Bound::new(py, Self::make(settings)?)?.into_any())
            }
            Choice::All => Ok(Bound::new(py, ChoicesDecoder::make(settings)?)?.into_any()),
        }
    }

    /// The wire protocol; empty until the body told it.
    #[getter]
    pub(crate) fn dialect(&self) -> &'static str {
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

    /// True after the terminal delta (`done` or `error`).
    #[getter]
    fn finished(&self, py: Python<'_>) -> PyResult<bool> {
        self.has_finished(py)
    }

    /// True while an error that the body brought waits for the end of the stream; no content follows it.
    #[getter]
    fn holds_error(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(errors::lock(py, &self.core, "decoder")?.holds_error())
    }

    /// Number of bytes of the body up to the end of the event with the terminal; None for a body without one.
    #[getter]
    fn ended_at(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        Ok(errors::lock(py, &self.core, "decoder")?.ended_at())
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
        let now = (status >= FIRST_REFUSAL).then(|| self.now(py)).transpose()?;
        let response = refusal::response(status, Some(headers), now.map(Timestamp::seconds))?;
        let accepted =
            errors::guarded(py, &self.core, "decoder", |core| core.set_response(response))?;
        if accepted {
            return Ok(());
        }
        Err(errors::misuse(py, "set_response after feed(): the response comes before its body"))
    }

    /// Decode the next bytes of the body, in any chunking, and return the completed deltas, oldest first.
    ///
    /// The cost is linear in the number of bytes.  The GIL is held.  After the terminal all bytes are ignored.  Ctrl-C
    /// interrupts a feed of many megabytes, and the decoder is then unchanged.
    ///
    /// Raises:
    ///     MisuseError: called after `close()`.
    ///     TypeError: `data` is neither bytes nor an event, a dict or an object of an SDK.
    #[pyo3(signature = (data, /))]
    fn feed(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<DeltaBatch> {
        let (taken, now) = self.decode(py, data)?;
        Ok(DeltaBatch::new(taken.deltas, self.run_id_text(py), now))
    }

    /// Decode the next bytes into an assembler, and return the number of deltas.
    ///
    /// Ctrl-C interrupts a feed of many megabytes.  The deltas so far stay in the assembler, and the decoder refuses more
    /// bytes.
    ///
    /// Raises:
    ///     ContractError: the assembler belongs to another run, or holds another stream.
    ///     MisuseError: called after `close()`.
    #[pyo3(signature = (assembler, data, /))]
    pub(crate) fn feed_into(
        &self,
        py: Python<'_>,
        assembler: &Bound<'_, MessageAssembler>,
        data: &Bound<'_, PyAny>,
    ) -> PyResult<usize> {
        Ok(self.take_into(py, assembler.get(), data)?.deltas)
    }

    /// Take the end of the body.  Afterwards the stream has its terminal.  A second call has no effect.
    fn close(&self, py: Python<'_>) -> PyResult<DeltaBatch> {
        let batch = self.batch(py, |core, batch| {
            core.close(batch);
            Ok(())
        })?;
        self.closed.store(true, Ordering::Relaxed);
        Ok(batch)
    }

    /// Take the end of the body as `close()` does, into an assembler, and return the number of deltas.
    #[pyo3(signature = (assembler, /))]
    pub(crate) fn close_into(
        &self,
        py: Python<'_>,
        assembler: &Bound<'_, MessageAssembler>,
    ) -> PyResult<usize> {
        self.take_end_into(py, assembler.get())
    }

    /// End the stream for an external reason: a failed transport, or a caller that stops.
    ///
    /// After a finish reason the message is whole and ends in `done` with a warning.  After the terminal the call has no
    /// effect.
    ///
    /// Raises:
    ///     ValueError: `code` is unknown; the message lists the error codes.
    ///
    /// Args:
    ///     code: an `ErrorCode` or its name.
    ///     message: the description of the failure.
    ///     retryable: true if the same request may succeed later; by default the value of the code.
    ///     retry_after: seconds to wait.
    ///     status: the HTTP status.
    ///     provider_code: the error code of the provider.
    ///     http_request_id: the HTTP request id; by default the one of the headers.
    #[pyo3(signature = (code, message, retryable=None, *, retry_after=None, status=None, provider_code=None, http_request_id=None))]
    #[expect(clippy::too_many_arguments, reason = "one keyword a piece of evidence")]
    fn fail(
        &self,
        py: Python<'_>,
        code: &Bound<'_, PyString>,
        message: &Bound<'_, PyString>,
        retryable: Option<bool>,
        retry_after: Option<f64>,
        status: Option<u16>,
        provider_code: Option<&Bound<'_, PyString>>,
        http_request_id: Option<&Bound<'_, PyString>>,
    ) -> PyResult<DeltaBatch> {
        let failure = failure(
            code,
            message,
            retryable,
            Evidence { retry_after, status, provider_code, http_request_id },
        )?;
        self.batch(py, |core, batch| {
            core.fail(failure, batch);
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
        format!("<Decoder of {}{markup}, run {}>", self.dialect(), self.run_id)
    }
}
