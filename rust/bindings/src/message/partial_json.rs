//! `PartialJson`: a reader that shows the value so far of a JSON text under construction.
//!
//! In: text in any chunking, or the text or the arguments of an assembler.  Out: the value, and its changes.
//!
//! Law: a call takes the whole state out of its lock, so that no Python object is built or dropped under the lock.  A second
//! call at the same time raises `MisuseError`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use deltafold::contract::InputFormat;
use deltafold::fold::partial_json::{Log, PartialJson as Core};
use deltafold::json::{MAX_DEPTH, write_string};
use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

use crate::message::fold_state::{FoldState, Place};
use crate::message::live_value::Live;
use crate::message::partial_tree::Tree;
use crate::support::bytes::with_bytes;
use crate::support::errors;
use crate::support::signals;
use crate::support::try_lock::TryLock;

const NAME: &str = "partial JSON";

/// Default bound of the nesting depth, also used for the arguments of tool calls.
const DEPTH: usize = 128;

/// Message for a reader that returned the other kind of value.
const ONE_KIND: &str = "a reader is read by live(), or by value(), changes() and path";

/// Tool call of an assembler whose arguments are read.
struct FollowedCall {
    state: Arc<TryLock<FoldState>>,
    generation: u64,
    /// Number of the part of the call.
    part: usize,
    /// Number of bytes of the arguments that were read.
    read: usize,
    ended: bool,
}

/// Answer of an assembler whose JSON is read: the visible text, or the arguments of the first call of a tool.
struct FollowedAnswer {
    state: Arc<TryLock<FoldState>>,
    generation: u64,
    tool: Option<String>,
    /// End of the text that was read.
    place: Place,
    /// Text before the JSON that may be the beginning of a Markdown fence; `None` after it.
    head: Option<String>,
}

impl FollowedAnswer {
    /// Return the JSON text that the assembler received since the last call.
    fn unread(&mut self, py: Python<'_>) -> PyResult<String> {
        let found = {
            let state = errors::lock(py, &self.state, "assembler")?;
            let is_same = state.generation() == self.generation;
            is_same.then(|| state.text_since(self.place, self.tool.as_deref()))
        };
        let Some((text, place)) = found else {
            return Ok(String::new());
        };
        self.place = place;
        Ok(match self.head.take() {
            None => text,
            Some(mut head) => {
                head.push_str(&text);
                self.without_fence(head)
            }
        })
    }

    /// Return the text after the opening of a fence, "" while more of the opening may follow.
    fn without_fence(&mut self, head: String) -> String {
        let begun = head.trim_start();
        if !begun.is_empty() && !begun.starts_with('`') {
            return head;
        }
        if let Some((_, json)) = begun.split_once('\n') {
            return json.to_owned();
        }
        self.head = Some(head);
        String::new()
    }
}

enum Source {
    /// The caller feeds the text.
    Caller,
    Call(FollowedCall),
    Answer(FollowedAnswer),
}

struct State {
    core: Core,
    tree: Tree,
    /// Value that grows in place, in the place of `tree` from its first request on.
    live: Option<Live>,
    source: Source,
    early_numbers: bool,
    /// An empty log with capacity, given to the core when its log is taken.
    spare: Log,
    /// True if the tree applied only a part of the events.
    torn: bool,
}

