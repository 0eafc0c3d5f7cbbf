//! Folded messages as a struct column.
//!
//! In: folded states.  Out: rows of the column that `deltafold.arrow.message_type()` describes.
//!
//! Laws: [`MESSAGE`] has the types of `message_type()` in their order.  A value that a message lacks is null.

use deltafold::contract::{Column as Tokens, ErrorCode, Failure, Logprobs, Usage};
use deltafold::fold::{MessageAssembler, Part, Terminal, TextPart};
use deltafold::json::Reader;

use super::columns::{Column, Kind, Row};

const COUNT: Kind = Kind::Number(8);
const FLOAT: Kind = Kind::Number(8);

const TOOL_CALL: Kind = Kind::Struct(&[Kind::Text, Kind::Text, Kind::Text, Kind::Text, Kind::Flag]);
const USAGE: Kind = Kind::Struct(&[COUNT, COUNT, COUNT, COUNT, COUNT, COUNT, FLOAT]);
const ERROR: Kind =
    Kind::Struct(&[Kind::Text, Kind::Text, Kind::Flag, FLOAT, COUNT, Kind::Text, Kind::Text]);
const WARNING: Kind = Kind::Struct(&[Kind::Text, Kind::Text, COUNT]);
const TIMING: Kind = Kind::Struct(&[FLOAT, FLOAT, FLOAT, FLOAT]);
const ALTERNATIVE: Kind = Kind::Struct(&[Kind::Text, FLOAT]);

/// Type of a message.
pub(crate) const MESSAGE: &Kind = &Kind::Struct(&[
    Kind::Text,             // dialect
    Kind::Text,             // text
    Kind::Text,             // thinking
    Kind::List(&TOOL_CALL), // tool_calls
    Kind::Text,             // finish_reason
    Kind::Text,             // raw_finish_reason
    USAGE,
    ERROR,
    Kind::List(&WARNING), // warnings
    Kind::Text,           // model_id
    Kind::Text,           // response_id
    Kind::Text,           // details
    Kind::Text,           // custom_id
    TIMING,
    Kind::List(&Kind::Text),               // tokens
    Kind::List(&FLOAT),                    // logprobs
    Kind::List(&COUNT),                    // token_ids
    Kind::List(&Kind::List(&ALTERNATIVE)), // alternatives
]);

/// Times of one stream, in seconds since its request was sent.
#[derive(Clone, Copy, Default)]
pub(crate) struct Timing {
    pub(crate) first_byte: Option<f64>,
    pub(crate) first_delta: Option<f64>,
    pub(crate) first_text: Option<f64>,
    pub(crate) duration: f64,
}

fn signed(count: Option<u64>) -> Option<i64> {
    count.and_then(|count| i64::try_from(count).ok())
}

/// Append a folded message.  `run_id` is the response id of a body that has none.
pub(crate) fn push_message(
    messages: &mut Column,
    dialect: &str,
    message: &MessageAssembler,
    run_id: &str,
    timing: Option<Timing>,
) {
    let metadata = message.metadata();
    let done = metadata.done();
    let failure = match &metadata.terminal {
        Some(Terminal::Error(failure)) => Some(failure),
        _ => None,
    };
    let mut row = messages.begin();
    row.text(Some(dialect));
    push_texts(&mut row, message, |part| match part {
        Part::Text(part) => Some(part),
        _ => None,
    });
    push_texts(&mut row, message, |part| match part {
        Part::Thinking(part) => Some(part),
        _ => None,
    });
    row.push(Some(message), |column, message| {
        column.push_list(|calls| push_calls(calls, message));
    });
    row.text(done.map(|(reason, _)| reason.as_str()));
    row.text(done.and_then(|(_, raw)| raw));
    row.push(metadata.usage.as_ref(), push_usage);
    row.push(failure, push_error);
    row.push(Some(metadata.warnings.as_deref()), push_warnings);
    row.text(Some(&*metadata.model_id).filter(|id| !id.is_empty()));
    row.text(Some(&*metadata.request_id).filter(|id| !id.is_empty() && *id != run_id));
    row.text(metadata.details.as_deref());
    row.text(metadata.details.as_deref().and_then(custom_id).as_deref());
    row.push(timing, |column, timing| {
        let mut row = column.begin();
        row.float(timing.first_byte);
        row.float(timing.first_delta);
        row.float(timing.first_text);
        row.float(Some(timing.duration));
    });
    push_logprobs(&mut row, message.logprobs().map(AsRef::as_ref));
}

/// Append a message that consists of an error.
pub(crate) fn push_failure(
    messages: &mut Column,
    dialect: Option<&str>,
    code: ErrorCode,
    message: &str,
) {
    push_error_alone(messages, dialect, Some(""), code, message);
}

/// Append the error of a body that nothing has read: its content is unknown, not empty.
pub(crate) fn push_unread(messages: &mut Column, code: ErrorCode, message: &str) {
    push_error_alone(messages, None, None, code, message);
}

