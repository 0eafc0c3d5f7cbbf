//! State of a ConverseStream response, and the application of events to it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::blocks::{Image, Opaque};
use super::read::{self, BlockDelta, Event, EventTemplate, Facts};

use super::facts::FACTS;
use crate::contract::{FinishReason, InputFormat};
use crate::dialect::protocol::{Frame, Protocol, Wanted};
use crate::dialect::unread::Unread;
use crate::emit::{CallEnd, CallHandle, PartHandle, PartKind};
use crate::json::{self, Reader, Result, Str};
use crate::sink::DeltaSink;

/// The state of a stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    blocks: BTreeMap<i64, Block>,
    last_index: i64,
    turns: Turns,
}

/// Maximum bytes of a usage record that is added to another one.
const RECORD_BYTES: usize = 4 << 10;

/// The messages of a stream.  An agent that runs at the provider sends several: its own, and the results of its tools.
///
/// Source: `InvokeHarnessStreamOutput` of botocore 1.44, service `bedrock-agentcore`.
#[derive(Clone, Debug, Default, PartialEq)]
struct Turns {
    /// A message has ended.
    has_stopped: bool,
    /// The message holds results of tools.
    is_of_user: bool,
    /// The counts of the messages that have ended, as JSON; empty without any.
    counted: String,
    /// Another message began after these counts.
    is_further: bool,
}

impl Turns {
    /// Return the counts of a message, with those of the messages before it.
    fn count<'a>(&mut self, usage: &'a str) -> Cow<'a, str> {
        let is_further = std::mem::take(&mut self.is_further);
        if usage.len() > RECORD_BYTES {
            return Cow::Borrowed(usage);
        }
        if !is_further {
            usage.clone_into(&mut self.counted);
            return Cow::Borrowed(usage);
        }
        let known = json::members(&self.counted);
        let count = |value: &str| value.parse::<u64>().ok();
        let mut sums = Vec::new();
        for (name, value) in json::members(usage) {
            let before = known.iter().find(|(known, _)| *known == name);
            let before = before.and_then(|(_, value)| count(value));
            let sum = before.zip(count(value)).map(|(one, other)| one.saturating_add(other));
            sums.push((name, sum.map_or_else(|| value.to_owned(), |sum| sum.to_string())));
        }
        let sums: Vec<_> = sums.iter().map(|(name, value)| (name, value.as_str())).collect();
        self.counted = json::write_object(&sums);
        Cow::Owned(self.counted.clone())
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Block {
    Text(PartHandle),
    Thinking(PartHandle),
    ToolUse(CallHandle),
    Image(Image),
    Opaque(Opaque),
}

impl Protocol for State {
    type EventTemplate = EventTemplate;

    fn read<'a>(frame: Frame<'a>, reader: &mut Reader<'a>, _: Wanted) -> Result<Event<'a>> {
        read::read(frame, reader)
    }

