//! State of a Messages stream, and the application of events to it.

use super::blocks::{append_member, is_empty_container, provider_block};
use super::deltas::{BlockDelta, Facts};
use super::open_blocks::OpenBlocks;
use super::read::{self, Event, EventTemplate, Message};
use super::serving::with_serving_counts;

use super::facts::FACTS;
use crate::contract::{FinishReason, InputFormat};
use crate::dialect::protocol::{Frame, Protocol, Wanted};
use crate::dialect::unread::Unread;
use crate::emit::{CallEnd, CallHandle, PartHandle, PartKind};
use crate::json::{self, Carry, Reader, Result, Str};
use crate::sink::DeltaSink;

/// The state of a stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    seen_message: bool,
    message_id: Option<String>,
    blocks: OpenBlocks<Block>,
    last_index: i64,
    /// Arguments came for a block that was not open.
    args_went_astray: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum Block {
    Text(PartHandle),
    Thinking(PartHandle),
    ToolUse {
        call: CallHandle,
        /// The input in the start of the block.  It counts if no delta follows.
        input: Option<String>,
    },
    /// Any other block: its start object, the text of its input, and the members that deltas set.
    Provider {
        start: String,
        input: String,
        carry: Carry,
        set: Vec<(String, String)>,
        /// Bytes that count against the limit on state while the block is open.
        held: usize,
        /// The block is the boundary after which another model serves the answer.
        hands_over: bool,
    },
}

impl Protocol for State {
    type EventTemplate = EventTemplate;

    fn read<'a>(frame: Frame<'a>, reader: &mut Reader<'a>, _: Wanted) -> Result<Event<'a>> {
        read::read(frame, reader)
    }
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "an event of a template is never put together then")]
    fn apply(&mut self, event: &Event<'_>, sink: &mut DeltaSink<'_>) {
        match *event {
            Event::BlockDelta { index, delta } => self.block_delta(index, delta, sink),
            Event::BlockStart { index, block } => {
                let index = index.unwrap_or(self.last_index.saturating_add(1));
                self.last_index = index;
                self.close_block(index, CallEnd::Finish(FinishReason::Other), sink);
                if let Some(block) = State::open_block(block, sink) {
                    self.blocks.insert(index, block);
                }
            }
            Event::BlockStop { index } => {
                self.close_block(index.unwrap_or(self.last_index), CallEnd::Provider, sink);
            }
            Event::Message { message, whole } => {
                self.message(message, whole, sink);
                if whole {
                    self.close(sink);
                    sink.says_whole();
                    sink.end();
                }
            }
            Event::MessageDelta { stop_reason, facts, usage, transformations } => {
                note(facts, sink);
                warn_of_transformations(transformations, sink);
                let served =
                    usage.filter(|_| sink.has_changed_model()).and_then(with_serving_counts);
                sink.merge_usage(served.as_deref().or(usage), &FACTS.usage);
                if let Some(usage) = usage {
                    sink.counted(usage, &FACTS.usage);
                }
                if let Some(reason) = stop_reason {
                    finish(reason, sink);
                }
            }
            Event::MessageStop => {
                self.close(sink);
                sink.end();
            }
            Event::Ping => {}
            Event::Error(json) => {
                self.close(sink);
                sink.error(sink.failure(json));
            }
            Event::Unknown(kind) => {
                sink.warn_unknown("event", kind);
            }
            Event::Beside(ref beside) => self.beside(beside, sink),
        }
    }

    fn close(&mut self, sink: &mut DeltaSink<'_>) {
        while let Some(index) = self.blocks.first_index() {
            // A call that is still open ends with the stream, because its end depends on the end of the stream.
            self.close_block(index, CallEnd::Cut, sink);
        }
    }
}

fn note(facts: Facts<'_>, sink: &mut DeltaSink<'_>) {
    sink.details(facts.known());
    if facts.name_a_stop_string() {
        sink.stopped_by_string();
    }
}

fn finish(reason: Str<'_>, sink: &mut DeltaSink<'_>) {
    let raw = reason.unescaped();
    sink.finish_word(&FACTS.finish_reasons, &raw);
}