impl State {
    /// Read the arguments that the assembler received since the last call.
    fn catch_up(&mut self, py: Python<'_>) -> PyResult<()> {
        let source = match &mut self.source {
            Source::Caller => return Ok(()),
            Source::Answer(answer) => {
                let text = answer.unread(py)?;
                self.core.feed(text.as_bytes());
                return Ok(());
            }
            Source::Call(call) => call,
        };
        if source.ended {
            return Ok(());
        }
        let unread = errors::lock(py, &source.state, "assembler")?.unread_arguments(
            source.generation,
            source.part,
            source.read,
        );
        let Some(unread) = unread else {
            return Ok(());
        };
        match unread.input_format {
            InputFormat::Json => {
                self.core.feed(unread.text.as_bytes());
                // Without any text the call has no arguments.  The text is then not closed, because it would be an
                // incomplete value.
                if unread.ended && self.core.bytes() > 0 {
                    self.core.close();
                }
            }
            InputFormat::Text => {
                // Arguments that are not JSON become the object {"input": text}.
                if self.core.bytes() == 0 {
                    self.core.feed(b"{\"input\":\"");
                }
                let mut quoted = String::new();
                write_string(&mut quoted, &unread.text);
                let escaped = quoted.get(1..quoted.len() - 1).unwrap_or("");
                self.core.feed(escaped.as_bytes());
                if unread.ended {
                    self.core.feed(b"\"}");
                }
            }
        }
        source.read += unread.text.len();
        source.ended = unread.ended;
        Ok(())
    }

    /// Apply the new events of the core to the tree, for a request of a snapshot, a path or changes.
    fn advance_tree(&mut self, py: Python<'_>) -> PyResult<()> {
        if self.live.is_some() {
            return Err(errors::misuse(py, ONE_KIND));
        }
        self.advance(py)
    }

    /// Apply the new events of the core to the value in use.
    fn advance(&mut self, py: Python<'_>) -> PyResult<()> {
        self.catch_up(py)?;
        if self.core.log().is_empty() {
            return Ok(());
        }
        let mut log = self.core.take_log(std::mem::take(&mut self.spare));
        self.torn = true;
        match &mut self.live {
            Some(live) => live.apply(py, &log)?,
            None => self.tree.apply(py, &log)?,
        }
        self.torn = false;
        log.clear();
        self.spare = log;
        Ok(())
    }
}

enum Slot {
    Ready(Box<State>),
    Taken,
    Failed,
}

/// Value of a JSON text under construction.  Each byte is parsed once.
///
/// Snapshots only grow.  A string is shown as far as it is certain; half an escape waits.  A number or literal is shown when
/// it can no longer change, and a member once its value has begun.  For a repeated key the last value wins.
///
/// Finished objects and arrays are the same Python objects in all snapshots, so do not change the content of a snapshot.
/// The value of a complete text is a new copy for each call, which the caller may change.  Integers are exact.  Lone
/// surrogate escapes and invalid UTF-8 in strings become U+FFFD.
///
/// Args:
///     early_numbers: show a number while more digits may follow.
///     max_depth: maximum number of open objects and arrays; at most 1,000.
///
/// Raises:
///     ValueError: `max_depth` is out of range.
///     MisuseError: a method was called while another thread is inside one.
///     InternalError: a bug; this reader cannot be used any more.
///
/// Example:
///     >>> reader = PartialJson()
///     >>> reader.feed('{"city": "Par')
///     >>> reader.value(), reader.path
///     ({'city': 'Par'}, ('city',))
///     >>> reader.changes()
///     [((), 'set', {}), (('city',), 'set', 'Par')]
///     >>> reader.feed('is", "days": 3}')
///     >>> reader.changes()
///     [(('city',), 'append', 'is'), (('days',), 'set', 3)]
///     >>> reader.complete
///     True
#[pyclass(frozen, module = "deltafold._core")]
pub(crate) struct PartialJson {
    slot: Mutex<Slot>,
    /// True if this reader follows an assembler, so that the caller must not feed it.
    follows: bool,
}

impl PartialJson {
    fn over(core: Core, source: Source, early_numbers: bool) -> Self {
        let follows = !matches!(source, Source::Caller);
        let state = State {
            core,
            tree: Tree::default(),
            live: None,
            source,
            early_numbers,
            spare: Log::default(),
            torn: false,
        };
        Self { slot: Mutex::new(Slot::Ready(Box::new(state))), follows }
    }

    /// Build a reader of the arguments of a tool call.
    pub(crate) fn following(state: Arc<TryLock<FoldState>>, generation: u64, part: usize) -> Self {
        let source = FollowedCall { state, generation, part, read: 0, ended: false };
        Self::over(Core::new(DEPTH), Source::Call(source), false)
    }

