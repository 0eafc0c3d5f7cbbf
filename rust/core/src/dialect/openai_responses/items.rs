//! Conversion of one output item to deltas.
//!
//! Laws:
//! - Each content of a message is a part of its own, in order.
//! - A reasoning item is one thinking part.  The parts of its summary are paragraphs of it.
//! - An item that the caller runs by name is a tool call.  The name of a tool in a namespace is `namespace__name`, which is
//!   the name that a parsed request declares it under.
//! - Every other item becomes one provider part when it is done.  If the stream ends before, the part holds the content
//!   that arrived.

use super::contents::{Announced, Message, Reasoning, without};
use super::facts::{BILLED_CALLS, flat_name};
use super::read::{COMMAND, Content};
use crate::contract::{FinishReason, InputFormat};
use crate::emit::{CallEnd, CallHandle, PartHandle};
use crate::json::{self, Reader, Result, Str};
use crate::sink::DeltaSink;

/// Bytes that count for an item beside its text.
const ITEM_BYTES: usize = 256;

/// An item of the output.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Item {
    Message(Message),
    Reasoning(Reasoning),
    Call {
        call: CallHandle,
        /// The whole arguments came, though they may be empty.
        is_whole: bool,
    },
    Provider {
        begun: String,
        /// A member whose texts arrive in deltas.
        member: Option<Texts>,
        held: usize,
    },
    /// A message of an agent that the answering one started.  It is a provider part: its text is not that of the answer.
    Agent {
        begun: String,
        /// The text so far, as the content of a JSON string.
        said: String,
        held: usize,
    },
    /// The item is done, but lacks what the final object of the answer may have.
    Hollow(Hollow),
    /// The item was emitted completely; with the first part of a message.
    Done(Option<PartHandle>),
}

/// Texts of a member of an item, each the content of a JSON string; a call of a shell has one for each command.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Texts {
    name: &'static str,
    index: Option<i64>,
    said: String,
}

impl Texts {
    fn push(&mut self, index: Option<i64>, text: &str) {
        if self.name == COMMAND && self.index != index {
            self.index = index;
            self.said.push_str("\",\"");
        }
        self.said.push_str(text);
    }

    /// Return an item with the member.
    fn within(&self, item: &str) -> String {
        let texts = format!("\"{}\"", self.said);
        if self.name != COMMAND {
            return json::merge_objects(item, &json::write_object(&[(self.name, texts.as_str())]));
        }
        let action = json::members(item).into_iter().find(|(name, _)| name == "action");
        let commands = json::write_object(&[("commands", format!("[{texts}]").as_str())]);
        let action = json::merge_objects(action.map_or("{}", |(_, action)| action), &commands);
        json::merge_objects(item, &json::write_object(&[("action", action.as_str())]))
    }
}

/// An item that came empty, or reasoning without its ciphertext.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Hollow {
    Message(Message),
    Reasoning(Reasoning),
    Call(CallHandle),
}

/// The kinds of items, by the content that they take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ItemKind {
    Message,
    Reasoning,
    Call,
    Provider,
}

impl ItemKind {
    /// Return whether items of this kind take the content.
    #[inline]
    pub(super) fn takes(self, content: Content) -> bool {
        match content {
            Content::Text | Content::Refusal | Content::Transcript => self == Self::Message,
            Content::Summary | Content::Reasoning => self == Self::Reasoning,
            Content::Arguments => self == Self::Call,
            Content::Input => matches!(self, Self::Call | Self::Provider),
            Content::Member(_) => self == Self::Provider,
            Content::Audio => false,
        }
    }
}

/// The members of an item that the decoder interprets.
#[derive(Default)]
pub(super) struct ItemMembers<'a> {
    pub(super) kind: Option<Str<'a>>,
    pub(super) id: Option<Str<'a>>,
    call_id: Option<Str<'a>>,
    name: Option<Str<'a>>,
    namespace: Option<Str<'a>>,
    /// The item has members beside its names that a writer must know when it begins the item.
    has_origin: bool,
    arguments: Option<Str<'a>>,
    content: Option<&'a str>,
    summary: Option<&'a str>,
    execution: Option<Str<'a>>,
    environment: Option<Str<'a>>,
    has_ciphertext: bool,
    status: Option<Str<'a>>,
    role: Option<Str<'a>>,
    /// The name of the agent whose item it is.
    agent: Option<Str<'a>>,
}