impl State {
    /// Apply an event and the members that no rule knows.  An answer may end with it, so that these are first.
    #[cold]
    fn beside(&mut self, beside: &(Event<'_>, Unread<'_>), sink: &mut DeltaSink<'_>) {
        let (event, unread) = beside;
        unread.send(sink);
        self.apply(event, sink);
    }

    fn message(&mut self, message: Message<'_>, whole: bool, sink: &mut DeltaSink<'_>) {
        let Message { id, model, content, stop_reason, usage, transformations, facts } = message;
        let new_id = id.map(|id| id.text());
        if self.seen_message {
            if self.message_id == new_id {
                return;
            }
            sink.warn("spliced_message", "another message began inside the stream", None);
            while let Some(index) = self.blocks.first_index() {
                self.close_block(index, CallEnd::Abandoned, sink);
            }
            sink.restart();
            if let Some(model) = model {
                sink.model_changed(model);
            }
        }
        self.seen_message = true;
        self.message_id = new_id;
        sink.identity(model, id);
        note(facts, sink);
        warn_of_transformations(transformations, sink);
        sink.merge_usage(usage, &FACTS.usage);
        if let Some(content) = content {
            let mut last: Option<Block> = None;
            // `read` validated the JSON, so that an error here only means a value that is not a list.
            let _ = Reader::trusted(content).maybe_array(|reader| {
                if let Some(mut block) = last.take() {
                    Self::end_block(&mut block, CallEnd::Provider, sink);
                }
                last = Self::open_block(reader.raw()?, sink);
                Ok(())
            });
            if let Some(mut block) = last {
                // In a whole body, only the stop reason tells whether the last block was cut.
                let how = match stop_reason.filter(|_| whole) {
                    Some(_) if facts.name_a_stop_string() => CallEnd::Finish(FinishReason::Length),
                    Some(reason) => {
                        let ending = sink.ending(&FACTS.finish_reasons, &reason.text());
                        CallEnd::Finish(ending.reason())
                    }
                    None => CallEnd::Provider,
                };
                Self::end_block(&mut block, how, sink);
            }
        }
        if let Some(reason) = stop_reason {
            finish(reason, sink);
        }
    }

