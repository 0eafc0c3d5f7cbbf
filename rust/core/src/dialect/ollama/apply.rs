//! State of an Ollama stream, and the application of lines to it.

use super::facts::{FACTS, LOADED};
use super::read::{self, Event, EventTemplate, USAGE};
use crate::contract::InputFormat;
use crate::dialect::protocol::{Frame, Protocol, Wanted};
use crate::emit::{CallEnd, Counts, PartHandle, PartKind, Said};
use crate::json::{self, Kind, Reader, Result, Str};
use crate::sink::DeltaSink;

/// The state of a stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    /// The open part.  Text of the same kind extends it.
    current: Option<(PartKind, PartHandle)>,
}

impl Protocol for State {
    type EventTemplate = EventTemplate;

    fn read<'a>(frame: Frame<'a>, reader: &mut Reader<'a>, wanted: Wanted) -> Result<Event<'a>> {
        read::read(frame, reader, wanted)
    }

    fn apply(&mut self, event: &Event<'_>, sink: &mut DeltaSink<'_>) {
        let is_whole =
            sink.said() == Said::default() && (event.text.is_some() || event.calls.is_some());
        sink.identity(event.model, None);
        event.unread.send(sink);
        if let Some(text) = event.thinking {
            let part = self.part(PartKind::Thinking, sink);
            sink.text(part, text);
        }
        if let Some(text) = event.text {
            let part = self.part(PartKind::Text, sink);
            sink.text(part, text);
        }
        if let Some(logprobs) = &event.logprobs
            && !sink.misses(logprobs)
        {
            let part = match self.current {
                Some((_, part)) => part,
                None => self.part(PartKind::Text, sink),
            };
            sink.logprobs(part, logprobs);
        }
        if let Some(calls) = event.calls {
            // `read` validated the JSON, so that an error here only means a value that is not a list.
            let _ = Reader::trusted(calls).maybe_array(|reader| self.call(reader, sink));
        }
        if let Some(json) = event.error {
            self.close(sink);
            sink.error(sink.failure(json));
        } else if let Some(line) = event.done {
            let counted = usage(line, sink);
            if let Some(reason) = event.reason {
                finish(reason, sink);
            } else if counted || is_whole {
                sink.says_whole();
            }
            self.close(sink);
            sink.end();
        }
    }

    fn close(&mut self, sink: &mut DeltaSink<'_>) {
        if let Some((_, part)) = self.current.take() {
            sink.end_part(part);
        }
    }
}

impl State {
    /// Return the part that text of this kind extends.  Opens a new part if the kind changed.
    #[inline]
    fn part(&mut self, kind: PartKind, sink: &mut DeltaSink<'_>) -> PartHandle {
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

    fn call(&mut self, reader: &mut Reader<'_>, sink: &mut DeltaSink<'_>) -> Result<()> {
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

/// Emit the counts of the last line; return whether it has any.
fn usage(line: &str, sink: &mut DeltaSink<'_>) -> bool {
    let mut record = json::members(line);
    record.retain(|(name, _)| USAGE.contains(&name.as_ref()));
    let is_counted = !record.is_empty();
    let record = json::write_object(&record);
    if let Ok(counts) = Counts::read(&FACTS.usage, &record) {
        sink.usage(&counts, &record);
    }
    is_counted
}

fn finish(reason: Str<'_>, sink: &mut DeltaSink<'_>) {
    let raw = reason.text();
    sink.finish_word(&FACTS.finish_reasons, &raw);
    if LOADED.contains(&&*raw) {
        sink.warn("no_answer", &format!("no answer: the model did only {raw}"), None);
    }
}
