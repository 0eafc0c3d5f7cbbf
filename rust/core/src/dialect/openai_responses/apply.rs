//! State of a Responses stream, and the application of events to it.

use super::items::{Actor, Item, ItemMembers};
use super::places::Places;
use super::read::{self, Content, Event, EventTemplate, ItemPosition, ResponseStage};

use super::facts::{FACTS, TOOL_USAGE, flat_name};
use crate::contract::{ErrorCode, Failure, FinishReason};
use crate::dialect::protocol::{Frame, Protocol, Wanted};
use crate::dialect::unread::Unread;
use crate::json::{self, Kind, Reader, Result, Str};
use crate::provider_error::ErrorObject;
use crate::sink::DeltaSink;

/// Members of a response that repeat the request, or that say nothing about the answer.
///
/// Source: the types `Response` and `ResponseCreateParams` of openai-python 3.57.
const OF_THE_REQUEST: [&str; 35] = [
    "access_programs",
    "background",
    "background_options",
    "context_management",
    "frequency_penalty",
    "image",
    "include",
    "instructions",
    "max_output_tokens",
    "max_tokens",
    "max_tool_calls",
    "metadata",
    "object",
    "output_text",
    "parallel_tool_calls",
    "presence_penalty",
    "previous_response_id",
    "prompt",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "reasoning",
    "safety_identifier",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "text",
    "tool_choice",
    "top_k",
    "top_logprobs",
    "top_p",
    "truncation",
    "type",
    "user",
];

/// The state of a stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    places: Places,
    /// The custom tools that the request declared, if it also declared a search that calls custom tools of the provider.
    declared: Option<Vec<String>>,
    /// The caller must act on an item that is not a tool call.
    caller_acts: bool,
    approval: bool,
    /// The items are those of a whole body.
    is_whole_body: bool,
    audio: String,
}

impl Protocol for State {
    type EventTemplate = EventTemplate;

    fn read<'a>(frame: Frame<'a>, reader: &mut Reader<'a>, wanted: Wanted) -> Result<Event<'a>> {
        read::read(frame, reader, wanted)
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "an event of a template is never put together then")]
    fn apply(&mut self, event: &Event<'_>, sink: &mut DeltaSink<'_>) {
        match *event {
            Event::More { content, position, text, ref logprobs } => {
                self.take(content, position, text, false, sink);
                if let Some(logprobs) = logprobs
                    && !sink.misses(logprobs)
                    && let Some(Item::Message(message)) = self.places.recent()
                    && let Some(part) = message.last_part()
                {
                    sink.logprobs(part, logprobs);
                }
            }
            Event::Whole { content, position, text } => {
                self.take(content, position, text, true, sink);
            }
            Event::Annotation { position, annotation } => {
                let at = self.places.of_content(Content::Text, position, true);
                if let Some(Item::Message(message)) = at.and_then(|at| self.places.get(at))
                    && let Some(part) = message.part_at(position.index)
                {
                    sink.annotate(part, annotation);
                }
            }
            Event::ItemAdded { position, item } => self.add(position, item, sink),
            Event::ItemDone { position, item } => {
                // `read` validated the JSON, so that an error here only means a value that is not an object.
                let _ = self.done(position, item, sink);
            }
            Event::Response { stage, response } => {
                let _ = self.response(stage, response, sink);
            }
            Event::Error(json) => {
                self.close(sink);
                sink.defer_error(sink.failure(json));
            }
            Event::Failed(json) => {
                self.close(sink);
                sink.error(sink.failure(json));
            }
            Event::Progress => {}
            Event::Unknown(kind) => {
                sink.warn_unknown("event", kind);
            }
            Event::Beside(ref beside) => self.beside(beside, sink),
        }
    }

    fn close(&mut self, sink: &mut DeltaSink<'_>) {
        for item in self.places.items() {
            item.close(sink);
        }
        if !self.audio.is_empty() {
            let audio = std::mem::take(&mut self.audio);
            let block = json::object(|block| {
                block.text("type", "audio");
                block.text("data", &audio);
            });
            sink.audio_part(&block, audio.len());
        }
    }
}

impl State {
    /// Apply an event and the members that no rule knows.  An answer may end with it, so that these are first.
    #[cold]
    fn beside(&mut self, beside: &(Event<'_>, Unread<'_>), sink: &mut DeltaSink<'_>) {
        let (event, unread) = beside;
        unread.send(sink);
        self.apply(event, sink);
    }

    #[inline]
    fn take(
        &mut self,
        content: Content,
        position: ItemPosition<'_>,
        text: Str<'_>,
        whole: bool,
        sink: &mut DeltaSink<'_>,
    ) {
        if content == Content::Audio {
            if !whole {
                sink.audio(&text.text(), &mut self.audio);
            }
            return;
        }
        let known = self.places.of_content(content, position, whole).or_else(|| {
            let item = Item::from_content(content, sink)?;
            self.places.insert(position, None, item, sink)
        });
        if let Some(item) = known.and_then(|at| self.places.get(at)) {
            item.take(content, position.index, text, whole, sink);
        }
    }

