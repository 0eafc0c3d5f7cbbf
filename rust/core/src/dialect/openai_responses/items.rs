//! Conversion of one output item to deltas.
//!
//! Laws:
//! - Each content of a message is a part of its own, in order.
//! - A reasoning item is one thinking part.  The parts of its summary are paragraphs of it.
//! - An item that the caller runs by name is a tool call.
//! - Every other item becomes one provider part when it is done.  If the stream ends before, the part holds the content
//!   that arrived.

use std::collections::BTreeMap;

use super::read::Content;
use crate::contract::{FinishReason, InputFormat, Output};
use crate::emit::{CallEnd, CallHandle, PartHandle, PartKind};
use crate::json::{self, Kind, Reader, Result, Str};
use crate::sink::DeltaSink;

/// Bytes that count for an item beside its text.
const ITEM_BYTES: usize = 256;

/// An item of the output.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Item {
    Message {
        contents: BTreeMap<(i64, bool), PartHandle>,
        /// The content that received text last.
        last: Option<((i64, bool), PartHandle)>,
    },
    Reasoning {
        part: Option<PartHandle>,
        /// The first source of text: the summary or the reasoning itself.  The other one stays in the provider state.
        source: Option<Content>,
        paragraph: i64,
    },
    Call(CallHandle),
    Provider {
        begun: String,
        /// A member whose text arrives in deltas.
        member: Option<(&'static str, String)>,
        held: usize,
    },
    /// The item was emitted completely.
    Done,
}

/// The members of an item that the decoder interprets.
#[derive(Default)]
pub(super) struct ItemMembers<'a> {
    pub(super) kind: Option<Str<'a>>,
    pub(super) id: Option<Str<'a>>,
    pub(super) call_id: Option<Str<'a>>,
    name: Option<Str<'a>>,
    arguments: Option<Str<'a>>,
    content: Option<&'a str>,
    summary: Option<&'a str>,
    execution: Option<Str<'a>>,
    environment: Option<Str<'a>>,
    status: Option<Str<'a>>,
}

/// The party that acts on an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Actor {
    Provider,
    /// The caller; the item is an action to run.
    Caller,
    /// The caller; the item is a request for approval.
    Approver,
}

