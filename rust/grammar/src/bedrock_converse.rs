//! Grammar of a Bedrock ConverseStream (docs/protocols/encoding.md#bedrock-converse).
//!
//! In: frames of an AWS event stream.  Out: the first broken rule.
//!
//! Laws: `messageStart`, serial blocks under dense indexes, `messageStop`, `metadata`, each once.  A tool use has a start;
//! other blocks may open with their first delta.  Nothing follows an exception.  A frame with an unknown event type is a
//! keep-alive.

use super::event::Event;
use super::kept::Ids;
use super::tree::{Node, Rule, Value};

const STOP_REASONS: [&str; 9] = [
    "end_turn",
    "tool_use",
    "max_tokens",
    "stop_sequence",
    "guardrail_intervened",
    "content_filtered",
    "malformed_model_output",
    "malformed_tool_use",
    "model_context_window_exceeded",
];
const EXCEPTIONS: [&str; 5] = [
    "internalServerException",
    "modelStreamErrorException",
    "validationException",
    "throttlingException",
    "serviceUnavailableException",
];
const EVENTS: [&str; 6] = [
    "messageStart",
    "contentBlockStart",
    "contentBlockDelta",
    "contentBlockStop",
    "messageStop",
    "metadata",
];

/// Checker of one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct BedrockConverse {
    state: State,
    blocks: u64,
    block: Option<Block>,
    ids: Ids,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Before `messageStart`.
    #[default]
    Begin,
    /// Among the blocks.
    Open,
    /// After `messageStop`.
    Stopped,
    /// After `metadata` or an exception.
    Ended,
}

/// The open block.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Block {
    kind: String,
    signed: bool,
}

impl BedrockConverse {
    /// Check the next event.
    pub(super) fn read(&mut self, event: Event<'_>) -> Rule {
        if self.state == State::Ended {
            return Err("nothing may follow `metadata` or an exception".to_owned());
        }
        let (kind, data) = match event {
            Event::Exception { name, data } => {
                self.state = State::Ended;
                return exception(name, data);
            }
            Event::Data { name, data } => (name.unwrap_or_default(), data),
            Event::Comment => return Err("the target allows no comments".to_owned()),
        };
        let value = Value::parse(data)?;
        let event = Node::root(&value);
        event.as_object()?;
        if !EVENTS.contains(&kind) {
            return Ok(());
        }
        match (self.state, kind) {
            (State::Begin, "messageStart") => {
                self.state = State::Open;
                event.is("role", "assistant")
            }
            (State::Begin, _) => Err(format!("`messageStart` must come first (got {kind})")),
            (_, "messageStart") => Err("`messageStart` came twice".to_owned()),
            (State::Open, "contentBlockStart") => self.block_start(&event),
            (State::Open, "contentBlockDelta") => self.block_delta(&event),
            (State::Open, "contentBlockStop") => {
                if self.block.take().is_none() {
                    return Err("`contentBlockStop` without an open block".to_owned());
                }
                event.counts("contentBlockIndex", self.blocks)?;
                self.blocks += 1;
                Ok(())
            }
            (State::Open, "messageStop") => {
                if self.block.is_some() {
                    return Err(format!("block {} is open at `messageStop`", self.blocks));
                }
                self.state = State::Stopped;
                stop(&event, self.ids.is_empty())
            }
            (State::Stopped, "metadata") => {
                self.state = State::Ended;
                metadata(&event)
            }
            (State::Open, _) => Err("`messageStop` must come before `metadata`".to_owned()),
            (State::Stopped | State::Ended, _) => {
                Err(format!("only `metadata` may follow `messageStop` (got {kind})"))
            }
        }
    }

    /// Check the end of the body.
    pub(super) fn close(&self) -> Rule {
        if self.state == State::Ended {
            Ok(())
        } else {
            Err("the stream ends without `metadata` or an exception".to_owned())
        }
    }

    fn block_start(&mut self, event: &Node<'_>) -> Rule {
        if self.block.is_some() {
            return Err(format!("block {} is open: blocks are serial", self.blocks));
        }
        event.counts("contentBlockIndex", self.blocks)?;
        let start = event.object("start")?;
        let kind = union(&start)?;
        if kind == "toolUse" {
            tool_use(&start.object("toolUse")?, &mut self.ids)?;
        }
        self.block = Some(Block { kind: kind.to_owned(), signed: false });
        Ok(())
    }

