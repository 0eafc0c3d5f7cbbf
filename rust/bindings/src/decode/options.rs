//! Options of a decoder: the keywords of `Decoder`, read once for a decoder of one answer and for one of all.
//!
//! In: keywords.  Out: the options of the core, the run id and the clock.
//!
//! Law: the clock is called at most once, and only for a refusal.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, OnceLock};

use deltafold::decoder::{Decoder, Options, UNDECIDED};
use deltafold::dialect::{self, REGISTRY, Shapes};
use deltafold::emit::{StreamOptions, WholeEnds};
use deltafold::markup::{self, FAMILIES, Wanted};
use deltafold::provider_error::FIRST_REFUSAL;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyDict, PyString};
use uuid::Uuid;

use crate::decode::refusal;
use crate::decode::tools;
use crate::support::callback::Callback;
use crate::support::clock::{self, Timestamp};
use crate::support::errors;
use crate::support::limits::Limits;

/// Shapes of frames that all streams of the process share.
static SHAPES: LazyLock<Arc<Shapes>> = LazyLock::new(Arc::default);

/// Return the names of all dialects.
///
/// >>> "anthropic-messages" in deltafold.dialect_names()
/// True
#[pyfunction]
pub(crate) fn dialect_names() -> Vec<&'static str> {
    REGISTRY.iter().map(|row| row.name).collect()
}

/// Return the content type of the bodies of a dialect, `None` for an unknown dialect.
#[pyfunction]
pub(crate) fn dialect_content_type(dialect: &str) -> Option<&'static str> {
    dialect::find(dialect).map(|row| row.framing.content_type())
}

/// Return the names of all markups: the notations of model families for reasoning and tool calls in plain text.
///
/// >>> "hermes" in deltafold.markup_names()
/// True
#[pyfunction]
pub(crate) fn markup_names() -> Vec<&'static str> {
    FAMILIES.iter().map(|family| family.name).collect()
}

/// The value of `choice`.
#[derive(Clone, Copy)]
pub(crate) enum Choice {
    /// The number of the answer.
    One(u64),
    /// `"all"`.
    All,
    /// `"joined"`.
    Joined,
}

impl<'a, 'py> FromPyObject<'a, 'py> for Choice {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match value.cast::<PyString>() {
            Ok(word) => match word.to_str()? {
                "all" => Ok(Self::All),
                "joined" => Ok(Self::Joined),
                _ => Err(PyValueError::new_err(format!(
                    "choice must be a number, \"all\" or \"joined\", not {}",
                    word.repr()?
                ))),
            },
            Err(_) => value.extract().map(Self::One),
        }
    }
}

/// Pass the keywords of a decoder, except `choice`, to a macro: entry of the docstring, name, type and default.
macro_rules! keywords {
    ($receiver:ident) => {
        $receiver! {
            ///    run_id: the id of the agent run; a random UUID by default.
            run_id: Option<PyBackedStr> = None,
            ///    model_id: the requested model; used if the body names none.
            model_id: Option<PyBackedStr> = None,
            ///    request_id: the response id if the body has none.
            request_id: Option<PyBackedStr> = None,
            ///    status: the HTTP status; from 300 up the stream ends in an error.
            status: u16 = 200,
            ///    headers: the response headers, in any case; the decoder reads retry-after and the request id.
            headers: Option<Bound<'py, PyAny>> = None,
            ///    tools: the offered tools, for markup: names, mappings like those of requests, or objects with `name`
            ///        and `parameter_schema`.  Without it, any name is accepted, and parameters are strings.
            tools: Option<Bound<'py, PyAny>> = None,
            ///    markup: the notation of reasoning and calls in plain text, a name of `markup_names()`; by default text
            ///        is left unchanged.
            markup: Option<PyBackedStr> = None,
            ///    starts_in_thinking: true if the prompt opened the thinking, so that the text begins inside it.
            starts_in_thinking: bool = false,
            ///    tool_names: tool names of the caller by their names in the request; only those that differ.  Deltas
            ///        carry the names of the caller.
            tool_names: Option<BTreeMap<String, String>> = None,
            ///    provider_raw: attach the JSON of each frame to its first delta, for debugging.  The terminal carries
            ///        the frame that ended the message.  Some frames are not kept: frames without JSON; frames without a
            ///        delta (keep-alives, repetitions); frames whose content is emitted in a later frame (possible
            ///        markup, half a surrogate pair, names before `start`).
            provider_raw: bool = false,
            ///    logprobs: attach log probabilities to the text deltas.
            logprobs: bool = false,
            ///    ends_without_reason: true if the service sends no finish reason: an end mark, or a body that was closed
            ///        without a failure, then ends a whole answer, with a warning.
            ends_without_reason: bool = false,
            ///    limits: bounds; see `Limits`.
            limits: Option<Bound<'py, Limits>> = None,
            ///    clock: returns the aware datetime of the deltas, called once per feed; by default the UTC clock of the
            ///        system.
            clock: Option<Py<PyAny>> = None,
        }
    };
}
pub(crate) use keywords;

