//! JSON of a folded message, written from the fold without Python objects.
//!
//! In: a fold whose parts were not made.  Out: the text that pydantic writes of the message, byte by byte.
//!
//! Law: in a doubtful case it returns no text, and the caller uses pydantic.  Doubtful cases are ambiguous JSON, arguments
//! with an error or a warning, and numbers that versions of pydantic write differently.

use std::fmt::Write as _;
use std::ops::Range;

use deltafold::contract::InputFormat;
use deltafold::fold::{MessageAssembler, Metadata, Part, Terminal, TextPart, ToolCall};
use deltafold::json::{Carry, Kind, ObjectWriter, Reader, write_list, write_members, write_string};

use crate::message::folded::FoldedMessage;

/// Bound on open objects and arrays of a value, below the bounds of all readers and of pydantic.
const MAX_DEPTH: usize = 100;

/// Number of members of an object up to which each key is compared with the others.
const MAX_MEMBERS: usize = 64;

/// Range in which pydantic writes floats without an exponent.
const PLAIN_FLOATS: Range<f64> = 1e-5..1e16;

/// Return the JSON of the message; `None` if pydantic has to write it.  `meta` is the JSON of metadata that was made.
pub(crate) fn write(
    message: &FoldedMessage,
    fold: &MessageAssembler,
    meta: Option<&str>,
) -> Option<String> {
    let texts = fold.parts().iter().map(|part| match part {
        Part::Text(part) | Part::Thinking(part) => part.text.len(),
        Part::ToolCall(call) => 2 * call.args.len(),
        Part::Whole(part) => part.len(),
    });
    let mut out = String::with_capacity(texts.sum::<usize>() + 128 * fold.parts().len() + 512);
    let mut value = Value::default();
    let timestamp = message.began.to_rfc3339()?;
    write_members(&mut out, |object| {
        object.value("id", |out| quoted(out, &message.id.hyphenated()));
        if let Some(run_id) = &message.run_id {
            object.text("runId", run_id);
        }
        object.text("role", "assistant");
        object.value("parts", |out| {
            write_list(out, fold.parts(), |out, part| value.part(out, part));
        });
        object.text("timestamp", &timestamp);
        match meta {
            Some("{}") => {}
            Some(meta) => object.json("meta", meta),
            None => {
                let mut meta = String::with_capacity(256);
                write_members(&mut meta, |object| value.meta(object, message, &message.metadata));
                if meta != "{}" {
                    object.json("meta", &meta);
                }
            }
        }
    });
    (!value.doubtful).then_some(out)
}

fn quoted(out: &mut String, value: &impl std::fmt::Display) {
    // Writing to a String cannot fail.
    let _ = write!(out, "\"{value}\"");
}

/// Writer of JSON values as pydantic writes what Python reads of them.
#[derive(Default)]
struct Value {
    /// True once pydantic has to write the message.
    doubtful: bool,
    /// Places in the output of the keys of all open objects.
    keys: Vec<Range<usize>>,
}

/// Parts.
impl Value {
    fn part(&mut self, out: &mut String, part: &Part) {
        match part {
            Part::Text(part) => self.text(out, "text", part),
            Part::Thinking(part) => self.text(out, "thinking", part),
            Part::ToolCall(call) => self.tool_call(out, call),
            Part::Whole(part) => self.whole(out, part),
        }
    }

    fn text(&mut self, out: &mut String, kind: &str, part: &TextPart) {
        write_members(out, |object| {
            object.text("kind", kind);
            object.object("payload", |payload| {
                payload.text("text", &part.text);
                if !part.annotations.is_empty() {
                    payload.value("annotations", |out| self.annotations(out, &part.annotations));
                }
                if part.refusal {
                    payload.json("refusal", "true");
                }
                if part.redacted {
                    payload.json("redacted", "true");
                }
            });
            self.provider_state(object, part.provider_state.as_deref());
        });
    }

    /// Join lists that arrived one after another.
    fn annotations(&mut self, out: &mut String, lists: &[Box<str>]) {
        out.push('[');
        let mut first = true;
        for list in lists {
            let mut reader = Reader::new(list, MAX_DEPTH);
            let read = reader.array(|reader| {
                if !std::mem::take(&mut first) {
                    out.push(',');
                }
                self.value(out, reader)
            });
            self.doubtful |= read.is_err();
        }
        out.push(']');
    }