/// The agent that answers.  Those that it starts have longer names.
const ROOT: &str = "/root";

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
                "namespace" => found.namespace = reader.filled_string()?,
                "caller" | "async" => found.has_origin |= reader.opt_raw()?.is_some(),
                "arguments" | "input" => found.arguments = reader.text_or_json()?,
                "content" => found.content = reader.opt_raw()?,
                "summary" => found.summary = reader.opt_raw()?,
                "execution" => found.execution = reader.opt_string()?,
                "encrypted_content" => found.has_ciphertext = reader.opt_raw()?.is_some(),
                "status" => found.status = reader.opt_string()?,
                "role" => found.role = reader.opt_string()?,
                "agent" => reader.maybe_object(|reader, key| {
                    match key {
                        "agent_name" => found.agent = reader.filled_string()?,
                        _ => reader.skip()?,
                    }
                    Ok(())
                })?,
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

    /// Return whether a message is one of the caller's, which a compacted conversation repeats.
    fn is_of_caller(&self) -> bool {
        let roles = ["user", "system", "developer", "tool"];
        self.role.is_some_and(|role| roles.contains(&role.raw))
    }

    /// Return the kind of a call that the provider bills apart from tokens.
    fn billed_kind(&self) -> Option<&'static str> {
        let kind = self.kind?;
        BILLED_CALLS.into_iter().find(|known| *known == kind.raw)
    }

    /// Return the id of the call.  Some servers write `"null"` instead of a missing id.
    pub(super) fn call_id(&self) -> Option<Str<'a>> {
        self.call_id.filter(|id| id.raw != "null")
    }

    /// Name a call: its id, and its name with its namespace.
    fn name_call(&self, call: CallHandle, sink: &mut DeltaSink<'_>) {
        let name = self.name.map(|name| flat_name(self.namespace, name));
        sink.name_call(call, self.call_id.or(self.id), name.as_deref().map(Str::plain));
    }

    /// Return whether the item may be of a kind.  The server may run a custom tool itself.
    pub(super) fn fits(&self, kind: ItemKind) -> bool {
        match self.kind.map_or("", |kind| kind.raw) {
            "" => true,
            "message" if self.is_of_caller() => kind == ItemKind::Provider,
            "message" => kind == ItemKind::Message,
            "reasoning" => kind == ItemKind::Reasoning,
            "function_call" => kind == ItemKind::Call,
            "custom_tool_call" => matches!(kind, ItemKind::Call | ItemKind::Provider),
            _ => kind == ItemKind::Provider,
        }
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

    /// Return true if the item is a call that its own status calls unfinished, and no arguments came with it.
    pub(super) fn is_unfinished_call(&self) -> bool {
        self.fits(ItemKind::Call)
            && self.arguments.is_none_or(|arguments| arguments.is_empty())
            && self.status.is_some_and(|status| status.raw == "in_progress")
    }

    /// Return the end of a call's item.  `status: "incomplete"` means that the call is not complete.
    fn call_end(&self) -> CallEnd {
        match self.status {
            Some(status) if status.raw == "incomplete" => CallEnd::Finish(FinishReason::Other),
            _ => CallEnd::Provider,
        }
    }

    /// Return whether the provider ran a custom tool itself (xAI): the id shows it, or the request declared a search that
    /// calls such tools, and `declared` lacks the tool.
    ///
    /// Other requests prove nothing: tools also come from items of the input, which no response repeats.
    pub(super) fn is_provider_run(&self, declared: Option<&[String]>) -> bool {
        let name = self.name.map(|name| flat_name(self.namespace, name));
        self.call_id.is_some_and(|id| id.raw.starts_with("xs_call_"))
            || declared
                .zip(name)
                .is_some_and(|(known, name)| !known.iter().any(|known| *known == name))
    }
}

