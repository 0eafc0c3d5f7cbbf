//! State of a Cohere Chat stream, and the application of events to it.

use std::collections::BTreeMap;

use super::read::{self, Call, End, Event, EventTemplate};

use super::facts::FACTS;
use crate::contract::InputFormat;
use crate::dialect::protocol::{Frame, Protocol, Wanted};
use crate::dialect::unread::Unread;
use crate::emit::{CallEnd, CallHandle, Counts, PartHandle, PartKind};
use crate::facts::Ending;
use crate::json::{Kind, Reader, Result, Str};
use crate::provider_error::ErrorObject;
use crate::sink::DeltaSink;

/// The state of a stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    /// Text parts, by block index.
    contents: BTreeMap<i64, PartHandle>,
    /// The open block: its index, whether it is reasoning, and its part.
    current: Option<(Option<i64>, bool, PartHandle)>,
    plan: Option<PartHandle>,
    calls: BTreeMap<i64, CallHandle>,
    last_call: Option<CallHandle>,
    said_calls: bool,
}

impl Protocol for State {
    type EventTemplate = EventTemplate;

    fn read<'a>(frame: Frame<'a>, reader: &mut Reader<'a>, wanted: Wanted) -> Result<Event<'a>> {
        read::read(frame, reader, wanted)
    }

    fn apply(&mut self, event: &Event<'_>, sink: &mut DeltaSink<'_>) {
        match *event {
            Event::Content { index, thinking, text, ref logprobs } => {
                let logprobs = logprobs.as_ref().filter(|logprobs| !sink.misses(logprobs));
                let part = self.content(index, thinking, sink);
                sink.text(part, text);
                if let Some(logprobs) = logprobs {
                    sink.logprobs(part, logprobs);
                }
            }
            Event::Block(json) => sink.provider_part(json),
            Event::Plan(text) => {
                let plan = *self.plan.get_or_insert_with(|| sink.open_part(PartKind::Thinking));
                sink.text(plan, text);
            }
            Event::Call { index, begins, call } => self.call(index, begins, call, sink),
            Event::CallEnd { index } => {
                let call = index.and_then(|index| self.calls.remove(&index)).or(self.last_call);
                if let Some(call) = call {
                    sink.end_call(call, CallEnd::Provider);
                }
            }
            Event::Citation(citation) => self.cite(citation, sink),
            Event::Start { id, message } => {
                sink.identity(None, id);
                if let Some(message) = message {
                    let _ = self.message(message, sink);
                }
            }
            Event::Blocks { index, blocks } => {
                let _ = self.blocks(index, blocks, sink);
            }
            // `read` validated the JSON, so that an error here only means a value that is not a list.
            Event::Calls(list) => {
                let _ = self.whole_calls(list, sink);
            }
            Event::End { id, end } => {
                sink.identity(None, id);
                self.end(end, sink);
            }
            Event::Whole { response, finish_reason } => {
                let _ = self.whole(response, finish_reason, sink);
            }
            Event::Failed(json) => {
                self.close(sink);
                sink.error(sink.failure(json));
            }
            Event::ContentEnd { index } => {
                if let Some((_, _, part)) = self.current.take_if(|(known, ..)| *known == index) {
                    sink.end_part(part);
                }
            }
            Event::Progress => {}
            Event::Unknown(kind) => {
                sink.warn_unknown("event", kind);
            }
            Event::Beside(ref beside) => {
                let (event, unread) = &**beside;
                // An answer may end with the event.
                unread.send(sink);
                self.apply(event, sink);
            }
        }
    }

    fn close(&mut self, sink: &mut DeltaSink<'_>) {
        if let Some(plan) = self.plan.take() {
            sink.part_state(plan, "{\"type\":\"tool_plan\"}");
        }
    }
}

impl State {
    /// Return the part of a block.  Opens a new part if the block or its kind changed.
    #[inline]
    fn content(
        &mut self,
        index: Option<i64>,
        thinking: bool,
        sink: &mut DeltaSink<'_>,
    ) -> PartHandle {
        if let Some((known, kind, part)) = self.current
            && known == index
            && kind == thinking
        {
            return part;
        }
        if let Some((_, _, part)) = self.current {
            sink.end_part(part);
        }
        let kind = if thinking { PartKind::Thinking } else { PartKind::Text };
        // Version 1 has no indexes and no event for the end of a text.
        let part = if index.is_some() { sink.open_block(kind) } else { sink.open_part(kind) };
        if !thinking {
            self.contents.insert(index.unwrap_or(0), part);
        }
        self.current = Some((index, thinking, part));
        part
    }