    fn add(&mut self, position: ItemPosition<'_>, item: &str, sink: &mut DeltaSink<'_>) {
        let Ok(members) = ItemMembers::read(item) else { return };
        let position = ItemPosition { item_id: position.item_id.or(members.id), ..position };
        if let Some(at) = self.places.of_item(position, &members, false) {
            self.places.announce(at, position, &members, sink);
            sink.warn("repeated_item", "an output item was announced twice", None);
            return;
        }
        self.open(position, &members, item, sink);
    }

    fn done(
        &mut self,
        position: ItemPosition<'_>,
        json: &str,
        sink: &mut DeltaSink<'_>,
    ) -> Result<()> {
        let members = ItemMembers::read(json)?;
        let position = ItemPosition { item_id: position.item_id.or(members.id), ..position };
        if let Some(at) = self.places.of_item(position, &members, true) {
            self.places.announce(at, position, &members, sink);
            self.end_item(at, &members, json, sink);
        } else {
            self.add_whole(position, &members, json, sink);
        }
        Ok(())
    }

    /// Add an item that no event announced.
    fn add_whole(
        &mut self,
        position: ItemPosition<'_>,
        members: &ItemMembers<'_>,
        json: &str,
        sink: &mut DeltaSink<'_>,
    ) {
        if let Some(at) = self.open(position, members, json, sink) {
            self.end_item(at, members, json, sink);
        }
    }

    fn open(
        &mut self,
        position: ItemPosition<'_>,
        members: &ItemMembers<'_>,
        json: &str,
        sink: &mut DeltaSink<'_>,
    ) -> Option<usize> {
        // Each item of a whole body is one of its own.
        let said_before = self.places.part_by_id(position.item_id).filter(|_| !self.is_whole_body);
        let opened = Item::open(members, json, self.declared.as_deref(), said_before, sink);
        self.places.insert(position, Some(members), opened, sink)
    }

    fn end_item(
        &mut self,
        at: usize,
        members: &ItemMembers<'_>,
        json: &str,
        sink: &mut DeltaSink<'_>,
    ) {
        if let Some(item) = self.places.get(at) {
            if matches!(item, Item::Provider { .. }) {
                let actor = members.actor();
                self.caller_acts |= actor == Actor::Caller;
                self.approval |= actor == Actor::Approver;
            }
            item.finish(members, json, sink);
        }
    }

    /// Handle the items of a whole body, or those that the end of a stream repeats.
    fn output(&mut self, output: &str, sink: &mut DeltaSink<'_>) -> Result<()> {
        let streamed = self.places.kinds();
        self.is_whole_body = streamed.is_empty();
        let mut index = 0;
        Reader::trusted(output).maybe_array(|reader| {
            let json = reader.raw()?;
            let members = ItemMembers::read(json)?;
            if streamed.is_empty() {
                // Each element is an item of its own, even if two of them have one id.
                let position = ItemPosition {
                    output_index: Some(index),
                    item_id: members.id,
                    ..ItemPosition::default()
                };
                index += 1;
                self.add_whole(position, &members, json, sink);
            } else if let Some(at) = self.places.lacking_by_id(&members) {
                match self.places.get(at) {
                    Some(hollow @ Item::Hollow(_)) => hollow.fill(&members, json, sink),
                    _ if members.is_unfinished_call() => {}
                    // The `done` event of the item is missing.
                    _ => self.end_item(at, &members, json, sink),
                }
            } else if !streamed.iter().any(|kind| members.fits(*kind)) {
                // No event was about an item of this kind.
                self.done(ItemPosition::default(), json, sink)?;
            }
            Ok(())
        })
    }

