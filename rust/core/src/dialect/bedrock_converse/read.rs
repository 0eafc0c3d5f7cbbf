//! Reader of ConverseStream events: one frame → one [`Event`].

use crate::dialect::protocol::Frame;
use crate::dialect::unread::Unread;
use crate::json::{self, Kind, Reader, Result, Str};
use crate::template::{Template, Token, Tokens};

/// One event, borrowed from its frame.
#[derive(Clone, Debug, PartialEq)]
pub enum Event<'a> {
    /// An event without content.
    Nothing,
    /// `messageStart`.
    MessageStart {
        /// The role of the message: of an agent that runs at the provider, the results of its tools are a user's.
        role: Option<Str<'a>>,
    },
    /// `contentBlockStart`.
    BlockStart {
        /// The index of the block.
        index: Option<i64>,
        /// The start object, a union of block types; often empty.
        start: &'a str,
    },
    /// `contentBlockDelta`.
    BlockDelta {
        /// The index of the block.
        index: Option<i64>,
        /// The new content.
        delta: BlockDelta<'a>,
    },
    /// `contentBlockStop`.
    BlockStop {
        /// The index of the block.
        index: Option<i64>,
    },
    /// `messageStop`.
    MessageStop {
        /// The stop reason.
        reason: Option<Str<'a>>,
        /// Members for the terminal event.
        facts: Facts<'a>,
    },
    /// `metadata`.
    Metadata {
        /// Counts of the whole message.
        usage: Option<&'a str>,
        /// Members for the terminal event.
        facts: Facts<'a>,
    },
    /// A whole response body.
    Whole {
        /// The list of content blocks.
        content: &'a str,
        /// The stop reason.
        reason: Option<Str<'a>>,
        /// Counts of the whole message.
        usage: Option<&'a str>,
        /// Members for the terminal event.
        facts: Facts<'a>,
    },
    /// An exception among the events, or an error body: its name and its object.
    Error(Option<Str<'a>>, &'a str),
    /// An event with an unknown name.
    Unknown(Str<'a>),
    /// An event with members that no rule knows.
    Beside(Box<(Event<'a>, Unread<'a>)>),
}