    fn block_delta(&mut self, event: &Node<'_>) -> Rule {
        event.counts("contentBlockIndex", self.blocks)?;
        let delta = event.object("delta")?;
        let member = union(&delta)?;
        // Citations ride on a text block.
        let kind = if member == "citation" { "text" } else { member };
        if self.block.is_none() && member == "toolUse" {
            return Err("`delta.toolUse` without the `contentBlockStart` of its call".to_owned());
        }
        let block =
            self.block.get_or_insert_with(|| Block { kind: kind.to_owned(), signed: false });
        if block.kind != kind {
            return Err(format!("`delta.{member}` does not fit a block of `{}`", block.kind));
        }
        match member {
            "text" => drop(delta.text("text")?),
            "toolUse" => drop(delta.object("toolUse")?.text("input")?),
            "reasoningContent" => {
                let reasoning = delta.object("reasoningContent")?;
                let member = union(&reasoning)?;
                if block.signed {
                    return Err("nothing may follow the signature in its block".to_owned());
                }
                match member {
                    "text" => drop(reasoning.text("text")?),
                    "signature" => {
                        reasoning.filled("signature")?;
                        block.signed = true;
                    }
                    "redactedContent" => drop(reasoning.text("redactedContent")?),
                    _ => return Err(reasoning.wrong("text, signature or redactedContent")),
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// Party that runs a tool.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tool {
    OfClient,
    OfProvider,
}

/// Check the start of a tool use.  The ids of calls that the client runs are unique.
fn tool_use(call: &Node<'_>, ids: &mut Ids) -> Rule<Tool> {
    let id = call.filled("toolUseId")?;
    call.filled("name")?;
    if call.text_if("type")? == Some("server_tool_use") {
        return Ok(Tool::OfProvider);
    }
    ids.add("the toolUseId", id)?;
    Ok(Tool::OfClient)
}

/// Return the one member of a union.
fn union<'a>(node: &Node<'a>) -> Rule<&'a str> {
    match node.as_object()? {
        [(member, _)] => Ok(member),
        _ => Err(node.wrong("an object with one member")),
    }
}

fn stop(event: &Node<'_>, no_calls: bool) -> Rule {
    let reason = event.one_of("stopReason", &STOP_REASONS)?;
    if reason == "tool_use" && no_calls {
        return Err("`stopReason` is tool_use, but no call was written".to_owned());
    }
    Ok(())
}

/// Check usage, which excludes the cache from the input and includes it in the total, and the metrics.
fn metadata(event: &Node<'_>) -> Rule {
    let usage = event.object("usage")?;
    let mut total = usage.count("inputTokens")?.saturating_add(usage.count("outputTokens")?);
    for key in ["cacheReadInputTokens", "cacheWriteInputTokens"] {
        total = total.saturating_add(usage.count_if(key)?.unwrap_or(0));
    }
    usage.counts("totalTokens", total)?;
    event.object("metrics")?.count("latencyMs")?;
    Ok(())
}

fn exception(name: &str, data: &str) -> Rule {
    if !EXCEPTIONS.contains(&name) {
        return Err(format!(
            "`:exception-type` must be one of {} (got {name:?})",
            EXCEPTIONS.join(", ")
        ));
    }
    Node::root(&Value::parse(data)?).text("message")?;
    Ok(())
}

/// Check a whole body.
pub(super) fn body(status: u16, body: &str) -> Rule {
    let value = Value::parse(body)?;
    let body = Node::root(&value);
    if status >= 400 {
        body.text("message")?;
        return Ok(());
    }
    let message = body.object("output")?.object("message")?;
    message.is("role", "assistant")?;
    let mut ids = Ids::default();
    for block in message.list("content")? {
        match union(&block)? {
            "text" => drop(block.text("text")?),
            "toolUse" => {
                let call = block.object("toolUse")?;
                if tool_use(&call, &mut ids)? == Tool::OfClient {
                    call.object("input")?;
                }
            }
            "reasoningContent" => {
                let reasoning = block.object("reasoningContent")?;
                if union(&reasoning)? == "reasoningText" {
                    reasoning.object("reasoningText")?.text("text")?;
                }
            }
            _ => {}
        }
    }
    stop(&body, ids.is_empty())?;
    metadata(&body)
}
