//! Grammar of an Ollama stream (docs/protocols/encoding.md#ollama): `/api/chat`, and `/api/generate` with a flag.
//!
//! In: lines.  Out: the first broken rule.
//!
//! Laws: every record has its text place, arguments are objects, and `done: true` comes once and last.  Nothing follows an
//! error line.

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::event::Event;
use super::kept::Ids;
use super::logprobs::{self, Form};
use super::tree::{Node, Rule, Value};

/// Bytes of a line that the Go client no longer reads.
pub(super) const MAX_LINE_BYTES: usize = 8_000_000;

const DONE_REASONS: [&str; 4] = ["stop", "length", "load", "unload"];
/// Members that only a server can measure.
const DURATIONS: [&str; 4] =
    ["total_duration", "load_duration", "prompt_eval_duration", "eval_duration"];

/// Checker of one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ollama {
    /// `/api/generate`
    generate: bool,
    ended: bool,
    calls: u64,
    ids: Ids,
}

impl Ollama {
    /// Build a checker of `/api/generate`.
    pub(super) fn generate() -> Self {
        Self { generate: true, ..Self::default() }
    }

    /// Check the next event.
    pub(super) fn read(&mut self, event: Event<'_>) -> Rule {
        let data = event.bare()?;
        if self.ended {
            return Err("nothing may follow the record with `done: true` or an error".to_owned());
        }
        let value = Value::parse(data)?;
        let record = Node::root(&value);
        if record.has("error") {
            self.ended = true;
            return error(&record);
        }
        self.record(&record)
    }

    /// Check the end of the body.
    pub(super) fn close(&self) -> Rule {
        if self.ended {
            Ok(())
        } else {
            Err("the stream ends without a record with `done: true` or an error".to_owned())
        }
    }

    fn record(&mut self, record: &Node<'_>) -> Rule {
        record.text("model")?;
        let created = record.at("created_at")?;
        if OffsetDateTime::parse(created.as_text()?, &Rfc3339).is_err() {
            return Err(created.wrong("an RFC 3339 time"));
        }
        if self.generate {
            record.text("response")?;
            record.text_if("thinking")?;
            record.absent("message", "`/api/generate` has `response`")?;
        } else {
            self.message(&record.object("message")?)?;
        }
        if let Some(list) = record.maybe("logprobs") {
            logprobs::check(&list, Form::Short)?;
        }
        for key in DURATIONS {
            record.absent(key, "no duration was measured")?;
        }
        if record.flag("done")? {
            self.ended = true;
            record.one_of("done_reason", &DONE_REASONS)?;
            record.count_if("prompt_eval_count")?;
            record.count_if("eval_count")?;
            return Ok(());
        }
        for key in ["done_reason", "prompt_eval_count", "eval_count"] {
            record.absent(key, "it belongs to the record with `done: true`")?;
        }
        Ok(())
    }

    fn message(&mut self, message: &Node<'_>) -> Rule {
        message.is("role", "assistant")?;
        message.text("content")?;
        message.text_if("thinking")?;
        let Some(calls) = message.maybe("tool_calls") else { return Ok(()) };
        for call in calls.as_list()? {
            self.ids.add("the id of the call", call.filled("id")?)?;
            let function = call.object("function")?;
            function.counts("index", self.calls)?;
            function.filled("name")?;
            function.object("arguments")?;
            self.calls += 1;
        }
        Ok(())
    }
}

fn error(record: &Node<'_>) -> Rule {
    record.only(&["error"])?;
    record.filled("error")?;
    Ok(())
}

fn whole(mut checker: Ollama, status: u16, body: &str) -> Rule {
    let value = Value::parse(body)?;
    let body = Node::root(&value);
    if status >= 400 {
        return error(&body);
    }
    checker.record(&body)?;
    if checker.ended { Ok(()) } else { Err(body.at("done")?.wrong("true")) }
}

/// Check a whole body of `/api/chat`.
pub(super) fn body(status: u16, body: &str) -> Rule {
    whole(Ollama::default(), status, body)
}

/// Check a whole body of `/api/generate`.
pub(super) fn generate_body(status: u16, body: &str) -> Rule {
    whole(Ollama::generate(), status, body)
}