    /// Open a block.  Returns `None` if the block is complete already, is not an object, or exceeds the limit on state.
    fn open_block(json: &str, sink: &mut DeltaSink<'_>) -> Option<Block> {
        let mut kind = None;
        let mut text = None;
        let mut thinking = None;
        let mut signature = None;
        let mut data = None;
        let mut id = None;
        let mut name = None;
        let mut input = None;
        let mut citations = None;
        let mut to_model = None;
        let mut caller = None;
        let mut toolset_name = None;
        let mut unread = Unread::default();
        let read = Reader::trusted(json).object(|reader, key| {
            match key {
                "type" => kind = reader.filled_string()?,
                "text" => text = reader.filled_string()?,
                "thinking" => thinking = reader.filled_string()?,
                "signature" => signature = reader.filled_string()?,
                "data" => data = reader.filled_string()?,
                "id" => id = reader.scalar()?,
                "name" => name = reader.filled_string()?,
                "input" => input = reader.opt_raw()?,
                "citations" => citations = reader.opt_raw()?,
                // A direct call by the model is the default.  Another caller, a running program, must go back with the call.
                "caller" => caller = reader.opt_raw()?.filter(|raw| !raw.contains("\"direct\"")),
                // The toolset of a tool that the API defines: computer, browser.
                "toolset_name" => toolset_name = reader.opt_raw()?,
                "to" => reader.maybe_object(|reader, key| {
                    match key {
                        "model" => to_model = reader.filled_string()?,
                        _ => reader.skip()?,
                    }
                    Ok(())
                })?,
                _ if kind.is_some_and(is_kept_whole) => reader.skip()?,
                key => unread.dropped(reader, key)?,
            }
            Ok(())
        });
        read.ok()?;
        if !kind.is_some_and(is_kept_whole) {
            unread.send(sink);
        }
        let kind = kind.map_or("", |kind| kind.raw);
        match kind {
            "text" => {
                let part = sink.open_block(PartKind::Text);
                sink.text(part, text.unwrap_or(Str::plain("")));
                if let Some(citations) = citations.filter(|list| !is_empty_container(list)) {
                    sink.annotate(part, citations);
                }
                Some(Block::Text(part))
            }
            "thinking" => {
                let part = sink.open_block(PartKind::Thinking);
                sink.text(part, thinking.unwrap_or(Str::plain("")));
                if let Some(signature) = signature {
                    sign(part, signature, sink);
                }
                Some(Block::Thinking(part))
            }
            "redacted_thinking" => {
                sink.redacted(json);
                None
            }
            "tool_use" => {
                let call = sink.open_call(InputFormat::Json);
                let origin = [("caller", caller), ("toolset_name", toolset_name)];
                if origin.iter().any(|(_, json)| json.is_some()) {
                    let state = json::object(|state| {
                        for (name, json) in origin {
                            if let Some(json) = json {
                                state.json(name, json);
                            }
                        }
                    });
                    sink.call_state(call, &state);
                }
                sink.name_call(call, id, name);
                let input = input
                    .filter(|input| !is_empty_container(input))
                    .filter(|input| sink.take_state_bytes(input.len()))
                    .map(str::to_owned);
                Some(Block::ToolUse { call, input })
            }
            other => {
                if let Some(model) = to_model {
                    sink.model_changed(model);
                }
                sink.take_state_bytes(json.len()).then(|| Block::Provider {
                    start: json.to_owned(),
                    input: String::new(),
                    carry: Carry::default(),
                    set: Vec::new(),
                    held: json.len(),
                    hands_over: other == "fallback",
                })
            }
        }
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as above")]
    fn block_delta(&mut self, index: Option<i64>, delta: BlockDelta<'_>, sink: &mut DeltaSink<'_>) {
        let index = index.unwrap_or(self.last_index);
        match (self.blocks.get_mut(index), delta) {
            (Some(Block::Text(part)), BlockDelta::Text(text))
            | (Some(Block::Thinking(part)), BlockDelta::Thinking(text)) => sink.text(*part, text),
            (Some(Block::ToolUse { call, input }), BlockDelta::InputJson(text)) => {
                if !text.is_empty() {
                    *input = None;
                }
                sink.call_args(*call, text);
            }
            _ => self.rare_delta(index, delta, sink),
        }
    }

    fn rare_delta(&mut self, index: i64, delta: BlockDelta<'_>, sink: &mut DeltaSink<'_>) {
        match (self.blocks.get_mut(index), delta) {
            (Some(Block::Thinking(part)), BlockDelta::Signature(text)) => {
                if !text.is_empty() {
                    sign(*part, text, sink);
                }
            }
            (Some(Block::Text(part)), BlockDelta::Citation(citation)) => {
                sink.annotate(*part, &format!("[{citation}]"));
            }
            (Some(Block::Provider { input, carry, held, .. }), BlockDelta::InputJson(text)) => {
                if sink.take_state_bytes(text.raw.len()) {
                    *held += text.raw.len();
                    text.decode_into(input, carry);
                }
            }
            (Some(Block::Provider { set, held, .. }), BlockDelta::Other(_, raw)) => {
                if sink.take_state_bytes(raw.len()) {
                    *held += raw.len();
                    let members = json::members(raw).into_iter().filter(|(key, _)| key != "type");
                    set.extend(members.map(|(key, value)| (key.into_owned(), value.to_owned())));
                }
            }
            // Blocks of new kinds have the deltas of the old ones, as that of a connector's signed text has.
            (
                Some(Block::Provider { start, set, held, .. }),
                BlockDelta::Text(text) | BlockDelta::Thinking(text) | BlockDelta::Signature(text),
            ) => {
                let member = match delta {
                    BlockDelta::Thinking(_) => "thinking",
                    BlockDelta::Signature(_) => "signature",
                    _ => "text",
                };
                if sink.take_state_bytes(text.raw.len()) {
                    *held += text.raw.len();
                    append_member(start, set, member, text.raw);
                }
            }
            (_, BlockDelta::Other(kind, _)) => {
                sink.warn_unknown("delta", kind);
            }
            // The block was never opened, or is of another type: open one that fits the delta.
            (known, delta) => {
                if known.is_some() {
                    self.close_block(index, CallEnd::Finish(FinishReason::Other), sink);
                }
                self.last_index = index;
                self.block_of(index, delta, sink);
            }
        }
    }

    fn block_of(&mut self, index: i64, delta: BlockDelta<'_>, sink: &mut DeltaSink<'_>) {
        sink.warn("stray_delta", "a delta came for a content block that was not open", None);
        self.args_went_astray |= matches!(delta, BlockDelta::InputJson(_));
        let block = match &delta {
            BlockDelta::Thinking(_) | BlockDelta::Signature(_) => {
                Block::Thinking(sink.open_block(PartKind::Thinking))
            }
            // Arguments without a known tool call: kept as a provider part, which cannot be run as a call.
            BlockDelta::InputJson(_) => Block::Provider {
                start: "{\"type\":\"tool_use\"}".to_owned(),
                input: String::new(),
                carry: Carry::default(),
                set: Vec::new(),
                held: 0,
                hands_over: false,
            },
            _ => Block::Text(sink.open_block(PartKind::Text)),
        };
        self.blocks.insert(index, block);
        self.block_delta(Some(index), delta, sink);
    }

    fn close_block(&mut self, index: i64, how: CallEnd, sink: &mut DeltaSink<'_>) {
        if let Some(mut block) = self.blocks.remove(index) {
            // Arguments that came under another index may be those of this call.
            let is_astray = self.args_went_astray
                && matches!(&block, Block::ToolUse { call, .. } if sink.has_no_args(*call));
            let how = if is_astray { CallEnd::Abandoned } else { how };
            Self::end_block(&mut block, how, sink);
        }
    }

    fn end_block(block: &mut Block, how: CallEnd, sink: &mut DeltaSink<'_>) {
        match block {
            Block::Text(part) | Block::Thinking(part) => sink.end_part(*part),
            Block::ToolUse { call, input } => {
                if let Some(input) = input.take() {
                    sink.call_args(*call, Str::plain(&input));
                    let how = match how {
                        CallEnd::Cut if sink.finished_whole() => CallEnd::Provider,
                        // The deltas that would have replaced this input may be missing.
                        CallEnd::Cut => CallEnd::Abandoned,
                        _ => how,
                    };
                    sink.end_call(*call, how);
                } else if how != CallEnd::Cut {
                    sink.end_call(*call, how);
                }
            }
            Block::Provider { start, input, carry, set, held, hands_over } => {
                carry.flush(input);
                sink.give_back_state_bytes(*held);
                let depth = sink.options().limits.depth;
                sink.provider_part(&provider_block(start, input, set, depth));
                if *hands_over {
                    sink.hand_over();
                }
            }
        }
    }
}

/// Return whether the message keeps the object of a block.
fn is_kept_whole(kind: Str<'_>) -> bool {
    !matches!(kind.raw, "text" | "thinking" | "tool_use")
}

fn sign(part: PartHandle, signature: Str<'_>, sink: &mut DeltaSink<'_>) {
    sink.part_state(part, &json::object(|state| state.wire_text("signature", signature)));
}

/// Warn of changes that the API made of the request: thinking that it dropped, or that it would have dropped.
fn warn_of_transformations(list: Option<&str>, sink: &mut DeltaSink<'_>) {
    let Some(list) = list else { return };
    sink.unknown_detail("input_transformations", list);
    let mut changes = Vec::new();
    // `read` validated the JSON, so that an error here only means a value that is not a list of objects.
    let _ = Reader::trusted(list).maybe_array(|reader| {
        let (mut kind, mut path, mut reason) = (None, None, None);
        reader.maybe_object(|reader, key| {
            match key {
                "type" => kind = reader.filled_string()?,
                "path" => path = reader.filled_string()?,
                "reason" => reason = reader.filled_string()?,
                _ => reader.skip()?,
            }
            Ok(())
        })?;
        let words: Vec<_> =
            [kind, path, reason].into_iter().flatten().map(|word| word.text()).collect();
        changes.extend((!words.is_empty()).then(|| words.join(" ")));
        Ok(())
    });
    if !changes.is_empty() {
        let message = format!("the provider changed the request: {}", changes.join(", "));
        sink.warn("input_transformed", &message, None);
    }
}
