//! Lines of the result file of a batch: an answer, or the reason why there is none, beside the id of its request.
//!
//! In: the JSON of a whole body, or its beginning.  Out: a [`BatchLine`], or `None` for any other body.
//!
//! | provider | id | answer | failure |
//! |---|---|---|---|
//! | OpenAI, Azure, Groq, Mistral | `custom_id` | `response.body` | `response` with a `status_code`, or `error` |
//! | Anthropic | `custom_id` | `result.message` | `result.error`, or a `result.type` |
//! | Bedrock | `recordId` | `modelOutput` | `error` |
//! | Gemini | `key` | `response` | `error` |
//! | Gemini on Vertex | `key`, or a label of `request` | `response` | `status` |
//!
//! Laws:
//! - The first member that no line has ends the search, so that an ordinary body costs the reading of two members.
//! - The members of a cut line count up to its end.
//!
//! Source: docs/protocols/decoding.md#batches.

use std::borrow::Cow;

use super::members::{self, ANTHROPIC, CHAT, CONVERSE, GEMINI, INVOKE, RESPONSES};
use crate::json::{Error, ErrorKind, Reader, Result, Str};
use crate::provider_error::FIRST_REFUSAL;

/// Names of the label of a request that holds its id, on Vertex.
const LABELS: [&str; 3] = ["custom_id", "key", "id"];

/// A line of the result file of a batch.
#[derive(Clone, Debug)]
pub(crate) struct BatchLine<'a> {
    /// The id that the caller gave the request.
    pub(crate) custom_id: Option<Str<'a>>,
    /// The answer, or the reason why there is none.
    pub(crate) outcome: Outcome<'a>,
    /// The text ends inside the line.
    pub(crate) is_cut: bool,
    form: Form,
    /// The request, if the line repeats it.
    request: Option<&'a str>,
}

/// What became of a request.
#[derive(Clone, Debug)]
pub(crate) enum Outcome<'a> {
    /// The body of the answer.
    Answer(&'a str),
    /// A refusal with its body: JSON or text.
    Refused {
        /// The HTTP status; 0 if the line has none.
        status: u16,
        /// The id of the HTTP request.
        request_id: Option<Str<'a>>,
        /// JSON or text of the error.
        body: Cow<'a, str>,
    },
    /// The request did not run; the provider's word for the reason.
    NotRun(Str<'a>),
    /// The line has neither an answer nor an error.
    Missing,
}

/// Return false for a body that is no line, from its first bytes alone.
pub(crate) fn may_be_line(body: &[u8]) -> bool {
    let first = String::from_utf8_lossy(body.get(..FIRST_BYTES).unwrap_or(body));
    let read = Members::default().read(&first, FIRST_BYTES);
    read.is_ok_and(|()| body.len() <= FIRST_BYTES)
        || read.is_err_and(|error| error.kind == ErrorKind::UnexpectedEnd)
}

/// Number of bytes that tell most bodies from a line.
const FIRST_BYTES: usize = 256;

/// Members that the lines of several providers share.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    OpenAi,
    Anthropic,
    Bedrock,
    Gemini,
}

impl<'a> BatchLine<'a> {
    /// Read a line, which may be cut.
    pub(crate) fn read(json: &'a str, max_depth: usize) -> Option<Self> {
        let mut found = Members::default();
        let read = found.read(json, max_depth);
        let is_cut = match read {
            Ok(()) => false,
            Err(error) if error.kind == ErrorKind::UnexpectedEnd => true,
            Err(_) => return None,
        };
        let form = found.form(is_cut)?;
        let custom_id = found.id.or_else(|| found.label());
        Some(Self { custom_id, outcome: found.outcome(form), is_cut, form, request: found.request })
    }

    /// Return the dialects of the answer; for a line without one, those that its provider writes.  At most two.
    pub(crate) fn dialects(&self) -> Vec<&'static str> {
        if let Outcome::Answer(body) = self.outcome {
            let found = members::dialects_of("", body);
            if !found.is_empty() {
                return found;
            }
        }
        match self.form {
            Form::OpenAi => vec![CHAT, RESPONSES],
            Form::Anthropic => vec![ANTHROPIC],
            Form::Gemini => vec![GEMINI],
            Form::Bedrock if self.has_requested("anthropic_version") => vec![ANTHROPIC],
            Form::Bedrock => vec![CONVERSE, INVOKE],
        }
    }

    fn has_requested(&self, name: &str) -> bool {
        let mut has = false;
        // The error is ignored: of a cut request the members before the cut count.
        let _ = Reader::trusted(self.request.unwrap_or_default()).object(|reader, member| {
            has |= member == name;
            reader.skip()
        });
        has
    }
}

/// The members of a line.
#[derive(Default)]
struct Members<'a> {
    id: Option<Str<'a>>,
    /// The form by a member that only lines have.
    form: Option<Form>,
    has_key: bool,
    has_result: bool,
    answer: Option<&'a str>,
    error: Option<&'a str>,
    status: Option<Str<'a>>,
    request: Option<&'a str>,
}