    fn tool_call(&mut self, out: &mut String, call: &ToolCall) {
        write_members(out, |object| {
            object.text("kind", "tool_call");
            object.object("payload", |payload| {
                payload.text("toolCallId", &call.id);
                payload.text("toolName", &call.name);
                payload.value("arguments", |out| self.arguments(out, call));
                payload.text("rawArgsText", &call.args);
                if call.incomplete {
                    payload.json("incomplete", "true");
                }
                if call.input_format != InputFormat::Json {
                    payload.text("inputFormat", call.input_format.as_str());
                }
            });
            self.provider_state(object, call.provider_state.as_deref());
        });
    }

    fn arguments(&mut self, out: &mut String, call: &ToolCall) {
        if call.incomplete || !call.ended {
            out.push_str("null");
        } else if call.input_format != InputFormat::Json {
            write_members(out, |object| object.text("input", &call.args));
        } else if call.args.is_empty() {
            out.push_str("{}");
        } else {
            self.doubtful |= !call.args.trim_start().starts_with('{');
            self.json(out, &call.args);
        }
    }

    /// Write a part that came whole, with its members in the order of the model.
    fn whole(&mut self, out: &mut String, part: &str) {
        let (mut kind, mut payload, mut state) = (None, None, None);
        let read = Reader::new(part, MAX_DEPTH).object(|reader, key| {
            let place = match key {
                "kind" => &mut kind,
                "payload" => &mut payload,
                "providerState" => &mut state,
                _ => return reader.skip().map(|()| self.doubtful = true),
            };
            *place = Some(reader.raw()?);
            Ok(())
        });
        let known: &[&'static str] = match kind {
            Some("\"image\"") => &["mimeType", "data", "url"],
            Some("\"file_ref\"") => &["path", "mimeType", "size"],
            Some("\"provider\"") => &["dialect", "block"],
            _ => &[],
        };
        let (Ok(()), Some(kind), Some(payload)) = (read, kind, payload) else {
            self.doubtful = true;
            return;
        };
        let mut members = [None; 3];
        let read = Reader::new(payload, MAX_DEPTH).object(|reader, key| {
            let place = known.iter().position(|name| *name == key);
            match place.and_then(|place| members.get_mut(place)) {
                Some(place) if place.is_none() => *place = Some(reader.raw()?),
                _ => return reader.skip().map(|()| self.doubtful = true),
            }
            Ok(())
        });
        self.doubtful |= read.is_err();
        write_members(out, |object| {
            object.json("kind", kind);
            object.object("payload", |object| {
                for (name, value) in known.iter().zip(members) {
                    if let Some(value) = value.filter(|value| *value != "null") {
                        object.value(name, |out| self.json(out, value));
                    }
                }
            });
            self.provider_state(object, state.filter(|state| *state != "null"));
        });
    }

    fn provider_state(&mut self, object: &mut ObjectWriter<'_>, state: Option<&str>) {
        if let Some(state) = state {
            object.value("providerState", |out| self.json(out, state));
        }
    }
}

/// Metadata.
impl Value {
    fn meta(&mut self, object: &mut ObjectWriter<'_>, message: &FoldedMessage, meta: &Metadata) {
        if let Some(usage) = &meta.usage {
            object.object("usage", |object| {
                for (name, count) in [
                    ("inputTokens", usage.input),
                    ("outputTokens", usage.output),
                    ("totalTokens", usage.total),
                ] {
                    match count {
                        Some(count) => object.number(name, count),
                        None => object.json(name, "null"),
                    }
                }
                if let Some(cost) = usage.cost {
                    object.value("cost", |out| self.float(out, cost));
                }
                for (name, count) in [
                    ("cacheReadTokens", usage.cache_read),
                    ("cacheWriteTokens", usage.cache_write),
                    ("reasoningTokens", usage.reasoning),
                ] {
                    if let Some(count) = count {
                        object.number(name, count);
                    }
                }
                if let Some(details) = &usage.details {
                    object.value("details", |out| self.json(out, details));
                }
            });
        }
        for (name, id) in [("responseId", &meta.request_id), ("modelId", &meta.model_id)] {
            if !id.is_empty() {
                object.text(name, id);
            }
        }
        if let Some((finish_reason, raw)) = meta.done() {
            object.text("finishReason", finish_reason.as_str());
            if let Some(raw) = raw {
                object.text("rawFinishReason", raw);
            }
        }
        self.unless_empty(object, "details", meta.details.as_deref());
        if matches!(meta.terminal, Some(Terminal::Error(_))) {
            object.json("isApiErrorMessage", "true");
        }
        self.unless_empty(object, "warnings", meta.warnings.as_deref());
        if let Some(logprobs) = &message.logprobs {
            object.value("logprobs", |out| self.json(out, &logprobs.to_json()));
        }
    }

