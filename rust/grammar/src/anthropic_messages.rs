//! Grammar of an Anthropic Messages stream (docs/protocols/encoding.md#anthropic-messages).
//!
//! In: events of server-sent events, named by their `type`.  Out: the first broken rule.
//!
//! Laws: blocks come one after another under dense indexes, each with one start and one stop, and a delta fits its block.
//! `message_delta` and `message_stop` come once.  Nothing follows an error, which may leave a block open.

use super::event::Event;
use super::kept::Ids;
use super::tree::{Node, Rule, Value};

const STOP_REASONS: [&str; 8] = [
    "end_turn",
    "max_tokens",
    "stop_sequence",
    "tool_use",
    "pause_turn",
    "refusal",
    "model_context_window_exceeded",
    "compaction",
];
const ERROR_TYPES: [&str; 11] = [
    "authentication_error",
    "permission_error",
    "not_found_error",
    "invalid_request_error",
    "rate_limit_error",
    "billing_error",
    "overloaded_error",
    "api_error",
    "timeout_error",
    "conflict_error",
    "request_too_large",
];
/// Counts of a usage record that are not required.
const COUNTS: [&str; 4] =
    ["input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"];

/// Checker of one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct AnthropicMessages {
    state: State,
    blocks: u64,
    block: Option<Block>,
    ids: Ids,
    calls: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Before `message_start`.
    #[default]
    Begin,
    /// Among the blocks.
    Open,
    /// After `message_delta`.
    Finished,
    /// After `message_stop` or an error.
    Ended,
}

/// The open block.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Block {
    kind: String,
    deltas: u64,
    signed: bool,
}

impl Block {
    /// Return the types of the deltas that the block takes; `None` for any type.
    fn deltas(&self) -> Option<&'static [&'static str]> {
        Some(match self.kind.as_str() {
            "text" => &["text_delta", "citations_delta"],
            "thinking" => &["thinking_delta", "signature_delta"],
            "tool_use" | "server_tool_use" | "mcp_tool_use" => &["input_json_delta"],
            "compaction" => &["compaction_delta"],
            "redacted_thinking" => &[],
            _ => return None,
        })
    }
}

impl AnthropicMessages {
    /// Check the next event.
    pub(super) fn read(&mut self, event: Event<'_>) -> Rule {
        if self.state == State::Ended {
            return Err("nothing may follow `message_stop` or an error".to_owned());
        }
        let Event::Data { name, data } = event else {
            return Err("the target allows no comments: `ping` is its keep-alive".to_owned());
        };
        let value = Value::parse(data)?;
        let event = Node::root(&value);
        let kind = event.filled("type")?;
        if name != Some(kind) {
            return Err(format!("`event:` must be {kind:?}, as `type` (got {name:?})"));
        }
        match (self.state, kind) {
            (_, "error") => {
                self.state = State::Ended;
                error(&event)
            }
            (State::Begin, "message_start") => {
                self.state = State::Open;
                start(&event.object("message")?)
            }
            (State::Begin, _) => Err(format!("`message_start` must come first (got {kind})")),
            (_, "ping") => Ok(()),
            (State::Open, "content_block_start") => self.block_start(&event),
            (State::Open, "content_block_delta") => self.block_delta(&event),
            (State::Open, "content_block_stop") => self.block_stop(&event),
            (State::Open, "message_delta") => self.message_delta(&event),
            (State::Finished, "message_stop") => {
                self.state = State::Ended;
                Ok(())
            }
            (State::Open, "message_stop") => {
                Err("`message_delta` must come before `message_stop`".to_owned())
            }
            (_, "message_start") => Err("`message_start` came twice".to_owned()),
            (State::Finished, _) => {
                Err(format!("only `message_stop` may follow `message_delta` (got {kind})"))
            }
            _ => Err(format!("`{kind}` is not an event of the target")),
        }
    }

    /// Check the end of the body.
    pub(super) fn close(&self) -> Rule {
        if self.state == State::Ended {
            Ok(())
        } else {
            Err("the stream ends without `message_stop` or an error".to_owned())
        }
    }

    fn block_start(&mut self, event: &Node<'_>) -> Rule {
        if self.block.is_some() {
            return Err(format!("block {} is open: blocks are serial", self.blocks));
        }
        event.counts("index", self.blocks)?;
        let block = event.object("content_block")?;
        let kind = block.filled("type")?;
        match kind {
            "text" => block.is("text", "")?,
            "thinking" => {
                block.is("thinking", "")?;
                block.is("signature", "")?;
            }
            "redacted_thinking" => {
                block.text("data")?;
            }
            "tool_use" => {
                self.ids.add("the id of the call", block.filled("id")?)?;
                block.filled("name")?;
                block.empty_object("input")?;
                self.calls += 1;
            }
            _ => {}
        }
        self.block = Some(Block { kind: kind.to_owned(), deltas: 0, signed: false });
        Ok(())
    }

