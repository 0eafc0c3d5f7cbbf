//! Grammar of langchain-core's content-block events (docs/protocols/encoding.md#langchain), one JSON object a line.
//!
//! In: lines.  Out: the first broken rule.
//!
//! Laws: blocks are keyed by dense indexes, and each is finished once with its whole content, in the order of the indexes.
//! `error` may stand for the rest at any point; an adapter raises it.  Optional members are never null.

use std::collections::VecDeque;

use super::event::Event;
use super::kept::{Ids, Room, Written};
use super::tree::{Node, Rule, Value};

/// Checker of one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Langchain {
    state: State,
    /// The blocks from the first unfinished one on.
    blocks: VecDeque<Block>,
    finished: u64,
    ids: Ids,
    room: Room,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Before `message-start`.
    #[default]
    Begin,
    /// Among the blocks.
    Open,
    /// After `message-finish` or `error`.
    Ended,
}

/// A block that is not finished.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Block {
    kind: String,
    id: String,
    name: String,
    written: Written,
}

/// Return the type of the deltas of a block, and the member that grows with them.
fn growth(kind: &str) -> Option<(&'static str, &'static str)> {
    match kind {
        "text" => Some(("text-delta", "text")),
        "reasoning" => Some(("reasoning-delta", "reasoning")),
        "tool_call_chunk" => Some(("tool-call-delta", "args")),
        _ => None,
    }
}

impl Langchain {
    /// Check the next event.
    pub(super) fn read(&mut self, event: Event<'_>) -> Rule {
        let data = event.bare()?;
        if self.state == State::Ended {
            return Err("nothing may follow the end".to_owned());
        }
        let value = Value::parse(data)?;
        let event = Node::root(&value);
        let kind = event.filled("event")?;
        event.no_nulls(&[])?;
        match (self.state, kind) {
            (State::Begin, "message-start") => {
                self.state = State::Open;
                event.is("role", "ai")?;
                event.text_if("id")?;
                let metadata = event.object("metadata")?;
                metadata.no_nulls(&[])?;
                metadata.text("provider")?;
                metadata.text("model").map(drop)
            }
            (State::Begin, _) => Err(format!("`message-start` must come first (got {kind})")),
            (_, "message-start") => Err("`message-start` came twice".to_owned()),
            (_, "content-block-start") => self.start(&event),
            (_, "content-block-delta") => self.delta(&event),
            (_, "content-block-finish") => self.finish(&event),
            (_, "message-finish") => self.end(&event),
            (_, "error") => {
                self.state = State::Ended;
                event.filled("message").map(drop)
            }
            _ => Err(format!("`{kind}` is not an event of the target")),
        }
    }

    /// Check the end of the events.
    pub(super) fn close(&self) -> Rule {
        if self.state == State::Ended {
            Ok(())
        } else {
            Err("the stream ends without `message-finish` or `error`".to_owned())
        }
    }

    fn start(&mut self, event: &Node<'_>) -> Rule {
        event.counts("index", self.finished.saturating_add(self.blocks.len() as u64))?;
        let content = event.object("content")?;
        content.no_nulls(&["value"])?;
        let kind = content.filled("type")?;
        if matches!(kind, "tool_call" | "invalid_tool_call") {
            return Err(format!("a call starts as `tool_call_chunk` (got {kind})"));
        }
        if let Some((_, member)) = growth(kind) {
            content.is(member, "")?;
        }
        let (mut id, mut name) = ("", "");
        if kind == "tool_call_chunk" {
            (id, name) = (content.filled("id")?, content.filled("name")?);
            self.ids.add("the id of the call", id)?;
        }
        self.room.take(size_of::<Block>().saturating_add(kind.len() + name.len()))?;
        self.blocks.push_back(Block {
            kind: kind.to_owned(),
            id: id.to_owned(),
            name: name.to_owned(),
            written: Written::default(),
        });
        Ok(())
    }

    fn delta(&mut self, event: &Node<'_>) -> Rule {
        let index = event.at("index")?;
        let Some(at) = index.as_count()?.checked_sub(self.finished) else {
            return Err(index.wrong("a block that is not finished"));
        };
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        let Some(block) = self.blocks.get_mut(at) else {
            return Err(index.wrong("a block that was started"));
        };
        let delta = event.object("delta")?;
        delta.no_nulls(&[])?;
        let kind = delta.filled("type")?;
        match growth(&block.kind) {
            Some((wanted, member)) if kind == wanted => block.written.push(delta.filled(member)?),
            _ => Err(format!("`{kind}` does not fit a block of type `{}`", block.kind)),
        }
    }

    fn finish(&mut self, event: &Node<'_>) -> Rule {
        let Some(block) = self.blocks.pop_front() else {
            return Err("`content-block-finish` without an open block".to_owned());
        };
        event
            .counts("index", self.finished)
            .map_err(|rule| format!("{rule}: blocks are finished in the order of their indexes"))?;
        self.finished += 1;
        let content = event.object("content")?;
        content.no_nulls(&["value"])?;
        if let Some(extras) = content.maybe("extras") {
            extras.as_object()?;
        }
        if let Some(annotations) = content.maybe("annotations") {
            annotations.as_list()?;
        }
        if block.kind == "tool_call_chunk" {
            let kind = content.one_of("type", &["tool_call", "invalid_tool_call"])?;
            content.is("id", &block.id)?;
            content.is("name", &block.name)?;
            if kind == "tool_call" {
                return content.object("args").map(drop);
            }
            content.text("error")?;
            return content.repeats("args", block.written.text());
        }
        content.is("type", &block.kind)?;
        match block.kind.as_str() {
            "non_standard" => content.at("value").map(drop),
            "image" => content.filled("mime_type").map(drop),
            kind => match growth(kind) {
                Some((_, member)) => content.repeats(member, block.written.text()),
                None => Ok(()),
            },
        }
    }

    fn end(&mut self, event: &Node<'_>) -> Rule {
        if !self.blocks.is_empty() {
            return Err(format!("block {} is open at `message-finish`", self.finished));
        }
        self.state = State::Ended;
        if let Some(usage) = event.object_if("usage")? {
            counts(&usage)?;
        }
        let metadata = event.object("metadata")?;
        metadata.no_nulls(&[])?;
        metadata.filled("finish_reason").map(drop)
    }
}

/// Check the usage record: all three counts, or validation fails.
fn counts(usage: &Node<'_>) -> Rule {
    usage.no_nulls(&[])?;
    let (input, output) = (usage.count("input_tokens")?, usage.count("output_tokens")?);
    usage.counts("total_tokens", input.saturating_add(output))?;
    if let Some(details) = usage.object_if("input_token_details")? {
        details.no_nulls(&[])?;
        details.within("cache_read", input)?;
        details.within("cache_creation", input)?;
    }
    if let Some(details) = usage.object_if("output_token_details")? {
        details.no_nulls(&[])?;
        details.within("reasoning", output)?;
    }
    Ok(())
}