    fn unless_empty(
        &mut self,
        object: &mut ObjectWriter<'_>,
        name: &'static str,
        value: Option<&str>,
    ) {
        let Some(value) = value else { return };
        let mut text = String::with_capacity(value.len());
        self.json(&mut text, value);
        if text != "[]" && text != "null" {
            object.json(name, &text);
        }
    }
}

/// Values.
impl Value {
    fn json(&mut self, out: &mut String, text: &str) {
        let mut reader = Reader::new(text, MAX_DEPTH);
        let read = self.value(out, &mut reader).and_then(|()| reader.end());
        self.doubtful |= read.is_err();
    }

    fn value(&mut self, out: &mut String, reader: &mut Reader<'_>) -> deltafold::json::Result<()> {
        match reader.kind()? {
            Kind::Null | Kind::Bool => out.push_str(reader.raw()?),
            Kind::String => self.string(out, reader.string()?),
            Kind::Number => self.number(out, reader.raw()?),
            Kind::Array => {
                out.push('[');
                let mut first = true;
                reader.array(|reader| {
                    if !std::mem::take(&mut first) {
                        out.push(',');
                    }
                    self.value(out, reader)
                })?;
                out.push(']');
            }
            Kind::Object => {
                out.push('{');
                let outer = self.keys.len();
                reader.entries(|reader, key| {
                    if self.keys.len() > outer {
                        out.push(',');
                    }
                    let start = out.len();
                    self.string(out, key);
                    self.key(out, outer, start..out.len());
                    out.push(':');
                    self.value(out, reader)
                })?;
                self.keys.truncate(outer);
                out.push('}');
            }
        }
        Ok(())
    }

    /// Note the key of an object.  A dict holds a repeated key once, at its first place.
    fn key(&mut self, out: &str, outer: usize, key: Range<usize>) {
        let known = self.keys.get(outer..).unwrap_or_default();
        let text = out.get(key.clone());
        self.doubtful |=
            known.len() >= MAX_MEMBERS || known.iter().any(|known| out.get(known.clone()) == text);
        if !self.doubtful || known.is_empty() {
            self.keys.push(key);
        }
    }

    fn string(&mut self, out: &mut String, token: deltafold::json::Str<'_>) {
        if token.escaped {
            let (mut text, mut carry) = (String::with_capacity(token.raw.len()), Carry::default());
            token.decode_into(&mut text, &mut carry);
            carry.flush(&mut text);
            self.doubtful |= carry.lone > 0;
            write_string(out, &text);
        } else {
            out.push('"');
            out.push_str(token.raw);
            out.push('"');
        }
    }

    fn number(&mut self, out: &mut String, text: &str) {
        if let Ok(integer) = text.parse::<i64>() {
            // `-0` is 0 in Python.
            out.push_str(if integer == 0 { "0" } else { text });
        } else if let Ok(float) = text.parse::<f64>()
            && text.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E'))
        {
            self.float(out, float);
        } else {
            self.doubtful = true;
        }
    }

    fn float(&mut self, out: &mut String, float: f64) {
        // Writing to a String cannot fail.
        if float == 0.0 || PLAIN_FLOATS.contains(&float.abs()) {
            let start = out.len();
            let _ = write!(out, "{float}");
            if !out.get(start..).unwrap_or_default().contains('.') {
                out.push_str(".0");
            }
        } else {
            // Versions of pydantic differ in the sign of a positive exponent.
            self.doubtful |= float.abs() >= PLAIN_FLOATS.end || float.is_nan();
            let _ = write!(out, "{float:e}");
        }
    }
}