    fn block_delta(&mut self, event: &Node<'_>) -> Rule {
        let Some(block) = &mut self.block else {
            return Err("`content_block_delta` without an open block".to_owned());
        };
        event.counts("index", self.blocks)?;
        let delta = event.object("delta")?;
        let kind = delta.filled("type")?;
        if block.deltas().is_some_and(|kinds| !kinds.contains(&kind)) {
            return Err(format!("`{kind}` does not fit a block of type `{}`", block.kind));
        }
        block.deltas += 1;
        match kind {
            "text_delta" => drop(delta.text("text")?),
            "citations_delta" => drop(delta.object("citation")?),
            "input_json_delta" => drop(delta.text("partial_json")?),
            "thinking_delta" => {
                // A keep-alive is an empty delta and may come at any time.
                let is_empty = delta.text("thinking")?.is_empty();
                if block.signed && !is_empty {
                    return Err("thinking after the signature of its block".to_owned());
                }
            }
            "signature_delta" => {
                delta.filled("signature")?;
                if block.signed {
                    return Err("a block has one `signature_delta`: the last one wins".to_owned());
                }
                block.signed = true;
            }
            _ => {}
        }
        Ok(())
    }

    fn block_stop(&mut self, event: &Node<'_>) -> Rule {
        let Some(block) = self.block.take() else {
            return Err("`content_block_stop` without an open block".to_owned());
        };
        event.counts("index", self.blocks)?;
        if block.kind == "tool_use" && block.deltas == 0 {
            return Err("a `tool_use` block has at least one `input_json_delta`".to_owned());
        }
        self.blocks += 1;
        Ok(())
    }

    fn message_delta(&mut self, event: &Node<'_>) -> Rule {
        if self.block.is_some() {
            return Err(format!("block {} is open at `message_delta`", self.blocks));
        }
        stop(&event.object("delta")?, self.calls)?;
        let usage = event.object("usage")?;
        usage.count("output_tokens")?;
        counts(&usage)?;
        self.state = State::Finished;
        Ok(())
    }
}

fn start(message: &Node<'_>) -> Rule {
    head(message)?;
    message.empty_list("content")?;
    message.null("stop_reason")?;
    message.null("stop_sequence")?;
    let usage = message.object("usage")?;
    usage.count("input_tokens")?;
    usage.count("output_tokens")?;
    counts(&usage)
}

fn head(message: &Node<'_>) -> Rule {
    message.filled("id")?;
    message.is("type", "message")?;
    message.is("role", "assistant")?;
    message.text("model")?;
    Ok(())
}

/// Check the stop reason and what goes with it.
fn stop(delta: &Node<'_>, calls: u64) -> Rule {
    let reason = delta.one_of("stop_reason", &STOP_REASONS)?;
    if reason == "stop_sequence" {
        delta.text_or_null("stop_sequence")?;
    } else {
        delta.null("stop_sequence")?;
    }
    if reason == "tool_use" && calls == 0 {
        return Err("`stop_reason` is tool_use, but no call was written".to_owned());
    }
    match delta.maybe("stop_details").filter(|details| !details.is_null()) {
        Some(details) if reason != "refusal" => Err(details.wrong("absent without a refusal")),
        Some(details) => details.as_object().map(drop),
        None => Ok(()),
    }
}

fn counts(usage: &Node<'_>) -> Rule {
    for key in COUNTS {
        usage.count_if(key)?;
    }
    if let Some(details) = usage.object_if("output_tokens_details")? {
        details.within("thinking_tokens", usage.count("output_tokens")?)?;
    }
    Ok(())
}

fn error(event: &Node<'_>) -> Rule {
    event.is("type", "error")?;
    let error = event.object("error")?;
    error.one_of("type", &ERROR_TYPES)?;
    error.text("message")?;
    Ok(())
}

/// Check a whole body.
pub(super) fn body(status: u16, body: &str) -> Rule {
    let value = Value::parse(body)?;
    let body = Node::root(&value);
    if status >= 400 {
        body.text_or_null("request_id")?;
        return error(&body);
    }
    head(&body)?;
    let mut ids = Ids::default();
    let mut calls = 0;
    for block in body.list("content")? {
        match block.filled("type")? {
            "text" => drop(block.text("text")?),
            "thinking" => {
                block.text("thinking")?;
                block.text("signature")?;
            }
            "redacted_thinking" => drop(block.text("data")?),
            "tool_use" => {
                ids.add("the id of the call", block.filled("id")?)?;
                block.filled("name")?;
                block.object("input")?;
                calls += 1;
            }
            _ => {}
        }
    }
    stop(&body, calls)?;
    let usage = body.object("usage")?;
    usage.count("input_tokens")?;
    usage.count("output_tokens")?;
    counts(&usage)
}