/// Join the entries of the docstring.
macro_rules! docstring {
    ($($(#[doc = $line:literal])+ $name:ident: $kind:ty = $default:expr,)+) => {
        concat!($($($line, "\n",)+)+)
    };
}
pub(crate) use docstring;

/// Define the values of the keywords.
macro_rules! define_given {
    ($($(#[doc = $line:literal])+ $name:ident: $kind:ty = $default:expr,)+) => {
        /// The keywords of a call.
        pub(crate) struct Given<'py> {
            $($name: $kind,)+
        }

        impl Default for Given<'_> {
            fn default() -> Self {
                Self { $($name: $default,)+ }
            }
        }

        impl<'py> Given<'py> {
            /// Set a keyword.  Returns false if there is none of this name.
            fn set(&mut self, name: &str, value: &Bound<'py, PyAny>) -> PyResult<bool> {
                match name {
                    $(stringify!($name) => self.$name = argument(name, value)?,)+
                    _ => return Ok(false),
                }
                Ok(true)
            }
        }
    };
}

keywords!(define_given);

/// Read an argument.  An error about its type names it, as PyO3 does.
fn argument<'a, 'py, T: FromPyObject<'a, 'py>>(
    name: &str,
    value: &'a Bound<'py, PyAny>,
) -> PyResult<T> {
    value.extract().map_err(|error: T::Error| {
        let (py, error) = (value.py(), error.into());
        if !error.get_type(py).is(py.get_type::<PyTypeError>()) {
            return error;
        }
        let named = PyTypeError::new_err(format!("argument '{name}': {}", error.value(py)));
        named.set_cause(py, error.cause(py));
        named
    })
}

/// Options of a new decoder.
pub(crate) struct Settings {
    pub(crate) options: Options,
    pub(crate) dialect: &'static str,
    pub(crate) markup: Option<&'static str>,
    pub(crate) run_id: Arc<str>,
    pub(crate) clock: Callback,
}

impl<'py> Given<'py> {
    /// Take the keywords of a call; `choice` only if there is a place for it.
    ///
    /// Raises:
    ///     TypeError: a keyword is unknown, or its value has the wrong type.
    pub(crate) fn of(
        class: &str,
        keywords: Option<&Bound<'py, PyDict>>,
        mut choice: Option<&mut Choice>,
    ) -> PyResult<Self> {
        let mut given = Self::default();
        for (key, value) in keywords.into_iter().flatten() {
            let name = key.cast::<PyString>()?.to_str()?;
            if given.set(name, &value)? {
                continue;
            }
            let Some(choice) = choice.as_deref_mut().filter(|_| name == "choice") else {
                return Err(PyTypeError::new_err(format!(
                    "{class}.__new__() got an unexpected keyword argument '{name}'"
                )));
            };
            *choice = argument(name, &value)?;
        }
        Ok(given)
    }

    /// Read the keywords.  Without a dialect the body tells it.
    pub(crate) fn read(
        self,
        py: Python<'py>,
        dialect: Option<&str>,
        choice: Choice,
    ) -> PyResult<Settings> {
        let (choice, joined_choices) = match choice {
            Choice::One(number) => (number, false),
            Choice::All => (0, false),
            Choice::Joined => (0, true),
        };
        let (dialect, named) = match dialect.map(markup::specification) {
            None => (UNDECIDED, None),
            Some((dialect, named)) => {
                let Some(row) = dialect::find(dialect) else {
                    let known = dialect_names().join(", ");
                    let message = format!("unknown dialect {dialect:?}; known: {known}");
                    return Err(errors::unknown_dialect(py, &message));
                };
                (row.name, named)
            }
        };
        let clock = Callback::new(self.clock);
        let markup = one_of(named, self.markup.as_deref())?;
        let wanted = wanted(py, markup, self.tools.as_ref(), self.starts_in_thinking)?;
        let run_id: Arc<str> = match self.run_id {
            Some(run_id) => (*run_id).into(),
            None => random_run_id(),
        };
        let now = (self.status >= FIRST_REFUSAL).then(|| now(py, &clock)).transpose()?;
        let response =
            refusal::response(self.status, self.headers.as_ref(), now.map(Timestamp::seconds))?;
        let stream = StreamOptions {
            dialect,
            run_id: Arc::clone(&run_id),
            model_id: self.model_id.as_deref().map(Into::into),
            request_id: self.request_id.as_deref().map(Into::into),
            response,
            choice,
            joined_choices,
            whole_ends: if self.ends_without_reason { WholeEnds::Any } else { WholeEnds::Signed },
            provider_raw: self.provider_raw,
            logprobs: self.logprobs,
            tool_names: self.tool_names.map(own_names),
            limits: self.limits.map(|limits| limits.get().core).unwrap_or_default(),
        };
        let markup = wanted.as_ref().map(|wanted| wanted.family.name);
        let options = Options { stream, markup: wanted, shapes: Some(Arc::clone(&SHAPES)) };
        Ok(Settings { options, dialect, markup, run_id, clock })
    }
}

/// Return a random run id.
pub(crate) fn random_run_id() -> Arc<str> {
    let mut buffer = Uuid::encode_buffer();
    let text: &str = Uuid::new_v4().hyphenated().encode_lower(&mut buffer);
    text.into()
}

pub(crate) fn now(py: Python<'_>, clock: &Callback) -> PyResult<Timestamp> {
    given_now(py, clock).unwrap_or_else(|| Ok(Timestamp::now()))
}

/// Read the caller's clock; `None` without one.
pub(crate) fn given_now(py: Python<'_>, clock: &Callback) -> Option<PyResult<Timestamp>> {
    clock.get(py).map(|clock| clock::from_python(&clock.call0()?))
}

/// Build the error for a dialect that was found and is unknown to the core.
pub(crate) fn left_the_registry() -> PyErr {
    Python::attach(|py| errors::unknown_dialect(py, "the dialect left the registry"))
}

/// Return a cell with the name of a dialect, empty if it is not decided.
pub(crate) fn known(dialect: &'static str) -> OnceLock<&'static str> {
    let cell = OnceLock::new();
    if dialect != UNDECIDED {
        let _ = cell.set(dialect);
    }
    cell
}

/// Name the dialect of a whole body in the options of a decoder without one.
pub(crate) fn name_dialect(options: &mut Options, body: &[u8]) -> Result<(), Vec<&'static str>> {
    if options.stream.dialect == UNDECIDED {
        options.stream.dialect = Decoder::dialect_of(options, body)?;
    }
    Ok(())
}

/// Build the error for a body that fits none of the dialects, or several that would read it in different ways.
///
/// `body` is the name of the argument.
pub(crate) fn undecidable(py: Python<'_>, body: &str, candidates: &[&str]) -> PyErr {
    let fits =
        if candidates.is_empty() { "no dialect".to_owned() } else { candidates.join(" and ") };
    let message = format!("{body} fits {fits}: name the dialect that it speaks");
    errors::unknown_dialect(py, &message)
}

/// Choose between the markup in the dialect's specification and the one of the keyword.  Both may be given if they are
/// equal.
fn one_of<'a>(named: Option<&'a str>, beside: Option<&'a str>) -> PyResult<Option<&'a str>> {
    match (named, beside) {
        (Some(named), Some(beside)) if named != beside => Err(PyValueError::new_err(format!(
            "two markups are named: {named:?} with the dialect, and {beside:?}"
        ))),
        (named, beside) => Ok(beside.or(named)),
    }
}

fn own_names(names: BTreeMap<String, String>) -> Arc<BTreeMap<Box<str>, Box<str>>> {
    Arc::new(names.into_iter().map(|(other, own)| (other.into(), own.into())).collect())
}

/// Build the markup options from the caller's keywords.
fn wanted(
    py: Python<'_>,
    markup: Option<&str>,
    tools: Option<&Bound<'_, PyAny>>,
    starts_in_thinking: bool,
) -> PyResult<Option<Wanted>> {
    let Some(name) = markup else {
        if starts_in_thinking {
            return Err(PyValueError::new_err("starts_in_thinking needs a markup"));
        }
        if let Some(tools) = tools {
            tools.try_iter()?;
        }
        return Ok(None);
    };
    let Some(family) = markup::find(name) else {
        let message = format!("unknown markup {name:?}; known: {}", markup_names().join(", "));
        return Err(errors::unknown_dialect(py, &message));
    };
    let tools = tools.map(tools::read).transpose()?.map(Arc::new);
    Ok(Some(Wanted { family, tools, starts_in_thinking }))
}
