//! Whole bodies and HTTP headers: what answers a request without streaming, and what goes before every answer.
//!
//! In: folded messages.  Out: status, headers and body.

use super::bedrock_converse;
use super::registry::Target;
use crate::contract::ErrorCode;
use crate::encode::{Answers, Draft, Ending, Form, Head, Notes, Out, Settings, of_serving_model};
use crate::fold::{MessageAssembler, Terminal};
use crate::json::Reader;

/// Names and values of HTTP headers.
pub type Headers = Vec<(&'static str, String)>;

/// Return an empty draft of a target.
pub(super) fn draft(target: &Target, settings: Settings, objects: bool) -> Draft {
    Draft {
        out: Out::new(target.form, objects),
        notes: Notes::default(),
        settings,
        head: Head::default(),
        answer: None,
        deferred: None,
        run: None,
    }
}

/// Return the headers of an answer; without a framing, of a whole body.
///
/// Source: docs/protocols/encoding.md#e15, docs/protocols/encoding.md#errors.
pub(super) fn headers(
    target: &str,
    status: u16,
    form: Option<Form>,
    request_id: &str,
    failure: Option<(ErrorCode, Option<f64>)>,
) -> Headers {
    let mut headers = Headers::new();
    if status == 200 {
        headers.push(("content-type", form.map_or("application/json", content_type).to_owned()));
        if matches!(form, Some(Form::Sse | Form::NamedSse)) {
            headers.push(("cache-control", "no-cache".to_owned()));
            headers.push(("x-accel-buffering", "no".to_owned()));
        }
        if target == "ai-sdk" {
            headers.push(("x-vercel-ai-ui-message-stream", "v1".to_owned()));
        }
    } else {
        let plain = target == "ai-sdk";
        let kind = if plain { "text/plain; charset=utf-8" } else { "application/json" };
        headers.push(("content-type", kind.to_owned()));
    }
    if let Some((code, retry_after)) = failure.filter(|_| status != 200) {
        if let Some(seconds) = retry_after.filter(|seconds| seconds.is_finite()) {
            headers.push(("retry-after", format!("{:.0}", seconds.max(0.0).ceil())));
        }
        if target == "bedrock-converse" {
            headers.push(("x-amzn-errortype", bedrock_converse::error_type(code).to_owned()));
        }
    }
    if let Some(name) = request_id_header(target).filter(|_| is_header_value(request_id)) {
        headers.push((name, request_id.to_owned()));
    }
    headers
}

/// Return the content type of a framing.
fn content_type(form: Form) -> &'static str {
    match form {
        Form::Sse | Form::NamedSse => "text/event-stream",
        Form::Ndjson => "application/x-ndjson",
        Form::JsonArray => "application/json",
        Form::Frames => "application/vnd.amazon.eventstream",
    }
}

/// Return the header in which clients look for the request id.
fn request_id_header(target: &str) -> Option<&'static str> {
    match target {
        "anthropic-messages" => Some("request-id"),
        "openai-chat" | "openai-responses" => Some("x-request-id"),
        "bedrock-converse" => Some("x-amzn-requestid"),
        _ => None,
    }
}

fn is_header_value(text: &str) -> bool {
    !text.is_empty() && text.len() <= 256 && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Whole body of a message.
#[derive(Clone, Debug, PartialEq)]
pub struct WholeBody {
    /// HTTP status.
    pub status: u16,
    /// HTTP headers.
    pub headers: Headers,
    /// JSON of the body; text for a target whose clients show it.
    pub json: String,
    /// What the target could not carry.
    pub notes: Notes,
}

/// Return the time of an answer that its provider stated, in milliseconds since 1970.
fn stated_time(message: &MessageAssembler) -> Option<u64> {
    let mut seconds = None;
    let _ = Reader::trusted(message.details()?).maybe_object(|reader, key| {
        match key {
            "created" | "created_at" => seconds = reader.scalar()?,
            _ => reader.skip()?,
        }
        Ok(())
    });
    // Sources: `created` of Chat Completions is an integer, `created_at` of Responses may have a fraction.
    let whole: u64 = seconds?.raw.split('.').next()?.parse().ok()?;
    Some(whole).filter(|seconds| *seconds > 0)?.checked_mul(1_000)
}

/// Write a folded message as a whole body: the answer, or the error that ended it.  `None` if the target has no bodies.
pub fn whole_body(
    target: &'static Target,
    settings: Settings,
    created: u64,
    message: &MessageAssembler,
) -> Option<WholeBody> {
    write_whole(target, settings, created, &[(0, message)], |draft, answers| {
        answers.first().and_then(|(_, message)| (target.body)(draft, message))
    })
}

/// Write the folded answers of one response, with their numbers, as a whole body.  One that failed makes it the target's
/// error.  `None` if the target has one answer only, or if there is none.
pub fn whole_body_of_answers(
    target: &'static Target,
    settings: Settings,
    created: u64,
    answers: &Answers<'_>,
) -> Option<WholeBody> {
    let write = target.body_of_answers;
    target.has_answers.then(|| write_whole(target, settings, created, answers, write)).flatten()
}

fn write_whole(
    target: &'static Target,
    settings: Settings,
    created: u64,
    answers: &Answers<'_>,
    write: impl FnOnce(&mut Draft, &Answers<'_>) -> Option<String>,
) -> Option<WholeBody> {
    let mut draft = draft(target, settings, true);
    let served: Vec<_> = answers
        .iter()
        .map(|(number, message)| (*number, of_serving_model(&mut draft, target.dialect, message)))
        .collect();
    let answers: Vec<_> = served.iter().map(|(number, message)| (*number, &**message)).collect();
    let (_, first) = answers.first()?;
    let head = &mut draft.head;
    head.created = stated_time(first).unwrap_or(created);
    head.model_id = draft.settings.model_id.as_deref().unwrap_or(first.model_id()).to_owned();
    let id = draft.settings.response_id.as_deref().unwrap_or(first.request_id());
    id.clone_into(&mut head.request_id);
    // The counts are those of the response, and each answer has the last ones that it saw.
    if let Some(usage) = answers.iter().rev().find_map(|(_, message)| message.usage()) {
        head.usage = usage.without_details();
        head.has_usage = true;
    }
    let failed = answers.iter().find_map(|(_, message)| match message.terminal() {
        Some(Terminal::Error(failure)) => Some(failure),
        _ => None,
    });
    let is_empty = answers.iter().all(|(_, message)| message.parts().is_empty());
    let ended = answers.iter().find_map(|(_, message)| {
        let ending = Ending::of(message, 0);
        Some((ending, ending.failure_text(target.error_fails, is_empty)?))
    });
    let failure = match (failed, &ended) {
        (Some(failure), _) => Some(failure.map(&mut |text| text.as_ref())),
        (None, Some((ending, text))) => Some(ending.failure(text)),
        (None, None) => None,
    };
    let (status, json) = match &failure {
        Some(failure) => (target.refusal)(&mut draft, failure),
        None => (200, write(&mut draft, &answers)?),
    };
    let evidence = failure.as_ref().map(|failure| (failure.code, failure.retry_after));
    let http_request_id = failure.as_ref().and_then(|failure| failure.http_request_id);
    let request_id = http_request_id.unwrap_or(&draft.head.request_id);
    let headers = headers(target.name, status, None, request_id, evidence);
    Some(WholeBody { status, headers, json, notes: draft.notes })
}