    fn call(&mut self, index: Option<i64>, begins: bool, call: Call<'_>, sink: &mut DeltaSink<'_>) {
        let known = index.and_then(|index| self.calls.get(&index)).copied();
        let known = known.or(self.last_call.filter(|_| index.is_none()));
        let handle = match known {
            Some(handle) if !begins => handle,
            known => {
                // An index that starts again belongs to another call.
                if let Some(before) = known {
                    sink.end_call(before, CallEnd::Provider);
                }
                let handle = sink.open_call(InputFormat::Json);
                if let Some(index) = index {
                    self.calls.insert(index, handle);
                }
                handle
            }
        };
        self.last_call = Some(handle);
        self.said_calls = true;
        if begins {
            sink.name_call(handle, call.id, call.name);
        }
        if let Some(arguments) = call.arguments {
            sink.call_args(handle, arguments);
        }
    }

    fn whole_calls(&mut self, list: &str, sink: &mut DeltaSink<'_>) -> Result<()> {
        if self.said_calls {
            return Ok(());
        }
        Reader::trusted(list).maybe_array(|reader| {
            let mut unread = Unread::default();
            let call = read::read_call(reader, &mut unread)?;
            unread.send(sink);
            self.call(None, true, call, sink);
            if let Some(call) = self.last_call.take() {
                sink.end_call(call, CallEnd::Provider);
            }
            Ok(())
        })
    }

    fn cite(&mut self, citation: &str, sink: &mut DeltaSink<'_>) {
        let mut block = None;
        // `read` validated the JSON, so that an error here only means a value that is not an object.
        let _ = Reader::trusted(citation).maybe_object(|reader, key| {
            match key {
                "content_index" => block = reader.integer()?,
                _ => reader.skip()?,
            }
            Ok(())
        });
        let part = block.and_then(|block| self.contents.get(&block)).copied();
        let part = part.or(self.contents.last_key_value().map(|(_, part)| *part));
        match part {
            Some(part) => sink.annotate(part, citation),
            None => sink.warn_unread("citations"),
        }
    }

    fn end(&mut self, end: End<'_>, sink: &mut DeltaSink<'_>) {
        if let Some(usage) = end.usage
            && let Ok(counts) = Counts::read(&FACTS.usage, usage)
        {
            if counts.is_empty() {
                // Units that are billed, without tokens.
                sink.unknown_detail("usage", usage);
            }
            sink.usage(&counts, usage);
            sink.says_whole();
        }
        self.close(sink);
        let raw = end.finish_reason.map(|reason| reason.text()).unwrap_or_default();
        let ending = sink.ending(&FACTS.finish_reasons, &raw);
        if let (Some(error), Ending::Finish(_)) = (end.error, ending) {
            sink.unknown_detail("error", error);
        }
        match ending {
            Ending::Finish(_) if raw.is_empty() => {}
            Ending::Finish(_) => {
                sink.finish_word(&FACTS.finish_reasons, &raw);
            }
            Ending::Failure(code) => {
                let error = end.error.map(|json| ErrorObject::read(json).unwrap_or_default());
                let fallback = format!("the provider ended the answer with {raw}");
                let mut failure =
                    error.unwrap_or_default().failure(&sink.options().response, &fallback);
                failure.code = code;
                failure.retryable = Some(code.retryable());
                failure.provider_code = Some(raw.into());
                sink.defer_error(failure);
            }
        }
        sink.end();
    }