    /// Build a reader of the JSON in an answer: the visible text, or the arguments of the first call of a tool.
    pub(crate) fn of_answer(
        state: Arc<TryLock<FoldState>>,
        generation: u64,
        tool: Option<String>,
    ) -> Self {
        let head = tool.is_none().then(String::new);
        let source = FollowedAnswer { state, generation, tool, place: Place::default(), head };
        Self::over(Core::new(DEPTH), Source::Answer(source), false)
    }

    /// Run `work` on the state, which is taken out of its lock during the call.
    fn with<R>(&self, py: Python<'_>, work: impl FnOnce(&mut State) -> PyResult<R>) -> PyResult<R> {
        let mut slot = self.slot.try_lock().map_err(|_| errors::in_use(py, NAME))?;
        let taken = std::mem::replace(&mut *slot, Slot::Taken);
        drop(slot);
        let mut state = match taken {
            Slot::Ready(state) => state,
            Slot::Taken => return Err(errors::in_use(py, NAME)),
            Slot::Failed => {
                self.put(Slot::Failed);
                return Err(errors::failed_before(py, NAME));
            }
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| work(&mut state)));
        let broken = outcome.is_err() || state.torn;
        self.put(if broken { Slot::Failed } else { Slot::Ready(state) });
        outcome.unwrap_or_else(|_| Err(errors::bug(py, NAME)))
    }

    /// Put the state back.  Other holders of this lock only move the state, so blocking on it is safe.
    fn put(&self, slot: Slot) {
        *self.slot.lock().unwrap_or_else(PoisonError::into_inner) = slot;
    }
}

#[pymethods]
impl PartialJson {
    #[new]
    // The signature spells out `DEPTH`, so that `help()` shows it.
    #[pyo3(signature = (*, early_numbers=false, max_depth=128))]
    fn new(early_numbers: bool, max_depth: usize) -> PyResult<Self> {
        if !(1..=MAX_DEPTH).contains(&max_depth) {
            let message = format!("max_depth must be from 1 to {MAX_DEPTH}, not {max_depth}");
            return Err(PyValueError::new_err(message));
        }
        Ok(Self::over(Core::new(max_depth), Source::Caller, early_numbers))
    }

    /// Read the next text, which may be cut anywhere.  Bytes are UTF-8 and may be cut inside a character.
    ///
    /// The cost is linear in the data.  Ctrl-C interrupts a feed of many megabytes, which also ends the text.  If the text
    /// is not JSON, `error` describes the defect.
    ///
    /// Raises:
    ///     MisuseError: this reader follows an assembler.
    ///     UnicodeEncodeError: a str holds a lone surrogate; nothing was read.
    #[pyo3(signature = (data, /))]
    fn feed(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<()> {
        self.check_own(py)?;
        let read = |bytes: &[u8]| {
            self.with(py, |state| {
                let core = &mut state.core;
                let read =
                    signals::in_slices(bytes, |slice| core.feed(slice), || py.check_signals());
                // The rest of the data is lost, so the text ends here.
                read.inspect_err(|_| core.close())
            })
        };
        match data.cast::<PyString>() {
            Ok(text) => read(text.to_str()?.as_bytes()),
            Err(_) => with_bytes(data, read),
        }
    }

    /// End the text.  A number at the top level is then complete.  An unfinished value is an error.
    ///
    /// Raises:
    ///     MisuseError: this reader follows an assembler.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.check_own(py)?;
        self.with(py, |state| {
            state.core.close();
            Ok(())
        })
    }