fn push_error_alone(
    messages: &mut Column,
    dialect: Option<&str>,
    text: Option<&str>,
    code: ErrorCode,
    message: &str,
) {
    let mut row = messages.begin();
    row.text(dialect);
    row.text(text);
    row.text(text);
    row.push(text, |calls, _| calls.push_list(|_| {}));
    row.text(None);
    row.text(None);
    row.push(None, push_usage::<&str>);
    row.push(Some(&Failure::new(code, message)), push_error);
    row.push(Some(None), push_warnings);
    row.text(None);
    row.text(None);
    row.text(None);
    row.text(None);
    row.push(None::<()>, |_, ()| {});
    push_logprobs(&mut row, None);
}

/// Return the id of the request of a batch among the facts of a message.
fn custom_id(details: &str) -> Option<String> {
    let mut found = None;
    // The core writes an object.
    let _ = Reader::trusted(details).object(|reader, name| {
        match name {
            "custom_id" => found = reader.filled_string()?.map(|id| id.text()),
            _ => reader.skip()?,
        }
        Ok(())
    });
    found
}

fn push_texts<'a>(
    row: &mut Row<'_>,
    message: &'a MessageAssembler,
    wanted: impl Fn(&'a Part) -> Option<&'a TextPart>,
) {
    let texts = message.parts().iter().filter_map(wanted).map(|part| part.text.as_str());
    row.push(Some(texts), Column::push_joined);
}

fn push_calls(calls: &mut Column, message: &MessageAssembler) {
    for (_, call) in message.tool_calls() {
        let mut row = calls.begin();
        row.text(Some(&call.id));
        row.text(Some(&call.name));
        row.text(Some(&call.args));
        row.text(Some(call.input_format.as_str()));
        row.flag(Some(call.incomplete || !call.ended));
    }
}

fn push_usage<S>(column: &mut Column, usage: &Usage<S>) {
    let mut row = column.begin();
    for count in [
        usage.input,
        usage.output,
        usage.total,
        usage.cache_read,
        usage.cache_write,
        usage.reasoning,
    ] {
        row.int(signed(count));
    }
    row.float(usage.cost);
}

fn push_error<S: AsRef<str>>(column: &mut Column, failure: &Failure<S>) {
    let mut row = column.begin();
    row.text(Some(failure.code.as_str()));
    row.text(Some(failure.message.as_ref().map_or("", AsRef::as_ref)));
    row.flag(Some(failure.retryable.unwrap_or(failure.code.retryable())));
    row.float(failure.retry_after);
    row.int(failure.status.map(i64::from));
    row.text(failure.provider_code.as_ref().map(AsRef::as_ref));
    row.text(failure.http_request_id.as_ref().map(AsRef::as_ref));
}

/// Append the warnings of a message, which the core has written as JSON.
fn push_warnings(column: &mut Column, json: Option<&str>) {
    column.push_list(|column| {
        let Some(json) = json else { return };
        // The core writes objects with these members.
        let _ = Reader::trusted(json).array(|reader| {
            let (mut code, mut message, mut offset) = (String::new(), String::new(), None);
            reader.object(|reader, name| {
                match name {
                    "code" => code = reader.string()?.text(),
                    "message" => message = reader.string()?.text(),
                    "offset" => offset = reader.count()?,
                    _ => reader.skip()?,
                }
                Ok(())
            })?;
            let mut row = column.begin();
            row.text(Some(&code));
            row.text(Some(&message));
            row.int(signed(offset));
            Ok(())
        });
    });
}

fn push_logprobs(row: &mut Row<'_>, logprobs: Option<&Logprobs>) {
    let tokens = logprobs.map(Logprobs::tokens);
    row.push(tokens, |column, tokens| {
        column.push_list(|column| tokens.texts().for_each(|token| column.push_text(token)));
    });
    row.push(tokens, |column, tokens| {
        column.push_list(|column| {
            for value in tokens.values() {
                column.push_number(value.to_ne_bytes());
            }
        });
    });
    row.push(logprobs.and_then(Logprobs::ids), |column, ids| {
        column.push_list(|column| {
            for id in ids {
                column.push_number(id.to_ne_bytes());
            }
        });
    });
    let alternatives = logprobs.and_then(|logprobs| {
        logprobs.alternatives().map(|alternatives| (alternatives, logprobs.offsets()))
    });
    row.push(alternatives, |column, (alternatives, offsets)| {
        column.push_list(|column| push_alternatives(column, alternatives, offsets));
    });
}

fn push_alternatives(column: &mut Column, all: &Tokens, offsets: &[i64]) {
    let mut rest = all.texts().zip(all.values());
    for (start, end) in offsets.iter().zip(offsets.iter().skip(1)) {
        column.push_list(|column| {
            for (token, logprob) in rest.by_ref().take(usize::try_from(end - start).unwrap_or(0)) {
                let mut row = column.begin();
                row.text(Some(token));
                row.float(Some(*logprob));
            }
        });
    }
}