    /// Handle a whole body of either version.  After deltas it repeats them, and only its end counts.
    fn whole(
        &mut self,
        json: &str,
        finish_reason: Option<Str<'_>>,
        sink: &mut DeltaSink<'_>,
    ) -> Result<()> {
        let news = self.current.is_none() && self.plan.is_none() && !self.said_calls;
        let mut end = End { finish_reason, ..End::default() };
        let mut id = None;
        let mut text = None;
        let mut calls = None;
        let mut message = None;
        let mut citations = None;
        let mut unread = Unread::default();
        Reader::trusted(json).maybe_object(|reader, key| {
            match key {
                "id" | "response_id" => id = reader.id()?,
                "generation_id" => id = id.or(reader.id()?),
                "finish_reason" => end.finish_reason = reader.filled_string()?.or(finish_reason),
                "usage" | "meta" => end.usage = reader.opt_raw()?,
                "error" => end.error = reader.opt_raw()?,
                "text" => text = reader.filled_string()?,
                "tool_calls" => calls = reader.opt_raw()?,
                "citations" => citations = reader.opt_raw()?,
                "message" => message = reader.opt_raw()?,
                // The names of an event, and the request that version 1 repeats.
                "type" | "event_type" | "is_finished" | "chat_history" => reader.skip()?,
                key => unread.fact(reader, key)?,
            }
            Ok(())
        })?;
        sink.identity(None, id);
        unread.send(sink);
        if news {
            if let Some(message) = message {
                self.message(message, sink)?;
            }
            if let Some(text) = text {
                let part = self.content(None, false, sink);
                sink.text(part, text);
            }
            if let Some(citations) = citations.filter(|list| *list != "[]") {
                self.cite(citations, sink);
            }
            if let Some(calls) = calls {
                self.whole_calls(calls, sink)?;
            }
        }
        sink.says_whole();
        self.end(end, sink);
        Ok(())
    }

    /// Handle the message of a whole body of version 2, or the message with which a stream begins.
    fn message(&mut self, json: &str, sink: &mut DeltaSink<'_>) -> Result<()> {
        if json.starts_with('"') {
            return self.blocks(Some(0), json, sink);
        }
        let mut content = None;
        let mut calls = None;
        let mut citations = None;
        let mut unread = Unread::default();
        Reader::trusted(json).maybe_object(|reader, key| {
            match key {
                "tool_plan" => {
                    if let Some(text) = reader.filled_string()? {
                        self.apply(&Event::Plan(text), sink);
                    }
                }
                "content" => content = reader.opt_raw()?,
                "tool_calls" => calls = reader.opt_raw()?,
                "citations" => citations = reader.opt_raw()?,
                "role" => reader.skip()?,
                key => unread.content(reader, key)?,
            }
            Ok(())
        })?;
        unread.send(sink);
        self.blocks(Some(0), content.unwrap_or("[]"), sink)?;
        Reader::trusted(citations.unwrap_or("[]")).maybe_array(|reader| {
            self.cite(reader.raw()?, sink);
            Ok(())
        })?;
        calls.map_or(Ok(()), |calls| self.whole_calls(calls, sink))
    }

    /// Handle the content of a message: a list of blocks, or the text itself.
    fn blocks(
        &mut self,
        first: Option<i64>,
        content: &str,
        sink: &mut DeltaSink<'_>,
    ) -> Result<()> {
        let mut reader = Reader::trusted(content);
        if reader.kind()? == Kind::String {
            if let Some(text) = reader.filled_string()? {
                let part = self.content(first, false, sink);
                sink.text(part, text);
            }
            return Ok(());
        }
        let mut index = first;
        reader.maybe_array(|reader| {
            let (mut text, mut thinking, mut kind) = (None, None, None);
            let mut unread = Unread::default();
            if reader.kind()? == Kind::String {
                text = reader.filled_string()?;
            } else {
                let start = reader.position();
                reader.maybe_object(|reader, key| {
                    match key {
                        "type" => kind = reader.filled_string()?,
                        "text" => text = reader.filled_string()?,
                        "thinking" => thinking = reader.filled_string()?,
                        key => unread.dropped(reader, key)?,
                    }
                    Ok(())
                })?;
                if text.is_none() && thinking.is_none() && kind.is_some_and(read::is_unknown) {
                    sink.provider_part(reader.since(start));
                }
            }
            if let Some(said) = thinking.or(text) {
                unread.send(sink);
                let part = self.content(index, thinking.is_some(), sink);
                sink.text(part, said);
            }
            index = index.map(|index| index.saturating_add(1));
            Ok(())
        })
    }
}