impl Item {
    /// Open an item.  An earlier message of its id began with the part `said_before`.
    pub(super) fn open(
        members: &ItemMembers<'_>,
        item: &str,
        declared: Option<&[String]>,
        said_before: Option<PartHandle>,
        sink: &mut DeltaSink<'_>,
    ) -> Self {
        let call = |format, sink: &mut DeltaSink<'_>| {
            let call = sink.open_repeated_call(format);
            if members.namespace.is_some() || members.has_origin {
                // Before the name, which starts the call: a writer begins the item with these members.
                let state = without(item, &["arguments", "input"]);
                let state = json::merge_objects(&state, "{\"status\":\"in_progress\"}");
                sink.call_state(call, &state);
            }
            members.name_call(call, sink);
            Self::Call { call, is_whole: false }
        };
        match members.kind.map_or("", |kind| kind.raw) {
            "message" if members.agent.is_some_and(|agent| agent.raw != ROOT) => {
                let held = item.len();
                let begun = if sink.take_state_bytes(held) { item } else { "{}" };
                Self::Agent { begun: begun.to_owned(), said: String::new(), held }
            }
            "message" if !members.is_of_caller() => {
                let announced = Announced::of(members.id, item, sink);
                Self::Message(Message::announced(announced, said_before))
            }
            "reasoning" => {
                Self::Reasoning(Reasoning::announced(Announced::of(members.id, item, sink)))
            }
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
    pub(super) fn from_content(content: Content, sink: &mut DeltaSink<'_>) -> Option<Self> {
        match content {
            Content::Text | Content::Refusal | Content::Transcript => {
                Some(Self::Message(Message::default()))
            }
            Content::Summary | Content::Reasoning => Some(Self::Reasoning(Reasoning::default())),
            Content::Arguments => Some(Self::call(InputFormat::Json, sink)),
            Content::Input => Some(Self::call(InputFormat::Text, sink)),
            Content::Audio | Content::Member(_) => None,
        }
    }

    fn call(format: InputFormat, sink: &mut DeltaSink<'_>) -> Self {
        Self::Call { call: sink.open_repeated_call(format), is_whole: false }
    }

    /// Return the kind of an item that was just opened.
    pub(super) fn kind(&self) -> ItemKind {
        match self {
            Self::Message(_) | Self::Agent { .. } => ItemKind::Message,
            Self::Reasoning(_) => ItemKind::Reasoning,
            Self::Call { .. } => ItemKind::Call,
            Self::Provider { .. } | Self::Hollow(_) | Self::Done(_) => ItemKind::Provider,
        }
    }

    /// Count an item against the limits.  Its ids are stored twice.
    pub(super) fn count(ids: [Option<Str<'_>>; 2], sink: &mut DeltaSink<'_>) -> bool {
        let ids: usize = ids.iter().flatten().map(|id| id.raw.len()).sum();
        sink.take_state_bytes(ids.saturating_mul(2).saturating_add(ITEM_BYTES))
    }

    /// Accept a delta of the item, or the whole of one of its texts.
    #[inline]
    pub(super) fn take(
        &mut self,
        content: Content,
        index: Option<i64>,
        text: Str<'_>,
        whole: bool,
        sink: &mut DeltaSink<'_>,
    ) {
        match (self, content) {
            (Self::Message(message), Content::Text | Content::Refusal | Content::Transcript) => {
                message.take(content, index, text, whole, sink);
            }
            (Self::Agent { said, held, .. }, Content::Text | Content::Refusal)
                if !whole && sink.take_state_bytes(text.raw.len()) =>
            {
                *held += text.raw.len();
                said.push_str(text.raw);
            }
            (Self::Reasoning(reasoning), Content::Summary | Content::Reasoning) => {
                reasoning.take(content, index, text, whole, sink);
            }
            (Self::Call { call, is_whole }, Content::Arguments | Content::Input) if whole => {
                *is_whole = true;
                if !text.is_empty() {
                    sink.args_whole(*call, text);
                }
            }
            (Self::Call { call, .. }, Content::Arguments | Content::Input) => {
                sink.call_args(*call, text);
            }
            (Self::Provider { member, held, .. }, Content::Member(_) | Content::Input)
                if !whole =>
            {
                let name = if let Content::Member(name) = content { name } else { "input" };
                if sink.take_state_bytes(text.raw.len()) {
                    *held += text.raw.len();
                    let said = String::new();
                    member.get_or_insert_with(|| Texts { name, index, said }).push(index, text.raw);
                }
            }
            _ => {}
        }
    }

    /// Accept the whole item and finish it.
    pub(super) fn finish(
        &mut self,
        members: &ItemMembers<'_>,
        item: &str,
        sink: &mut DeltaSink<'_>,
    ) {
        let mut first_part = None;
        let hollow = match self {
            Self::Message(message) => {
                let has_parts = message.finish(members.content, item, sink);
                first_part = message.first_part();
                (!has_parts).then(|| Hollow::Message(std::mem::take(message)))
            }
            Self::Reasoning(reasoning) => {
                let is_hollow = !members.has_ciphertext;
                reasoning.finish(members.summary, members.content, item, sink);
                is_hollow.then(|| Hollow::Reasoning(std::mem::take(reasoning)))
            }
            Self::Call { call, .. } => {
                // Must precede the name: the text that is buffered until the name arrives may be only half of the arguments.
                if let Some(arguments) = members.arguments {
                    sink.args_whole(*call, arguments);
                }
                members.name_call(*call, sink);
                let state = without(item, &["arguments", "input"]);
                sink.call_state(*call, &state);
                let is_empty = sink.has_no_args(*call);
                sink.end_call(*call, members.call_end());
                Some(Hollow::Call(*call)).filter(|_| is_empty)
            }
            Self::Provider { held, .. } | Self::Agent { held, .. } => {
                sink.give_back_state_bytes(*held);
                if let Some(kind) = members.billed_kind() {
                    sink.billed_calls(kind, 1);
                }
                sink.provider_part(item);
                None
            }
            Self::Hollow(_) | Self::Done(_) => return,
        };
        *self = hollow.map_or(Self::Done(first_part), Self::Hollow);
    }

    /// Take what an item lacks from the final object of the answer.
    pub(super) fn fill(&mut self, members: &ItemMembers<'_>, item: &str, sink: &mut DeltaSink<'_>) {
        match self {
            Self::Hollow(Hollow::Message(message)) => {
                message.finish(members.content, item, sink);
            }
            Self::Hollow(Hollow::Reasoning(reasoning)) => {
                let ItemMembers { summary, content, has_ciphertext, .. } = *members;
                reasoning.fill(summary, content, item, has_ciphertext, sink);
            }
            Self::Hollow(Hollow::Call(call)) => {
                if let Some(arguments) = members.arguments {
                    sink.args_whole(*call, arguments);
                }
            }
            _ => return,
        }
        *self = Self::Done(None);
    }

    /// Emit a provider item whose stream ended before it was done, and give up a call that nothing confirmed.
    pub(super) fn close(&mut self, sink: &mut DeltaSink<'_>) {
        // Parts and other calls are ended together with the stream, because their end depends on the end of the stream.
        if let Self::Call { call, is_whole: false } = self
            && sink.has_no_args(*call)
        {
            sink.end_call(*call, CallEnd::Abandoned);
        }
        if let Self::Agent { begun, said, held } = self {
            sink.give_back_state_bytes(*held);
            let content = format!("[{{\"type\":\"output_text\",\"text\":\"{said}\"}}]");
            let content = json::write_object(&[("content", content.as_str())]);
            sink.provider_part(&json::merge_objects(begun, &content));
            *self = Self::Done(None);
        }
        if let Self::Provider { begun, member, held } = self {
            sink.give_back_state_bytes(*held);
            let block = match member {
                Some(texts) => texts.within(begun),
                None => std::mem::take(begun),
            };
            sink.provider_part(&block);
            *self = Self::Done(None);
        }
    }
}