impl<'a> ItemMembers<'a> {
    /// Read an item that `read` validated.
    pub(super) fn read(item: &'a str) -> Result<Self> {
        let mut found = Self::default();
        Reader::trusted(item).maybe_object(|reader, key| {
            match key {
                "type" => found.kind = reader.filled_string()?,
                "id" => found.id = reader.id()?,
                "call_id" => found.call_id = reader.id()?,
                "name" => found.name = reader.filled_string()?,
                "arguments" | "input" => found.arguments = reader.text_or_json()?,
                "content" => found.content = reader.opt_raw()?,
                "summary" => found.summary = reader.opt_raw()?,
                "execution" => found.execution = reader.opt_string()?,
                "status" => found.status = reader.opt_string()?,
                "environment" => reader.maybe_object(|reader, key| {
                    match key {
                        "type" => found.environment = reader.opt_string()?,
                        _ => reader.skip()?,
                    }
                    Ok(())
                })?,
                _ => reader.skip()?,
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// Return the party that acts on an item that is not a function call, by the documentation's table of item types.
    pub(super) fn actor(&self) -> Actor {
        match self.kind.map_or("", |kind| kind.raw) {
            "local_shell_call" | "apply_patch_call" | "computer_call" => Actor::Caller,
            "shell_call"
                if self.environment.is_none_or(|environment| environment.raw == "local") =>
            {
                Actor::Caller
            }
            "tool_search_call"
                if self.execution.is_some_and(|execution| execution.raw == "client") =>
            {
                Actor::Caller
            }
            "mcp_approval_request" => Actor::Approver,
            _ => Actor::Provider,
        }
    }

    /// Return the end of a call's item.  `status: "incomplete"` means that the call is not complete.
    fn call_end(&self) -> CallEnd {
        match self.status {
            Some(status) if status.raw == "incomplete" => CallEnd::Finish(FinishReason::Other),
            _ => CallEnd::Provider,
        }
    }

    /// Return whether the provider ran a custom tool itself (xAI): the id shows it, or the request did not declare the tool.
    pub(super) fn is_provider_run(&self, declared: Option<&[String]>) -> bool {
        self.call_id.is_some_and(|id| id.raw.starts_with("xs_call_"))
            || declared
                .zip(self.name)
                .is_some_and(|(known, name)| !known.iter().any(|known| name.is(known)))
    }
}

impl Item {
    /// Open an item.
    pub(super) fn open<O: Output>(
        members: &ItemMembers<'_>,
        item: &str,
        declared: Option<&[String]>,
        sink: &mut DeltaSink<'_, O>,
    ) -> Self {
        let call = |format, sink: &mut DeltaSink<'_, O>| {
            let call = sink.open_call(format);
            sink.name_call(call, members.call_id.or(members.id), members.name);
            Self::Call(call)
        };
        match members.kind.map_or("", |kind| kind.raw) {
            "message" => Self::message(),
            "reasoning" => Self::reasoning(),
            "function_call" => call(InputFormat::Json, sink),
            "custom_tool_call" if !members.is_provider_run(declared) => {
                call(InputFormat::Text, sink)
            }
            _ => {
                let held = item.len();
                let begun = if sink.take_state_bytes(held) { item } else { "{}" };
                Self::Provider { begun: begun.to_owned(), member: None, held }
            }
        }
    }

    /// Create the item for a delta that belongs to an item without an `added` event.
    pub(super) fn from_content<O: Output>(
        content: Content,
        sink: &mut DeltaSink<'_, O>,
    ) -> Option<Self> {
        match content {
            Content::Text | Content::Refusal | Content::Transcript => Some(Self::message()),
            Content::Summary | Content::Reasoning => Some(Self::reasoning()),
            Content::Arguments => Some(Self::Call(sink.open_call(InputFormat::Json))),
            Content::Input => Some(Self::Call(sink.open_call(InputFormat::Text))),
            Content::Audio | Content::Member(_) => None,
        }
    }

    fn message() -> Self {
        Self::Message { contents: BTreeMap::new(), last: None }
    }

    fn reasoning() -> Self {
        Self::Reasoning { part: None, source: None, paragraph: 0 }
    }

    /// Count an item against the limits.
    pub(super) fn count<O: Output>(id: Option<Str<'_>>, sink: &mut DeltaSink<'_, O>) -> bool {
        sink.take_state_bytes(ITEM_BYTES + id.map_or(0, |id| id.raw.len()))
    }

    /// Accept a delta of the item, or the whole of one of its texts.
    #[inline]
    pub(super) fn take<O: Output>(
        &mut self,
        content: Content,
        index: Option<i64>,
        text: Str<'_>,
        whole: bool,
        sink: &mut DeltaSink<'_, O>,
    ) {
        match (self, content) {
            (
                Self::Message { contents, last },
                Content::Text | Content::Refusal | Content::Transcript,
            ) => {
                let part = content_part(contents, last, index.unwrap_or(0), content, sink);
                say(part, text, whole, sink);
                if whole {
                    sink.end_part(part);
                }
            }
            (
                Self::Reasoning { part, source, paragraph },
                Content::Summary | Content::Reasoning,
            ) if source.is_none_or(|source| source == content) => {
                *source = Some(content);
                let index = index.unwrap_or(*paragraph);
                reason(part, paragraph, index, content, text, whole, sink);
            }
            (Self::Call(call), Content::Arguments | Content::Input) if whole => {
                sink.args_whole(*call, text);
            }
            (Self::Call(call), Content::Arguments | Content::Input) => sink.call_args(*call, text),
            (Self::Provider { member, held, .. }, Content::Member(_) | Content::Input)
                if !whole =>
            {
                let name = if let Content::Member(name) = content { name } else { "input" };
                if sink.take_state_bytes(text.raw.len()) {
                    *held += text.raw.len();
                    let (_, value) = member.get_or_insert_with(|| (name, String::new()));
                    value.push_str(text.raw);
                }
            }
            _ => {}
        }
    }

    /// Accept the whole item and finish it.
    pub(super) fn finish<O: Output>(
        &mut self,
        members: &ItemMembers<'_>,
        item: &str,
        sink: &mut DeltaSink<'_, O>,
    ) {
        match self {
            Self::Message { contents, last } => {
                // `read` validated the JSON, so that an error here only means a value that is not a list.
                let _ = finish_message(contents, last, members, sink);
                if let Some(part) = contents.first_key_value().map(|(_, part)| *part) {
                    sink.part_state(part, &without(item, &["content"]));
                }
                for part in contents.values() {
                    sink.end_part(*part);
                }
            }
            Self::Reasoning { part, source, paragraph } => {
                let lists =
                    [(Content::Summary, members.summary), (Content::Reasoning, members.content)];
                for (content, list) in lists {
                    if source.is_none_or(|source| source == content) {
                        let mut position = 0;
                        let _ = texts(list, |text, _, _| {
                            *source = Some(content);
                            reason(part, paragraph, position, content, text, true, sink);
                            position += 1;
                        });
                    }
                }
                let part = part.get_or_insert_with(|| sink.open_repeated_block(PartKind::Thinking));
                sink.part_state(*part, item);
                sink.end_part(*part);
            }
            Self::Call(call) => {
                // Must precede the name: the text that is buffered until the name arrives may be only half of the arguments.
                if let Some(arguments) = members.arguments {
                    sink.args_whole(*call, arguments);
                }
                sink.name_call(*call, members.call_id.or(members.id), members.name);
                let state = without(item, &["arguments", "input"]);
                sink.call_state(*call, &state);
                sink.end_call(*call, members.call_end());
            }
            Self::Provider { held, .. } => {
                sink.give_back_state_bytes(*held);
                sink.provider_part(item);
            }
            Self::Done => return,
        }
        *self = Self::Done;
    }

    /// Emit a provider item whose stream ended before it was done.
    pub(super) fn close<O: Output>(&mut self, sink: &mut DeltaSink<'_, O>) {
        // Parts and calls are ended together with the stream, because their end depends on the end of the stream.
        if let Self::Provider { begun, member, held } = self {
            sink.give_back_state_bytes(*held);
            let block = match member {
                Some((name, text)) => {
                    let text = format!("\"{text}\"");
                    let patch = json::write_object(&[(*name, text.as_str())]);
                    json::merge_objects(begun, &patch)
                }
                None => std::mem::take(begun),
            };
            sink.provider_part(&block);
            *self = Self::Done;
        }
    }
}

/// Return the part of a content; opened if it is new.
fn content_part<O: Output>(
    contents: &mut BTreeMap<(i64, bool), PartHandle>,
    last: &mut Option<((i64, bool), PartHandle)>,
    index: i64,
    content: Content,
    sink: &mut DeltaSink<'_, O>,
) -> PartHandle {
    let refusal = content == Content::Refusal;
    let key = (index, refusal);
    if let Some((known, part)) = last
        && *known == key
    {
        return *part;
    }
    let part = *contents.entry(key).or_insert_with(|| {
        if refusal {
            sink.refused();
        }
        sink.open_repeated_block(if refusal { PartKind::Refusal } else { PartKind::Text })
    });
    *last = Some((key, part));
    part
}

fn say<O: Output>(part: PartHandle, text: Str<'_>, whole: bool, sink: &mut DeltaSink<'_, O>) {
    if whole {
        sink.text_whole(part, text);
    } else {
        sink.text(part, text);
    }
}

/// Emit text of a reasoning item.  A blank line separates the paragraphs of a summary, within one item only.
fn reason<O: Output>(
    part: &mut Option<PartHandle>,
    paragraph: &mut i64,
    index: i64,
    content: Content,
    text: Str<'_>,
    whole: bool,
    sink: &mut DeltaSink<'_, O>,
) {
    if text.is_empty() || (whole && part.is_some() && index < *paragraph) {
        return;
    }
    let handle = *part.get_or_insert_with(|| {
        *paragraph = index;
        sink.open_repeated_block(PartKind::Thinking)
    });
    if index != *paragraph {
        *paragraph = index;
        if content == Content::Summary {
            sink.text(handle, Str::plain("\n\n"));
        }
        sink.begin_paragraph(handle);
    }
    say(handle, text, whole, sink);
}

/// Send the contents of a message that were not streamed: texts and their annotations.
fn finish_message<O: Output>(
    contents: &mut BTreeMap<(i64, bool), PartHandle>,
    last: &mut Option<((i64, bool), PartHandle)>,
    members: &ItemMembers<'_>,
    sink: &mut DeltaSink<'_, O>,
) -> Result<()> {
    // An index is not a position in the list: contents are matched by their order.
    let streamed: Vec<((i64, bool), PartHandle)> =
        contents.iter().map(|(key, part)| (*key, *part)).collect();
    let mut position = 0;
    texts(members.content, |text, content, annotations| {
        let known = streamed.get(position).copied();
        let part = match (known, content) {
            (Some(((_, refusal), part)), _) if refusal == (content == Content::Refusal) => part,
            // The kind differs from that of the streamed content: the streamed part is kept.
            (Some((_, part)), _) => part,
            (None, _) => {
                let after = contents.last_key_value().map_or(0, |((index, _), _)| index + 1);
                content_part(contents, last, after, content, sink)
            }
        };
        position += 1;
        sink.text_whole(part, text);
        let new = annotations.filter(|list| *list != "[]" && known.is_none());
        if let Some(annotations) = new {
            sink.annotate(part, annotations);
        }
    })
}

/// Call `found` with each text of a content or summary list.
fn texts<'a>(
    list: Option<&'a str>,
    mut found: impl FnMut(Str<'a>, Content, Option<&'a str>),
) -> Result<()> {
    let Some(list) = list else { return Ok(()) };
    Reader::trusted(list).maybe_array(|reader| {
        if reader.kind()? == Kind::String {
            found(reader.string()?, Content::Text, None);
            return Ok(());
        }
        let mut text = None;
        let mut content = Content::Text;
        let mut annotations = None;
        reader.maybe_object(|reader, key| {
            match key {
                "text" => text = reader.opt_string()?.or(text),
                "refusal" => {
                    if let Some(refusal) = reader.filled_string()? {
                        content = Content::Refusal;
                        text = Some(refusal);
                    }
                }
                "annotations" => annotations = reader.opt_raw()?,
                _ => reader.skip()?,
            }
            Ok(())
        })?;
        if let Some(text) = text {
            found(text, content, annotations);
        }
        Ok(())
    })
}

/// Return the item without these members.
fn without(item: &str, names: &[&str]) -> String {
    let mut members = json::members(item);
    members.retain(|(key, _)| !names.contains(&key.as_ref()));
    json::write_object(&members)
}
