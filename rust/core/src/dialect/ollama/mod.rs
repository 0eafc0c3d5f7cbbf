//! Ollama's own stream, of `/api/chat` and of `/api/generate` → deltas.
//!
//! In: a JSON object a line; a whole body is the last line alone.  Out: what [`DeltaSink`] takes.
//!
//! Laws: a line says thinking, then text, then calls; a change of kind opens a new part (the protocol has no blocks); calls
//! come whole, each a new one whatever its index says; the line that is `done` ends the stream and has the counts; a line
//! with an error ends it too.
//! Source: docs.ollama.com, "Generate a chat message" and "Generate a response" (types of ollama-python 0.6), and
//! recordings.
//! Fixtures: `tests/fixtures/ollama/`.

use super::openai_chat::logprobs::read_entries;
use super::{Frame, Protocol, Wanted};
use crate::contract::{FinishReason, InputFormat, Logprobs, Output};
use crate::emit::{CallEnd, Counts, DeltaSink, PartHandle, PartKind};
use crate::json::{self, Kind, Reader, Result, Str};
use crate::template::{Template, Token, Tokens};

/// Members of the last line that make up the usage record.
const USAGE: [&str; 6] = [
    "total_duration",
    "load_duration",
    "prompt_eval_count",
    "prompt_eval_duration",
    "eval_count",
    "eval_duration",
];

/// One line, borrowed from its frame.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Event<'a> {
    model: Option<Str<'a>>,
    thinking: Option<Str<'a>>,
    text: Option<Str<'a>>,
    /// A list of calls.
    calls: Option<&'a str>,
    /// Read where they are wanted and there are any.
    logprobs: Option<Box<Logprobs>>,
    /// The whole line, where it is the last.
    done: Option<&'a str>,
    reason: Option<Str<'a>>,
    error: Option<&'a str>,
}

/// The lines that repeat: text or thinking and nothing beside it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Repeat {
    model: Option<Token>,
    thinking: Option<Token>,
    text: Option<Token>,
}

impl Template for Repeat {
    type Event<'a> = Event<'a>;

    fn of(event: &Event<'_>, tokens: &mut Tokens<'_>) -> Option<Self> {
        let Event { model, thinking, text, .. } = *event;
        let alone = *event == Event { model, thinking, text, ..Event::default() };
        (alone && (thinking.is_some() || text.is_some())).then(|| Self {
            model: model.map(|model| tokens.names(model)),
            thinking: thinking.map(|text| tokens.says(text)),
            text: text.map(|text| tokens.says(text)),
        })
    }

    #[inline]
    fn fill<'a>(&self, text: impl Fn(Token) -> Str<'a>) -> Event<'a> {
        Event {
            model: self.model.map(&text),
            thinking: self.thinking.map(&text),
            text: self.text.map(&text),
            ..Event::default()
        }
    }
}

/// The state of a stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    /// The part that text of its kind still extends.
    current: Option<(PartKind, PartHandle)>,
}

impl Protocol for State {
    type Repeat = Repeat;

    fn read<'a>(frame: Frame<'a>, reader: &mut Reader<'a>, wanted: Wanted) -> Result<Event<'a>> {
        let mut event = Event::default();
        reader.object(|reader, key| match key {
            "model" => {
                event.model = reader.filled_string()?;
                Ok(())
            }
            "message" => reader.maybe_object(|reader, key| {
                match key {
                    "content" => event.text = reader.filled_string()?,
                    "tool_calls" => event.calls = reader.opt_raw()?,
                    "thinking" => event.thinking = reader.filled_string()?,
                    _ => reader.ignore()?,
                }
                Ok(())
            }),
            _ => event.member(reader, key, frame, wanted),
        })?;
        reader.end()?;
        Ok(event)
    }