/// The `delta` of a `contentBlockDelta`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BlockDelta<'a> {
    /// `text`
    Text(Str<'a>),
    /// `toolUse.input`
    Input(Str<'a>),
    /// `toolUse.input` as a JSON value instead of a string.
    InputJson(&'a str),
    /// `reasoningContent`
    Reasoning {
        /// `text`
        text: Option<Str<'a>>,
        /// `signature`
        signature: Option<Str<'a>>,
        /// `redactedContent`
        redacted: Option<Str<'a>>,
    },
    /// `toolResult`: a list.
    ToolResult(&'a str),
    /// `citation`
    Citation(&'a str),
    /// `image`
    Image(&'a str),
    /// The whole delta, if its member is unknown.
    Unknown(&'a str),
}

#[derive(Clone, Copy, PartialEq)]
enum Name {
    MessageStart,
    BlockStart,
    BlockDelta,
    BlockStop,
    MessageStop,
    Metadata,
}

impl Name {
    fn from_text(name: &str) -> Option<Self> {
        Some(match name {
            "messageStart" | "initial-response" => Self::MessageStart,
            "contentBlockStart" => Self::BlockStart,
            "contentBlockDelta" => Self::BlockDelta,
            "contentBlockStop" => Self::BlockStop,
            "messageStop" => Self::MessageStop,
            "metadata" => Self::Metadata,
            _ => return None,
        })
    }
}

/// Members that the terminal event repeats unchanged; each a JSON value.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Facts<'a> {
    additional: Option<&'a str>,
    trace: Option<&'a str>,
    service_tier: Option<&'a str>,
    performance: Option<&'a str>,
    metrics: Option<&'a str>,
}

impl<'a> Facts<'a> {
    /// Return whether a guardrail blocked the prompt or the answer.
    pub(super) fn are_of_blocked_answer(self) -> bool {
        // The trace has one assessment for each guardrail and policy; each finding has an `action`.
        self.trace.is_some_and(|trace| {
            json::members(trace)
                .iter()
                .any(|(name, value)| name == "guardrail" && value.contains("\"BLOCKED\""))
        })
    }

    /// Return the name of the service tier.
    pub(super) fn tier(self) -> Option<Str<'a>> {
        let mut tier = None;
        // `read` validated the JSON, so that an error here only means a value that is not an object.
        let _ = Reader::trusted(self.service_tier?).maybe_object(|reader, key| {
            match key {
                "type" => tier = reader.filled_string()?,
                _ => reader.skip()?,
            }
            Ok(())
        });
        tier
    }

    /// Return the present members with their names.
    pub(super) fn known(self) -> impl Iterator<Item = (&'static str, &'a str)> {
        let all = [
            ("additionalModelResponseFields", self.additional),
            ("trace", self.trace),
            ("serviceTier", self.service_tier),
            ("performanceConfig", self.performance),
            ("metrics", self.metrics),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value?)))
    }
}

/// The members of an event, with or without the object that wraps it.
#[derive(Default)]
struct Members<'a> {
    name: Option<Name>,
    index: Option<i64>,
    start: Option<&'a str>,
    delta: Option<BlockDelta<'a>>,
    reason: Option<Str<'a>>,
    usage: Option<&'a str>,
    facts: Facts<'a>,
    output: bool,
    content: Option<&'a str>,
    exception: Option<(Str<'a>, &'a str)>,
    error: bool,
    role: Option<Str<'a>>,
    unread: Unread<'a>,
}

/// Read a frame: the body of a named event, or an object whose only member has the event's name.
pub(super) fn read<'a>(frame: Frame<'a>, reader: &mut Reader<'a>) -> Result<Event<'a>> {
    let mut members = Members { name: Name::from_text(frame.name), ..Members::default() };
    let wrapped = members.name.is_none();
    reader.object(|reader, key| match Name::from_text(key).filter(|_| wrapped) {
        Some(name) => {
            members.name = Some(name);
            reader.maybe_object(|reader, key| members.read(reader, key))
        }
        None if wrapped && key.ends_with("Exception") => {
            let name = member_name(frame.json, reader, key);
            members.exception = Some((name, reader.raw()?));
            Ok(())
        }
        None => members.read(reader, key),
    })?;
    reader.end()?;
    let unread = std::mem::take(&mut members.unread);
    Ok(members.event(frame).with(unread))
}

impl<'a> Event<'a> {
    /// Return the event with its members that no rule knows.
    fn with(self, unread: Unread<'a>) -> Self {
        if unread.is_empty() {
            return self;
        }
        match self {
            Self::BlockStart { .. } | Self::BlockDelta { .. } | Self::BlockStop { .. } => {
                Self::Beside(Box::new((self, unread.into_dropped())))
            }
            Self::Nothing
            | Self::MessageStart { .. }
            | Self::MessageStop { .. }
            | Self::Metadata { .. }
            | Self::Whole { .. } => Self::Beside(Box::new((self, unread))),
            // The body of an error is kept, and the name of an unknown event is said.
            event => event,
        }
    }
}

/// Return the name of the member whose value follows, borrowed from the JSON.  Empty if the name holds escapes.
pub(in crate::dialect) fn member_name<'a>(
    json: &'a str,
    reader: &Reader<'_>,
    key: &str,
) -> Str<'a> {
    // Between the name and the value are a quote, white space and a colon.
    let before = json.get(..reader.position()).unwrap_or("");
    let name = before.rfind('"').and_then(|end| before.get(end.checked_sub(key.len())?..end));
    Str::plain(name.filter(|name| *name == key).unwrap_or(""))
}

impl<'a> Members<'a> {
    fn read(&mut self, reader: &mut Reader<'a>, key: &str) -> Result<()> {
        match key {
            "contentBlockIndex" => self.index = reader.integer()?,
            "start" => self.start = reader.opt_raw()?,
            "delta" if reader.kind()? == Kind::Object => {
                self.delta = read_delta(reader, &mut self.unread)?;
            }
            "stopReason" => self.reason = reader.filled_string()?,
            "usage" => self.usage = reader.opt_raw()?,
            "additionalModelResponseFields" => self.facts.additional = reader.opt_raw()?,
            "trace" => self.facts.trace = reader.opt_raw()?,
            "serviceTier" => self.facts.service_tier = reader.opt_raw()?,
            "performanceConfig" => self.facts.performance = reader.opt_raw()?,
            "metrics" => self.facts.metrics = reader.opt_raw()?,
            "output" => {
                self.output = true;
                reader.maybe_object(|reader, key| match key {
                    "message" => reader.maybe_object(|reader, key| {
                        match key {
                            "content" => self.content = reader.opt_raw()?,
                            "role" => reader.ignore()?,
                            key => self.unread.content(reader, key)?,
                        }
                        Ok(())
                    }),
                    key => self.unread.fact(reader, key),
                })?;
            }
            "message" | "Message" if reader.kind()? == Kind::String => {
                reader.skip()?;
                self.error = true;
            }
            "error" => self.error |= reader.opt_raw()?.is_some(),
            "role" => self.role = reader.filled_string()?,
            key => self.unread.fact(reader, key)?,
        }
        Ok(())
    }

