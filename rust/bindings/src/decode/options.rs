//! Options of a decoder: the keywords of `Decoder`, read once for a decoder of one answer and for one of all.
//!
//! In: keywords.  Out: the options of the core, the run id and the clock.
//!
//! Law: the clock is called at most once, and only for a refusal.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use deltafold::decoder::Options;
use deltafold::dialect::{self, REGISTRY, Shapes};
use deltafold::emit::StreamOptions;
use deltafold::limits::Limits;
use deltafold::markup::{self, FAMILIES, Wanted};
use deltafold::provider_error::FIRST_REFUSAL;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;
use uuid::Uuid;

use crate::decode::refusal;
use crate::decode::tools;
use crate::support::callback::Callback;
use crate::support::clock::{self, Timestamp};
use crate::support::errors;

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

/// The keywords of a decoder.
pub(crate) struct Given<'a, 'py> {
    pub(crate) run_id: Option<&'a str>,
    pub(crate) model_id: Option<&'a str>,
    pub(crate) request_id: Option<&'a str>,
    pub(crate) status: u16,
    pub(crate) headers: Option<&'a Bound<'py, PyAny>>,
    pub(crate) tools: Option<&'a Bound<'py, PyAny>>,
    pub(crate) markup: Option<&'a str>,
    pub(crate) starts_in_thinking: bool,
    pub(crate) tool_names: Option<BTreeMap<String, String>>,
    pub(crate) provider_raw: bool,
    pub(crate) logprobs: bool,
    pub(crate) limits: Option<Limits>,
}

impl Default for Given<'_, '_> {
    fn default() -> Self {
        Self {
            run_id: None,
            model_id: None,
            request_id: None,
            status: 200,
            headers: None,
            tools: None,
            markup: None,
            starts_in_thinking: false,
            tool_names: None,
            provider_raw: false,
            logprobs: false,
            limits: None,
        }
    }
}

/// Options of a new decoder.
pub(crate) struct Settings {
    pub(crate) options: Options,
    pub(crate) dialect: &'static str,
    pub(crate) markup: Option<&'static str>,
    pub(crate) run_id: Arc<str>,
    pub(crate) clock: Callback,
}

impl Given<'_, '_> {
    /// Read the keywords.
    pub(crate) fn read(
        self,
        py: Python<'_>,
        dialect: &str,
        choice: Choice,
        clock: Option<Py<PyAny>>,
    ) -> PyResult<Settings> {
        let (choice, joined_choices) = match choice {
            Choice::One(number) => (number, false),
            Choice::All => (0, false),
            Choice::Joined => (0, true),
        };
        let (dialect, named) = markup::specification(dialect);
        let Some(row) = dialect::find(dialect) else {
            let message =
                format!("unknown dialect {dialect:?}; known: {}", dialect_names().join(", "));
            return Err(errors::unknown_dialect(py, &message));
        };
        let clock = Callback::new(clock);
        let markup = one_of(named, self.markup)?;
        let wanted = wanted(py, markup, self.tools, self.starts_in_thinking)?;
        let run_id: Arc<str> = match self.run_id {
            Some(run_id) => run_id.into(),
            None => random_run_id(),
        };
        let now = (self.status >= FIRST_REFUSAL).then(|| now(py, &clock)).transpose()?;
        let response = refusal::response(self.status, self.headers, now.map(Timestamp::seconds))?;
        let stream = StreamOptions {
            dialect: row.name,
            run_id: Arc::clone(&run_id),
            model_id: self.model_id.map(Into::into),
            request_id: self.request_id.map(Into::into),
            response,
            choice,
            joined_choices,
            provider_raw: self.provider_raw,
            logprobs: self.logprobs,
            tool_names: self.tool_names.map(own_names),
            limits: self.limits.unwrap_or_default(),
        };
        let markup = wanted.as_ref().map(|wanted| wanted.family.name);
        let options = Options { stream, markup: wanted, shapes: Some(Arc::clone(&SHAPES)) };
        Ok(Settings { options, dialect: row.name, markup, run_id, clock })
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