    fn apply<O: Output>(&mut self, event: &Event<'_>, sink: &mut DeltaSink<'_, O>) {
        sink.identity(event.model, None);
        if let Some(text) = event.thinking {
            let part = self.part(PartKind::Thinking, sink);
            sink.text(part, text);
        }
        if let Some(text) = event.text {
            let part = self.part(PartKind::Text, sink);
            sink.text(part, text);
        }
        if let Some(logprobs) = &event.logprobs {
            let part = match self.current {
                Some((_, part)) => part,
                None => self.part(PartKind::Text, sink),
            };
            sink.logprobs(part, logprobs);
        }
        if let Some(calls) = event.calls {
            // A text that `read` validated fails only by being no list.
            let _ = Reader::trusted(calls).maybe_array(|reader| self.call(reader, sink));
        }
        if let Some(json) = event.error {
            self.close(sink);
            sink.error(sink.failure(json));
        } else if let Some(line) = event.done {
            usage(line, sink);
            if let Some(reason) = event.reason {
                finish(reason, sink);
            }
            self.close(sink);
            sink.end();
        }
    }

    fn close<O: Output>(&mut self, sink: &mut DeltaSink<'_, O>) {
        if let Some((_, part)) = self.current.take() {
            sink.flush_part(part);
        }
    }
}

impl<'a> Event<'a> {
    fn member(
        &mut self,
        reader: &mut Reader<'a>,
        key: &str,
        frame: Frame<'a>,
        wanted: Wanted,
    ) -> Result<()> {
        match key {
            // `/api/generate` has no message around them.
            "response" => self.text = reader.filled_string()?.or(self.text),
            "thinking" => self.thinking = reader.filled_string()?.or(self.thinking),
            "tool_calls" => self.calls = reader.opt_raw()?.or(self.calls),
            "done" => self.done = (reader.boolean()? == Some(true)).then_some(frame.json),
            "done_reason" => self.reason = reader.filled_string()?,
            "error" => self.error = reader.opt_raw()?.filter(|raw| *raw != "\"\""),
            "logprobs" if wanted.logprobs => {
                let mut logprobs = Logprobs::default();
                read_entries(reader, &mut logprobs)?;
                self.logprobs = (!logprobs.is_empty()).then(|| Box::new(logprobs));
            }
            // Their many numbers make no template.
            "logprobs" | "context" => reader.skip()?,
            _ => reader.ignore()?,
        }
        Ok(())
    }
}

impl State {
    /// The part that text of this kind extends, a new one after a change of kind.
    #[inline]
    fn part<O: Output>(&mut self, kind: PartKind, sink: &mut DeltaSink<'_, O>) -> PartHandle {
        match self.current {
            Some((known, part)) if known == kind => part,
            _ => {
                self.close(sink);
                let part = sink.open_part(kind);
                self.current = Some((kind, part));
                part
            }
        }
    }

    fn call<O: Output>(
        &mut self,
        reader: &mut Reader<'_>,
        sink: &mut DeltaSink<'_, O>,
    ) -> Result<()> {
        let (mut id, mut name, mut text, mut json) = (None, None, None, None);
        reader.maybe_object(|reader, key| match key {
            "id" => {
                id = reader.scalar()?;
                Ok(())
            }
            "function" => reader.maybe_object(|reader, key| {
                match key {
                    "name" => name = reader.filled_string()?,
                    "arguments" if reader.kind()? == Kind::String => text = reader.opt_string()?,
                    "arguments" => json = reader.opt_raw()?,
                    _ => reader.skip()?,
                }
                Ok(())
            }),
            _ => reader.skip(),
        })?;
        self.close(sink);
        let call = sink.open_call(InputFormat::Json);
        sink.name_call(call, id, name);
        if let Some(arguments) = text.or(json.map(Str::plain)) {
            sink.call_args(call, arguments);
        }
        sink.end_call(call, CallEnd::Provider);
        Ok(())
    }
}

fn usage<O: Output>(line: &str, sink: &mut DeltaSink<'_, O>) {
    let mut record = json::members(line);
    record.retain(|(name, _)| USAGE.contains(&name.as_ref()));
    let count = |wanted: &str| {
        let (_, value) = record.iter().find(|(name, _)| name == wanted)?;
        Reader::trusted(value).count().ok()?
    };
    let counts = Counts {
        input: count("prompt_eval_count"),
        output: count("eval_count"),
        ..Counts::default()
    };
    sink.usage(&counts, &json::write_object(&record));
}

fn finish<O: Output>(reason: Str<'_>, sink: &mut DeltaSink<'_, O>) {
    let raw = reason.text();
    let mapped = match raw.as_str() {
        "stop" | "load" | "unload" => FinishReason::Stop,
        "length" => FinishReason::Length,
        _ => FinishReason::Other,
    };
    sink.finish(mapped, &raw);
}