    /// Return the value so far; `None` before its first byte.  For a complete text the value is a new copy.
    ///
    /// The cost is the width of the open objects and arrays plus the length of the unfinished string.
    fn value<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.with(py, |state| {
            state.advance_tree(py)?;
            let State { core, tree, early_numbers, .. } = state;
            tree.value(py, core.open_number().filter(|_| *early_numbers))
        })
    }

    /// Return the value so far as one object, which each call makes grow in place; `None` before its first byte.
    ///
    /// The cost is the size of the text since the last call.  Do not change the object, and copy it to keep a state.  An
    /// unfinished number is not shown.
    ///
    /// Raises:
    ///     MisuseError: this reader has returned a snapshot, a path or changes.  After `live()` it returns none of them.
    fn live<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.with(py, |state| {
            if state.live.is_none() {
                if !state.tree.is_empty() {
                    return Err(errors::misuse(py, ONE_KIND));
                }
                state.live = Some(Live::default());
            }
            state.advance(py)?;
            let live = state.live.as_ref();
            Ok(live.map_or_else(|| py.None().into_bound(py), |live| live.value(py)))
        })
    }

    /// Return the changes since the last call as tuples of path, operation and value.  The first call returns the whole
    /// value.
    ///
    /// `set` puts a finished scalar, an empty object or array, or the beginning of a string at the path.  `append` adds text
    /// to the string at the path.  Applied in order to the value of the last call (at first `None`), the changes give the
    /// current value.  The cost is the size of the changes, and for the first call that of the value.
    fn changes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.with(py, |state| {
            state.advance_tree(py)?;
            let State { core, tree, early_numbers, .. } = state;
            tree.take_changes(py, core.open_number().filter(|_| *early_numbers))
        })
    }

    /// Keys and indexes that lead to the innermost unfinished value.
    #[getter]
    fn path<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.with(py, |state| {
            state.advance_tree(py)?;
            Ok(state.tree.path(py, state.core.in_scalar())?.into_bound(py))
        })
    }

    /// True after one whole value without a defect after it.
    #[getter]
    fn complete(&self, py: Python<'_>) -> PyResult<bool> {
        self.with(py, |state| {
            state.catch_up(py)?;
            Ok(state.core.complete())
        })
    }

    /// First defect of the text, `None` without one.  The value before the defect is kept.
    #[getter]
    fn error(&self, py: Python<'_>) -> PyResult<Option<JsonDefect>> {
        self.with(py, |state| {
            state.catch_up(py)?;
            Ok(state
                .core
                .error()
                .map(|error| JsonDefect { message: error.to_string(), offset: error.offset }))
        })
    }

    /// Visit finished containers, because the caller shares them and may put any object into them.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self.slot.try_lock().as_deref() {
            Ok(Slot::Ready(state)) => {
                state.tree.traverse(&visit)?;
                state.live.as_ref().map_or(Ok(()), |live| live.traverse(&visit))
            }
            Ok(Slot::Taken | Slot::Failed) | Err(_) => Ok(()),
        }
    }

    fn __clear__(&self) {
        let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        let old = match &*slot {
            Slot::Ready(_) => std::mem::replace(&mut *slot, Slot::Failed),
            Slot::Taken | Slot::Failed => return,
        };
        drop(slot);
        drop(old);
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |state| {
            state.catch_up(py)?;
            let stands = match state.core.error() {
                Some(_) => "failed",
                None if state.core.complete() => "complete",
                None => "open",
            };
            Ok(format!("<PartialJson {stands}, {} bytes>", state.core.bytes()))
        })
    }
}

impl PartialJson {
    fn check_own(&self, py: Python<'_>) -> PyResult<()> {
        if self.follows {
            let message = "this partial JSON follows its assembler; feed that";
            return Err(errors::misuse(py, message));
        }
        Ok(())
    }
}

/// Defect of a JSON text, with its offset in UTF-8 bytes.
///
/// >>> partial = deltafold.PartialJson()
/// >>> partial.feed('{"a": +')
/// >>> partial.error.offset
/// 6
#[pyclass(frozen, module = "deltafold._core", eq, hash, get_all)]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct JsonDefect {
    message: String,
    offset: usize,
}

#[pymethods]
impl JsonDefect {
    fn __str__(&self) -> &str {
        &self.message
    }

    fn __repr__(&self) -> String {
        format!("<JsonDefect: {}>", self.message)
    }
}