    fn event(self, frame: Frame<'a>) -> Event<'a> {
        let Self { index, reason, usage, facts, .. } = self;
        match self.name {
            Some(Name::BlockDelta) => match self.delta {
                Some(delta) => Event::BlockDelta { index, delta },
                None => Event::Nothing,
            },
            Some(Name::BlockStart) => {
                Event::BlockStart { index, start: self.start.unwrap_or("{}") }
            }
            Some(Name::BlockStop) => Event::BlockStop { index },
            Some(Name::MessageStart) => Event::MessageStart { role: self.role },
            Some(Name::MessageStop) => Event::MessageStop { reason, facts },
            Some(Name::Metadata) => Event::Metadata { usage, facts },
            None => match self.exception {
                Some((name, json)) => Event::Error(Some(name), json),
                None if self.output => {
                    let content = self.content.unwrap_or("[]");
                    Event::Whole { content, reason, usage, facts }
                }
                None if self.error => Event::Error(None, frame.json),
                None => Event::Unknown(Str::plain(frame.name)),
            },
        }
    }
}

/// Read a delta.  Returns `None` for a delta without content.
fn read_delta<'a>(
    reader: &mut Reader<'a>,
    unread: &mut Unread<'a>,
) -> Result<Option<BlockDelta<'a>>> {
    let mut found = None;
    let mut unknown = Unread::default();
    let start = reader.position();
    reader.object(|reader, key| {
        let delta = match key {
            "text" => reader.opt_string()?.map(BlockDelta::Text),
            "toolUse" => read_input(reader, unread)?,
            "reasoningContent" => Some(read_reasoning(reader, unread)?),
            "toolResult" => reader.opt_raw()?.map(BlockDelta::ToolResult),
            "citation" => reader.opt_raw()?.map(BlockDelta::Citation),
            "image" => reader.opt_raw()?.map(BlockDelta::Image),
            key => {
                unknown.dropped(reader, key)?;
                None
            }
        };
        found = found.or(delta);
        Ok(())
    })?;
    if unknown.is_empty() {
        return Ok(found);
    }
    if found.is_some() {
        *unread = unknown;
        return Ok(found);
    }
    Ok(Some(BlockDelta::Unknown(reader.since(start))))
}

fn read_input<'a>(
    reader: &mut Reader<'a>,
    unread: &mut Unread<'a>,
) -> Result<Option<BlockDelta<'a>>> {
    let mut found = None;
    reader.maybe_object(|reader, key| {
        match key {
            "input" if reader.kind()? == Kind::String => {
                found = Some(BlockDelta::Input(reader.string()?));
            }
            "input" => found = reader.opt_raw()?.map(BlockDelta::InputJson),
            key => unread.dropped(reader, key)?,
        }
        Ok(())
    })?;
    Ok(found)
}

/// Read the reasoning of a delta, or of a block of a whole body, which has one more level.
pub(super) fn read_reasoning<'a>(
    reader: &mut Reader<'a>,
    unread: &mut Unread<'a>,
) -> Result<BlockDelta<'a>> {
    let (mut text, mut signature, mut redacted) = (None, None, None);
    let member = &mut |reader: &mut Reader<'a>, key: &str| {
        match key {
            "text" => text = reader.filled_string()?,
            "signature" => signature = reader.filled_string()?,
            "redactedContent" => redacted = reader.filled_string()?,
            key => unread.dropped(reader, key)?,
        }
        Ok(())
    };
    reader.maybe_object(|reader, key| match key {
        "reasoningText" => reader.maybe_object(&mut *member),
        _ => member(reader, key),
    })?;
    Ok(BlockDelta::Reasoning { text, signature, redacted })
}

/// The deltas that repeat: text, reasoning, arguments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EventTemplate {
    index: Option<i64>,
    kind: TemplateKind,
    text: Token,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum TemplateKind {
    Text,
    Reasoning,
    Input,
}

impl Template for EventTemplate {
    type Event<'a> = Event<'a>;

    fn has_facts(event: &Event<'_>) -> bool {
        matches!(event, Event::Beside(_))
    }

    fn from_event(event: &Event<'_>, tokens: &mut Tokens<'_>) -> Option<Self> {
        let (index, delta) = match event {
            Event::BlockDelta { index, delta } => (index, delta),
            Event::Beside(beside) => return Self::from_event(&beside.0, tokens),
            _ => return None,
        };
        let (kind, text) = match delta {
            BlockDelta::Text(text) => (TemplateKind::Text, text),
            BlockDelta::Input(text) => (TemplateKind::Input, text),
            BlockDelta::Reasoning { text: Some(text), signature: None, redacted: None } => {
                (TemplateKind::Reasoning, text)
            }
            _ => return None,
        };
        Some(Self { index: *index, kind, text: tokens.changing(*text) })
    }

    #[inline]
    fn fill<'a>(&self, text: impl Fn(Token) -> Str<'a>) -> Event<'a> {
        let text = text(self.text);
        let delta = match self.kind {
            TemplateKind::Text => BlockDelta::Text(text),
            TemplateKind::Input => BlockDelta::Input(text),
            TemplateKind::Reasoning => {
                BlockDelta::Reasoning { text: Some(text), signature: None, redacted: None }
            }
        };
        Event::BlockDelta { index: self.index, delta }
    }
}