    fn response(
        &mut self,
        stage: ResponseStage,
        json: &str,
        sink: &mut DeltaSink<'_>,
    ) -> Result<()> {
        let mut id = None;
        let mut model = None;
        let mut status = None;
        let mut reason = None;
        let mut error = None;
        let mut output = None;
        let mut usage = None;
        let mut tools = None;
        let mut service_tier = None;
        let mut created = None;
        let mut unread = Unread::default();
        let mut tool_usage = None;
        let is_running = stage == ResponseStage::Running;
        Reader::trusted(json).maybe_object(|reader, key| {
            match key {
                "id" => id = reader.id()?,
                "model" => model = reader.filled_string()?,
                "status" => status = reader.filled_string()?,
                "incomplete_details" => reader.maybe_object(|reader, key| {
                    match key {
                        "reason" => reason = reader.filled_string()?,
                        _ => reader.skip()?,
                    }
                    Ok(())
                })?,
                "error" => error = reader.opt_raw()?,
                "output" => output = reader.opt_raw()?,
                "usage" => usage = reader.opt_raw()?,
                "tools" => tools = reader.opt_raw()?,
                "service_tier" => service_tier = reader.filled_string()?,
                "created_at" if reader.kind()? == Kind::Number => created = Some(reader.raw()?),
                _ if is_running || OF_THE_REQUEST.contains(&key) => reader.skip()?,
                TOOL_USAGE => {
                    let start = reader.position();
                    unread.fact(reader, key)?;
                    tool_usage = Some(reader.since(start));
                }
                key => unread.fact(reader, key)?,
            }
            Ok(())
        })?;
        sink.identity(model, id);
        sink.details(
            created.filter(|time| !matches!(*time, "0" | "0.0")).map(|time| ("created_at", time)),
        );
        // An empty list comes from servers that do not repeat the request.
        if let (None, Some(tools)) = (&self.declared, tools.filter(|tools| *tools != "[]")) {
            self.declared = custom_tools(tools, sink)?;
        }
        if is_running {
            return Ok(());
        }
        unread.send(sink);
        // The first events repeat the requested tier; the last one holds the tier that served the request.
        sink.service_tier(service_tier);
        if let Some(output) = output {
            self.output(output, sink)?;
        }
        if let Some(used) = tool_usage {
            bill(used, sink);
        }
        sink.merge_usage(usage, &FACTS.usage);
        self.close(sink);
        let status = status.map_or("", |status| status.raw);
        match (stage, status) {
            (ResponseStage::Failed, _) | (_, "failed" | "cancelled") => {
                sink.defer_error(ended_badly(status, error, sink));
            }
            (ResponseStage::Incomplete, _) | (_, "incomplete") => {
                let reason = reason.map_or_else(|| "incomplete".to_owned(), |reason| reason.text());
                sink.finish_word(&FACTS.finish_reasons, &reason);
            }
            (_, "queued" | "in_progress") if stage == ResponseStage::Body => {
                sink.finish(FinishReason::Other, status);
            }
            (_, "") | (ResponseStage::Completed, _) => sink.finish(self.completed(), "completed"),
            (_, status) => sink.finish(self.completed(), status),
        }
        sink.end();
        Ok(())
    }

    fn completed(&self) -> FinishReason {
        if self.approval {
            FinishReason::Pause
        } else if self.caller_acts {
            FinishReason::ToolCalls
        } else {
            FinishReason::Stop
        }
    }
}

fn ended_badly(status: &str, error: Option<&str>, sink: &DeltaSink<'_>) -> Failure<Box<str>> {
    let error = error.map(|json| ErrorObject::read(json).unwrap_or_default());
    let known = error.is_some();
    let mut failure = error
        .unwrap_or_default()
        .failure(&sink.options().response, "the response failed without saying why");
    if status == "cancelled" && !known {
        failure = Failure::new(ErrorCode::Cancelled, "the response was cancelled".into());
    }
    failure
}

/// Count the calls of tools that a response states: requests of a search, or tokens of generated images.
#[cold]
fn bill(tool_usage: &str, sink: &mut DeltaSink<'_>) {
    // `read` validated the JSON, so that an error here only means a value that is not an object.
    let _ = Reader::trusted(tool_usage).maybe_object(|reader, tool| {
        let mut calls = 0;
        reader.maybe_object(|reader, key| {
            let count = reader.count()?.unwrap_or(0);
            calls = if key == "num_requests" { count } else { calls.max(count.min(1)) };
            Ok(())
        })?;
        let kind = match tool {
            "image_gen" => "image_generation_call",
            "web_search" => "web_search_call",
            _ => TOOL_USAGE,
        };
        sink.billed_at_least(kind, calls);
        Ok(())
    });
}

/// Return the names of the custom tools among the request's tools; `None` without xAI's `x_search`, the only tool of a
/// provider that is known to call custom tools.
fn custom_tools(tools: &str, sink: &mut DeltaSink<'_>) -> Result<Option<Vec<String>>> {
    let mut names = Vec::new();
    let mut searches = false;
    Reader::trusted(tools).maybe_array(|reader| {
        let tool = Tool::read(reader)?;
        searches |= tool.is("x_search");
        let mut keep = |namespace, tool: &Tool<'_>| {
            if let Some(name) = tool.name.filter(|_| tool.is("custom"))
                && sink.take_state_bytes(name.raw.len())
            {
                names.push(flat_name(namespace, name).into_owned());
            }
        };
        keep(None, &tool);
        Reader::trusted(tool.tools.unwrap_or("[]")).maybe_array(|reader| {
            keep(tool.name, &Tool::read(reader)?);
            Ok(())
        })
    })?;
    Ok(searches.then_some(names))
}

/// A declared tool, or a namespace of tools.
#[derive(Default)]
struct Tool<'a> {
    kind: Option<Str<'a>>,
    name: Option<Str<'a>>,
    tools: Option<&'a str>,
}

impl<'a> Tool<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self> {
        let mut found = Self::default();
        reader.maybe_object(|reader, key| {
            match key {
                "type" if reader.kind()? == Kind::String => found.kind = reader.filled_string()?,
                "name" if reader.kind()? == Kind::String => found.name = reader.filled_string()?,
                "tools" => found.tools = reader.opt_raw()?,
                _ => reader.skip()?,
            }
            Ok(())
        })?;
        Ok(found)
    }

    fn is(&self, kind: &str) -> bool {
        self.kind.is_some_and(|known| known.raw == kind)
    }
}