    fn apply(&mut self, event: &Event<'_>, sink: &mut DeltaSink<'_>) {
        match *event {
            Event::Nothing => {}
            Event::MessageStart { role } => {
                self.turns.is_of_user = role.is_some_and(|role| role.raw == "user");
                if self.turns.has_stopped {
                    self.turns.is_further = !self.turns.counted.is_empty();
                    sink.restart();
                }
            }
            Event::BlockDelta { index, delta } => {
                self.delta(index.unwrap_or(self.last_index), delta, sink);
            }
            Event::BlockStart { index, start } => {
                let index = index.unwrap_or(self.last_index.saturating_add(1));
                self.last_index = index;
                self.close_block(index, CallEnd::Finish(FinishReason::Other), sink);
                if let Some(block) = open_block(start, sink) {
                    self.blocks.insert(index, block);
                }
            }
            Event::BlockStop { index } => {
                self.close_block(index.unwrap_or(self.last_index), CallEnd::Provider, sink);
            }
            Event::MessageStop { reason, facts } => {
                note(facts, sink);
                self.turns.has_stopped = true;
                // The results of tools have no end of the answer.
                self.finish(reason.filter(|_| !self.turns.is_of_user), sink);
            }
            Event::Metadata { usage, facts } => {
                note(facts, sink);
                let Some(usage) = usage else { return };
                let usage = self.turns.count(usage);
                sink.merge_usage(Some(&usage), &FACTS.usage);
                sink.counted(&usage, &FACTS.usage);
            }
            Event::Whole { content, reason, usage, facts } => {
                note(facts, sink);
                let mut last = None;
                // `read` validated the JSON, so that an error here only means a value that is not a list.
                let _ = Reader::trusted(content).maybe_array(|reader| {
                    if let Some(block) = last.replace(reader.raw()?) {
                        whole_block(block, CallEnd::Provider, sink);
                    }
                    Ok(())
                });
                if let Some(block) = last {
                    // Only the stop reason tells whether the last block was cut.
                    let reason = reason.map_or_else(String::new, |reason| reason.text());
                    let reason = sink.ending(&FACTS.finish_reasons, &reason).reason();
                    whole_block(block, CallEnd::Finish(reason), sink);
                }
                sink.merge_usage(usage, &FACTS.usage);
                self.finish(reason, sink);
                sink.says_whole();
                sink.end();
            }
            Event::Error(name, json) => {
                self.close(sink);
                sink.error(sink.named_failure(name, json));
            }
            Event::Unknown(name) => {
                sink.warn_unknown("event", name);
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
        // A call that is still open ends with the stream, because its end depends on the end of the stream.
        self.close_blocks(CallEnd::Cut, sink);
    }
}

impl State {
    fn finish(&mut self, reason: Option<Str<'_>>, sink: &mut DeltaSink<'_>) {
        let raw = reason.map_or_else(String::new, |reason| reason.text());
        let mapped = sink.ending(&FACTS.finish_reasons, &raw).reason();
        self.close_blocks(CallEnd::Finish(mapped), sink);
        if !raw.is_empty() {
            sink.finish_word(&FACTS.finish_reasons, &raw);
        }
    }

    #[inline]
    fn delta(&mut self, index: i64, delta: BlockDelta<'_>, sink: &mut DeltaSink<'_>) {
        match (self.blocks.get_mut(&index), delta) {
            (Some(Block::Text(part)), BlockDelta::Text(text)) => sink.text(*part, text),
            (Some(Block::Text(part)), BlockDelta::Citation(json)) => sink.annotate(*part, json),
            (Some(Block::Thinking(part)), BlockDelta::Reasoning { text, signature, redacted }) => {
                reason(*part, [text, signature, redacted], sink);
            }
            (Some(Block::ToolUse(call)), BlockDelta::Input(text)) => sink.call_args(*call, text),
            (Some(Block::ToolUse(call)), BlockDelta::InputJson(json)) => {
                sink.call_args(*call, Str::plain(json));
            }
            (Some(Block::Opaque(block)), BlockDelta::Input(text)) => block.input(text, sink),
            (Some(Block::Opaque(block)), BlockDelta::InputJson(json)) => {
                block.input(Str::plain(json), sink);
            }
            (Some(Block::Opaque(block)), BlockDelta::ToolResult(list)) => block.content(list, sink),
            (Some(Block::Image(image)), BlockDelta::Image(json)) => image.more(json, sink),
            (_, BlockDelta::Unknown(json)) => {
                let members = json::members(json);
                if let Some((name, _)) = members.first() {
                    sink.warn_unknown("delta", Str::plain(name));
                }
            }
            // The block was never opened, or is of another type: open one that fits the delta.
            (known, delta) => {
                if known.is_some() {
                    stray(sink);
                    self.close_block(index, CallEnd::Finish(FinishReason::Other), sink);
                }
                self.last_index = index;
                if let Some(block) = block_of(&delta, sink) {
                    self.blocks.insert(index, block);
                    self.delta(index, delta, sink);
                }
            }
        }
    }

    fn close_blocks(&mut self, how: CallEnd, sink: &mut DeltaSink<'_>) {
        while let Some((index, _)) = self.blocks.first_key_value() {
            self.close_block(*index, how, sink);
        }
    }

    fn close_block(&mut self, index: i64, how: CallEnd, sink: &mut DeltaSink<'_>) {
        match self.blocks.remove(&index) {
            None => {}
            Some(Block::Text(part) | Block::Thinking(part)) => sink.end_part(part),
            Some(Block::ToolUse(_)) if how == CallEnd::Cut => {}
            Some(Block::ToolUse(call)) => sink.end_call(call, how),
            Some(Block::Image(mut image)) => image.close(sink),
            Some(Block::Opaque(mut block)) => block.close(sink),
        }
    }
}

/// Keep the members for the terminal event.  An answer without a stop reason that a guardrail blocked was filtered.
fn note(facts: Facts<'_>, sink: &mut DeltaSink<'_>) {
    sink.details(facts.known());
    if let Some(tier) = facts.tier() {
        sink.priced_tier(tier);
    }
    if facts.are_of_blocked_answer() {
        sink.imply_finish(FinishReason::ContentFilter, "guardrail_intervened");
    }
}

fn stray(sink: &mut DeltaSink<'_>) {
    sink.warn("stray_delta", "a delta came for a content block that was not open", None);
}

fn reason(part: PartHandle, said: [Option<Str<'_>>; 3], sink: &mut DeltaSink<'_>) {
    let [text, signature, redacted] = said;
    if let Some(text) = text {
        sink.text(part, text);
    }
    if let Some(signature) = signature {
        sink.part_state(part, &json::object(|state| state.wire_text("signature", signature)));
    }
    if let Some(blob) = redacted {
        sink.redacted(&json::object(|state| state.wire_text("redactedContent", blob)));
    }
}

/// Open the block for a delta without one.
///
/// Text and reasoning usually have no start event.  A delta of any other type is a stray one.
fn block_of(delta: &BlockDelta<'_>, sink: &mut DeltaSink<'_>) -> Option<Block> {
    Some(match delta {
        BlockDelta::Text(_) | BlockDelta::Citation(_) => {
            Block::Text(sink.open_block(PartKind::Text))
        }
        BlockDelta::Reasoning { .. } => Block::Thinking(sink.open_block(PartKind::Thinking)),
        BlockDelta::Image(_) => Block::Image(Image::default()),
        // Arguments without a known tool call: kept as a provider part, which cannot be run as a call.
        BlockDelta::Input(_) | BlockDelta::InputJson(_) => {
            stray(sink);
            Block::Opaque(Opaque::open("toolUse", "{}", sink)?)
        }
        BlockDelta::ToolResult(_) => {
            stray(sink);
            Block::Opaque(Opaque::open("toolResult", "{}", sink)?)
        }
        BlockDelta::Unknown(_) => return None,
    })
}

/// The members of a `toolUse` block.
#[derive(Default)]
struct ToolUse<'a> {
    id: Option<Str<'a>>,
    name: Option<Str<'a>>,
    /// The provider runs the tool.
    hosted: bool,
    input: Option<&'a str>,
}

fn read_tool_use<'a>(json: &'a str, unread: &mut Unread<'a>) -> Result<ToolUse<'a>> {
    let mut tool = ToolUse::default();
    Reader::trusted(json).maybe_object(|reader, key| {
        match key {
            "toolUseId" => tool.id = reader.scalar()?,
            "name" => tool.name = reader.filled_string()?,
            "type" => tool.hosted = reader.opt_string()?.is_some_and(|t| t.is("server_tool_use")),
            "input" => tool.input = reader.opt_raw()?,
            key => unread.dropped(reader, key)?,
        }
        Ok(())
    })?;
    Ok(tool)
}

/// Open a block by the only member of its start.  Returns `None` if its deltas open it, as for text.
fn open_block(start: &str, sink: &mut DeltaSink<'_>) -> Option<Block> {
    let members = json::members(start);
    let (name, json) = members.iter().find(|(_, json)| json.starts_with('{'))?;
    match name.as_ref() {
        "text" | "reasoningContent" => None,
        "image" => Some(Block::Image(Image::open(json))),
        "toolUse" => {
            let mut unread = Unread::default();
            let tool = read_tool_use(json, &mut unread).ok()?;
            if tool.hosted {
                return Opaque::open(name, json, sink).map(Block::Opaque);
            }
            unread.send(sink);
            let call = sink.open_call(InputFormat::Json);
            sink.name_call(call, tool.id, tool.name);
            Some(Block::ToolUse(call))
        }
        _ => Opaque::open(name, json, sink).map(Block::Opaque),
    }
}

/// Handle a block of a whole body.
fn whole_block(block: &str, how: CallEnd, sink: &mut DeltaSink<'_>) {
    let members = json::members(block);
    let Some((name, json)) = members.first() else { return };
    let mut unread = Unread::default();
    // `read` validated the JSON, so that an error here only means a value of another type, which is ignored.
    match name.as_ref() {
        "text" => {
            let part = sink.open_block(PartKind::Text);
            if let Ok(Some(text)) = Reader::trusted(json).filled_string() {
                sink.text(part, text);
                sink.end_part(part);
            }
        }
        "reasoningContent" => {
            let delta = read::read_reasoning(&mut Reader::trusted(json), &mut unread);
            unread.send(sink);
            if let Ok(BlockDelta::Reasoning { text, signature, redacted }) = delta {
                let part = sink.open_block(PartKind::Thinking);
                reason(part, [text, signature, redacted], sink);
                sink.end_part(part);
            }
        }
        "citationsContent" => {
            let part = sink.open_block(PartKind::Text);
            let _ = cited(json, part, sink);
            sink.end_part(part);
        }
        "image" => Image::default().whole(json, sink),
        "toolUse" => match read_tool_use(json, &mut unread) {
            Ok(tool) if !tool.hosted => {
                unread.send(sink);
                let call = sink.open_call(InputFormat::Json);
                sink.name_call(call, tool.id, tool.name);
                sink.call_args(call, Str::plain(tool.input.unwrap_or("")));
                sink.end_call(call, how);
            }
            _ => sink.provider_part(block),
        },
        _ => sink.provider_part(block),
    }
}

fn cited(json: &str, part: PartHandle, sink: &mut DeltaSink<'_>) -> Result<()> {
    let mut citations = None;
    let mut unread = Unread::default();
    Reader::trusted(json).maybe_object(|reader, key| match key {
        "content" => reader.maybe_array(|reader| {
            reader.maybe_object(|reader, key| {
                match key {
                    "text" => sink.text(part, reader.opt_string()?.unwrap_or(Str::plain(""))),
                    key => unread.dropped(reader, key)?,
                }
                Ok(())
            })
        }),
        "citations" => {
            citations = reader.opt_raw()?.filter(|list| list.starts_with('[') && *list != "[]");
            Ok(())
        }
        key => unread.dropped(reader, key),
    })?;
    unread.send(sink);
    if let Some(citations) = citations {
        sink.annotate(part, citations);
    }
    Ok(())
}