impl<'a> Members<'a> {
    fn read(&mut self, json: &'a str, max_depth: usize) -> Result<()> {
        let mut reader = Reader::new(json, max_depth);
        reader.object(|reader, name| {
            match name {
                "id" => reader.skip()?,
                "custom_id" => {
                    self.form = Some(Form::OpenAi);
                    self.id = reader.scalar()?;
                }
                "recordId" => {
                    self.form = Some(Form::Bedrock);
                    self.id = reader.scalar()?;
                }
                "key" => {
                    self.has_key = true;
                    self.id = self.id.or(reader.scalar()?);
                }
                "result" => {
                    self.has_result = true;
                    keep(&mut self.answer, reader, json)?;
                }
                "modelOutput" => {
                    self.form = Some(Form::Bedrock);
                    keep(&mut self.answer, reader, json)?;
                }
                "response" => keep(&mut self.answer, reader, json)?,
                "error" => keep(&mut self.error, reader, json)?,
                "modelInput" => {
                    self.form = Some(Form::Bedrock);
                    keep(&mut self.request, reader, json)?;
                }
                "request" => keep(&mut self.request, reader, json)?,
                "status" => self.status = reader.filled_string()?,
                "processed_time" => {
                    self.form = self.form.or(Some(Form::Gemini));
                    reader.skip()?;
                }
                _ if self.form.is_some() => reader.skip()?,
                _ => {
                    let offset = reader.position();
                    return Err(Error { kind: ErrorKind::UnexpectedByte, offset });
                }
            }
            Ok(())
        })?;
        reader.end()
    }

    /// Return the form of a line; `None` for an object that is none.  A cut line has the names before the cut.
    fn form(&self, is_cut: bool) -> Option<Form> {
        let has_answer = self.answer.is_some() || self.error.is_some();
        match self.form {
            _ if !(has_answer || is_cut || self.status.is_some()) => None,
            Some(Form::OpenAi) if self.has_result => Some(Form::Anthropic),
            // Other bodies have a member of this name too.
            None => Some(Form::Gemini).filter(|_| self.has_key && has_answer),
            form => form,
        }
    }

    /// Return the id among the labels of a request.
    fn label(&self) -> Option<Str<'a>> {
        let mut found = [None; LABELS.len()];
        let _ = Reader::trusted(self.request?).object(|reader, name| {
            if name != "labels" {
                return reader.skip();
            }
            reader.maybe_object(|reader, name| {
                match found.iter_mut().zip(LABELS).find(|(_, label)| *label == name) {
                    Some((value, _)) => *value = reader.scalar()?,
                    None => reader.skip()?,
                }
                Ok(())
            })
        });
        found.into_iter().flatten().next()
    }

    fn outcome(&self, form: Form) -> Outcome<'a> {
        let answered = match (form, self.answer) {
            (_, None) | (Form::Bedrock | Form::Gemini, Some("{}")) => Outcome::Missing,
            (Form::OpenAi, Some(response)) => of_response(response),
            (Form::Anthropic, Some(result)) => of_result(result),
            (Form::Bedrock | Form::Gemini, Some(body)) => Outcome::Answer(body),
        };
        match (answered, self.error, self.status) {
            (Outcome::Missing, Some(error), _) => refusal(Cow::Borrowed(error)),
            (Outcome::Missing, None, Some(status)) => refusal(Cow::Owned(error_in(&status.text()))),
            (answered, ..) => answered,
        }
    }
}

/// Keep the text of a value that is not null; of a cut one the text up to the cut.
fn keep<'a>(kept: &mut Option<&'a str>, reader: &mut Reader<'a>, json: &'a str) -> Result<()> {
    let start = reader.position();
    let read = reader.raw();
    let text = read.unwrap_or_else(|_| json.get(start..).unwrap_or_default().trim_start());
    *kept = Some(text).filter(|text| *text != "null" && !text.is_empty());
    read.map(|_| ())
}

fn refusal(body: Cow<'_, str>) -> Outcome<'_> {
    Outcome::Refused { status: 0, request_id: None, body }
}

/// Read OpenAI's `response`: a status and a body, or the body alone.
fn of_response(response: &str) -> Outcome<'_> {
    let (mut status, mut request_id, mut body) = (None, None, None);
    // The error is ignored: of a cut line the members before the cut count.
    let _ = Reader::trusted(response).object(|reader, name| {
        match name {
            "status_code" => status = reader.count()?.and_then(|status| u16::try_from(status).ok()),
            "request_id" => request_id = reader.filled_string()?,
            "body" => keep(&mut body, reader, response)?,
            _ => reader.skip()?,
        }
        Ok(())
    });
    match (status, body) {
        (Some(status), body) if status >= FIRST_REFUSAL => {
            Outcome::Refused { status, request_id, body: body.unwrap_or_default().into() }
        }
        (_, Some(body)) => Outcome::Answer(body),
        (None, None) => Outcome::Answer(response),
        (Some(_), None) => Outcome::Missing,
    }
}

/// Read Anthropic's `result`.
fn of_result(result: &str) -> Outcome<'_> {
    let (mut kind, mut message, mut error) = (None, None, None);
    // As above.
    let _ = Reader::trusted(result).object(|reader, name| {
        match name {
            "type" => kind = reader.filled_string()?,
            "message" => keep(&mut message, reader, result)?,
            "error" => keep(&mut error, reader, result)?,
            _ => reader.skip()?,
        }
        Ok(())
    });
    match (message, error, kind) {
        (Some(message), ..) => Outcome::Answer(message),
        (None, Some(error), _) => refusal(error.into()),
        (None, None, Some(kind)) => Outcome::NotRun(kind),
        (None, None, None) => Outcome::Missing,
    }
}

/// Return the JSON in the status of a line, such as `Bad Request: {"error": {…}}`, or the whole text without any.
fn error_in(status: &str) -> String {
    let json = status.find('{').and_then(|start| status.get(start..));
    let is_json = |json: &&str| {
        let mut reader = Reader::new(json, STATUS_DEPTH);
        reader.skip().and_then(|()| reader.end()).is_ok()
    };
    json.filter(is_json).unwrap_or(status).to_owned()
}

/// Maximum nesting depth of an error in a status.
const STATUS_DEPTH: usize = 64;
