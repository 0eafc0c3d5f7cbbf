//! Reader of Interactions events: one frame → one [`Event`].

use crate::dialect::protocol::{Frame, Wanted};
use crate::dialect::unread::Unread;
use crate::json::{Kind, Reader, Result, Str};
use crate::template::{Template, Token, Tokens};

/// One event, borrowed from its frame.
#[derive(Clone, Debug, PartialEq)]
pub struct Event<'a> {
    /// The change that the event reports.
    pub(super) change: Change<'a>,
    /// The counts so far, which any event may hold.
    pub(super) usage: Option<&'a str>,
    /// The token with which another request continues the interaction.
    pub(super) continuation_token: Option<Str<'a>>,
    /// The id of the interaction, in an event that does not hold the interaction.
    pub(super) interaction_id: Option<Str<'a>>,
    /// Members that no rule knows.
    pub(super) unread: Unread<'a>,
}

/// The change that an event reports.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Change<'a> {
    /// `step.delta` with only text.
    More { content: Content, index: Option<i64>, text: Str<'a> },
    /// `step.delta` with anything else.
    Delta { index: Option<i64>, delta: &'a str },
    /// `step.start`
    Start { index: Option<i64>, step: &'a str },
    /// `step.stop`
    Stop { index: Option<i64> },
    /// `interaction.status_update`
    Status(Str<'a>),
    /// An event that holds the interaction, or a whole response body.  `last` marks the last event.
    Interaction { last: bool, interaction: &'a str },
    /// An `error` event or a bare error: the whole frame.
    Failed(&'a str),
    /// A redundant event; ignored.
    Progress,
    /// An event of an unknown type.
    Unknown(Str<'a>),
}

/// The kind of text that a delta extends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// Visible text.
    Text,
    /// A summary of reasoning.
    Thought,
    /// Arguments of a function call.
    Arguments,
}

#[derive(Default)]
struct Members<'a> {
    kind: Option<Str<'a>>,
    object: Option<Str<'a>>,
    index: Option<i64>,
    delta: Option<(Delta<'a>, &'a str)>,
    step: Option<&'a str>,
    status: Option<Str<'a>>,
    interaction: Option<&'a str>,
    error: bool,
    usage: Option<&'a str>,
    continuation_token: Option<Str<'a>>,
    interaction_id: Option<Str<'a>>,
    unread: Unread<'a>,
}

/// Read a frame.
pub(super) fn read<'a>(frame: Frame<'a>, reader: &mut Reader<'a>, _: Wanted) -> Result<Event<'a>> {
    let mut found = Members::default();
    reader.object(|reader, key| {
        match key {
            "event_type" | "type" => found.kind = reader.filled_string()?,
            "index" => found.index = reader.integer()?,
            "delta" if reader.kind()? == Kind::Object => {
                let start = reader.position();
                let delta = Delta::read(reader, &mut found.unread)?;
                found.delta = Some((delta, reader.since(start)));
            }
            // `content` is the older name, from before the API had steps.
            "step" | "content" => found.step = reader.opt_raw()?.filter(|raw| raw.starts_with('{')),
            "status" => found.status = reader.filled_string()?,
            "interaction" => {
                found.interaction = reader.opt_raw()?.filter(|raw| raw.starts_with('{'));
            }
            "object" => found.object = reader.opt_string()?,
            "continuation_token" => found.continuation_token = reader.filled_string()?,
            "error" => found.error = reader.opt_raw()?.is_some(),
            "interaction_id" => found.interaction_id = reader.id()?,
            "usage" => found.usage = usage(reader)?.or(found.usage),
            "metadata" => reader.maybe_object(|reader, key| {
                match key {
                    "total_usage" | "usage" => found.usage = usage(reader)?.or(found.usage),
                    key => found.unread.fact(reader, key)?,
                }
                Ok(())
            })?,
            // The place of the event in the stream.
            "event_id" => reader.ignore()?,
            // A whole body is read later.
            _ if found.object.is_some() => reader.ignore()?,
            key => found.unread.fact(reader, key)?,
        }
        Ok(())
    })?;
    reader.end()?;
    let change = found.change(frame);
    let Members { usage, continuation_token, interaction_id, unread, .. } = found;
    let unread = match change {
        Change::More { .. } | Change::Start { .. } | Change::Stop { .. } => unread.into_dropped(),
        Change::Interaction { .. } if found.kind.is_none() => Unread::default(),
        Change::Status(_) | Change::Interaction { .. } => unread,
        // A delta of another kind is read when it is applied, and the body of an error is kept.
        Change::Delta { .. } | Change::Failed(_) | Change::Progress | Change::Unknown(_) => {
            Unread::default()
        }
    };
    Ok(Event { change, usage, continuation_token, interaction_id, unread })
}

/// Read a usage record.  Returns `None` for a value that is not an object.
pub(super) fn usage<'a>(reader: &mut Reader<'a>) -> Result<Option<&'a str>> {
    Ok(reader.opt_raw()?.filter(|raw| raw.starts_with('{')))
}

impl<'a> Members<'a> {
    fn change(&self, frame: Frame<'a>) -> Change<'a> {
        let index = self.index;
        let named = Str::plain(frame.name);
        let Some(kind) = self.kind.or(Some(named).filter(|name| !name.is_empty())) else {
            return if self.object.is_some_and(|object| object.raw == "interaction") {
                Change::Interaction { last: true, interaction: frame.json }
            } else if self.error {
                Change::Failed(frame.json)
            } else {
                Change::Unknown(named)
            };
        };
        match kind.raw {
            "step.delta" | "content.delta" => match self.delta {
                Some((delta, json)) => delta.change(index, json),
                None => Change::Progress,
            },
            "step.start" | "content.start" => match self.step {
                Some(step) => Change::Start { index, step },
                None => Change::Progress,
            },
            "step.stop" | "content.stop" => Change::Stop { index },
            "interaction.created" | "interaction.start" => {
                Change::Interaction { last: false, interaction: self.interaction.unwrap_or("{}") }
            }
            "interaction.completed" | "interaction.complete" => {
                Change::Interaction { last: true, interaction: self.interaction.unwrap_or("{}") }
            }
            "interaction.status_update" => self.status.map_or(Change::Progress, Change::Status),
            _ if self.error => Change::Failed(frame.json),
            "error" => Change::Failed(frame.json),
            _ => Change::Unknown(kind),
        }
    }
}

/// The new content of a step, or one content of a whole step.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Delta<'a> {
    pub(super) kind: Option<Str<'a>>,
    pub(super) text: Option<Str<'a>>,
    pub(super) signature: Option<Str<'a>>,
    /// The arguments, or raw JSON if the server sends an object.
    pub(super) arguments: Option<Str<'a>>,
    pub(super) annotations: Option<&'a str>,
    pub(super) mime_type: Option<Str<'a>>,
    pub(super) data: Option<Str<'a>>,
    pub(super) id: Option<Str<'a>>,
    pub(super) name: Option<Str<'a>>,
    /// `summary` or `content` of a whole step.
    pub(super) contents: Option<&'a str>,
    /// The error of a step.
    pub(super) error: Option<&'a str>,
}

impl<'a> Delta<'a> {
    /// Read a delta, a step or a content.
    pub(super) fn read(reader: &mut Reader<'a>, unread: &mut Unread<'a>) -> Result<Self> {
        let mut found = Self::default();
        reader.maybe_object(|reader, key| found.member(reader, key, unread))?;
        Ok(found)
    }

    fn member(
        &mut self,
        reader: &mut Reader<'a>,
        key: &str,
        unread: &mut Unread<'a>,
    ) -> Result<()> {
        match key {
            "type" => self.kind = reader.filled_string()?,
            "text" => self.text = reader.filled_string()?.or(self.text),
            "content" | "summary" => match reader.kind()? {
                // The content of a thought's summary.  Its text becomes the text of the delta.
                Kind::Object => reader.object(|reader, key| {
                    match key {
                        "text" => self.text = reader.filled_string()?,
                        "type" => reader.ignore()?,
                        key => unread.dropped(reader, key)?,
                    }
                    Ok(())
                })?,
                _ => self.contents = reader.opt_raw()?,
            },
            "signature" => self.signature = reader.filled_string()?,
            "arguments" => {
                self.arguments = match reader.kind()? {
                    Kind::String => reader.filled_string()?,
                    _ => reader.opt_raw()?.filter(|raw| !is_empty_object(raw)).map(Str::plain),
                }
            }
            "annotations" => self.annotations = reader.opt_raw()?.filter(|raw| *raw != "[]"),
            "mime_type" => self.mime_type = reader.filled_string()?,
            "data" => self.data = reader.filled_string()?,
            "id" => self.id = reader.id()?,
            "name" => self.name = reader.filled_string()?,
            "error" => self.error = reader.opt_raw()?.filter(|raw| raw.starts_with('{')),
            key => unread.dropped(reader, key)?,
        }
        Ok(())
    }

    fn change(&self, index: Option<i64>, json: &'a str) -> Change<'a> {
        let (content, text) = match self.kind.map_or("", |kind| kind.raw) {
            "text" if self.annotations.is_none() => (Content::Text, self.text),
            "thought_summary" => (Content::Thought, self.text),
            "arguments_delta" => (Content::Arguments, self.arguments),
            _ => return Change::Delta { index, delta: json },
        };
        match (text, content) {
            (Some(text), _) => Change::More { content, index, text },
            // An image inside a thought.
            (None, Content::Thought) => Change::Delta { index, delta: json },
            (None, _) => Change::Progress,
        }
    }
}

fn is_empty_object(raw: &str) -> bool {
    raw.strip_prefix('{').is_some_and(|rest| rest.trim_ascii() == "}")
}

/// The events that repeat: text of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EventTemplate {
    content: Content,
    index: Option<i64>,
    text: Token,
}

impl Template for EventTemplate {
    type Event<'a> = Event<'a>;

    fn has_facts(event: &Event<'_>) -> bool {
        !event.unread.is_empty()
    }

    fn from_event(event: &Event<'_>, tokens: &mut Tokens<'_>) -> Option<Self> {
        match *event {
            Event {
                change: Change::More { content, index, text },
                usage: None,
                continuation_token: None,
                interaction_id: None,
                ..
            } => Some(Self { content, index, text: tokens.changing(text) }),
            _ => None,
        }
    }

    #[inline]
    fn fill<'a>(&self, text: impl Fn(Token) -> Str<'a>) -> Event<'a> {
        let change =
            Change::More { content: self.content, index: self.index, text: text(self.text) };
        Event {
            change,
            usage: None,
            continuation_token: None,
            interaction_id: None,
            unread: Unread::default(),
        }
    }
}
