//! Grammar of Harmony, the messages of gpt-oss: channels, recipients, constraints.
//!
//! ```text
//! <|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"a":1}<|call|>
//! ```
//!
//! In: the text after `<|start|>` or `<|channel|>`.  Out: thinking, text and calls.
//!
//! Laws: a header is short and names one of the three channels; other text is prose.  A recipient other than `assistant`
//! makes a call.  The body of a call, up to the next end token, is its arguments.  Each message is a separate part.
//!
//! Source: docs/protocols/inline-markup.md#harmony; cookbook.openai.com, "OpenAI harmony response format".

use super::literals::{Found, find, from, upto};
use super::writer::{MarkupWriter, Next, Step, next_byte};
use crate::contract::InputFormat;
use crate::emit::{CallEnd, EmitterSink, PartKind};

/// Marker between headers and bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marker {
    Start,
    Channel,
    Constrain,
    Message,
    End,
}

const MARKERS: &[(&str, Marker)] = &[
    (START, Marker::Start),
    (CHANNEL, Marker::Channel),
    ("<|constrain|>", Marker::Constrain),
    ("<|message|>", Marker::Message),
    ("<|end|>", Marker::End),
    ("<|call|>", Marker::End),
    ("<|return|>", Marker::End),
];

/// Start of a message.
pub(super) const START: &str = "<|start|>";

/// Start of the name of a channel.
pub(super) const CHANNEL: &str = "<|channel|>";

const ROLE: &str = "assistant";

const CHANNELS: &[&str] = &["analysis", "commentary", "final"];

/// Maximum length of a header.
const HEADER_BYTES: usize = 512;

/// Messages that are being parsed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct HarmonyBlock {
    state: HarmonyState,
    header: String,
    body: Option<Body>,
    /// True after the first byte of the body.
    begun: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HarmonyState {
    Header,
    Body,
    Between,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Body {
    Text(PartKind),
    Call,
}

impl HarmonyBlock {
    /// Build a block after the marker that begins a header.
    pub(super) fn new(marker: &str) -> Self {
        let mut block =
            Self { state: HarmonyState::Header, header: String::new(), body: None, begun: false };
        block.begin_header(marker);
        block
    }

    /// Build a block in the middle of an analysis.
    pub(super) fn thinking() -> Self {
        let body = Some(Body::Text(PartKind::Thinking));
        Self { state: HarmonyState::Body, header: String::new(), body, begun: false }
    }

    pub(super) fn held(&self) -> usize {
        self.header.len()
    }

    /// Return the kind of the text that is being parsed; `None` outside of text.
    pub(super) fn kind(&self) -> Option<PartKind> {
        match (self.state, self.body) {
            (HarmonyState::Body | HarmonyState::Header, Some(Body::Text(kind))) => Some(kind),
            _ => None,
        }
    }

    /// Return the ending of a call without its end token.  Servers drop end tokens, so a call with arguments may be whole.
    pub(super) fn end(&self, how: CallEnd) -> CallEnd {
        if self.begun { how } else { CallEnd::Abandoned }
    }

    fn begin_header(&mut self, marker: &str) {
        self.state = HarmonyState::Header;
        self.header.clear();
        if marker == CHANNEL {
            self.header.push_str(CHANNEL);
        }
    }

    pub(super) fn step(
        &mut self,
        input: &str,
        writer: &mut MarkupWriter,
        sink: &mut EmitterSink<'_>,
    ) -> Step {
        match self.state {
            HarmonyState::Header => self.header(input, writer, sink),
            HarmonyState::Body => self.body(input, writer, sink),
            HarmonyState::Between => match next_byte(input) {
                Next::Step(step) => step,
                Next::Byte(_) => match super::literals::here(input, 0, MARKERS, begins) {
                    Found::Partial(_) => Step::Wait,
                    Found::At { end, .. } => {
                        writer.begin_candidate("");
                        self.begin_header(upto(input, end));
                        Step::Take(end)
                    }
                    Found::Nothing => Step::Leave(0),
                },
            },
        }
    }

    fn header(
        &mut self,
        input: &str,
        writer: &mut MarkupWriter,
        sink: &mut EmitterSink<'_>,
    ) -> Step {
        let found = find(input, 0, MARKERS, |_, _| true);
        let end = match found {
            Found::At { start, .. } | Found::Partial(start) => start,
            Found::Nothing => input.len(),
        };
        self.header.push_str(upto(input, end));
        if self.header.len() > HEADER_BYTES || !self.is_header() {
            return self.no_header(upto(input, end), writer, sink);
        }
        match found {
            Found::At { end, role: Marker::Message, .. } => match self.read_header() {
                Some(header) => {
                    writer.end_call(CallEnd::Provider, sink);
                    writer.leave_part();
                    writer.take_candidate();
                    match header.recipient {
                        Some(name) => {
                            let format = header.format;
                            writer.begin_call(&name, None, format, sink);
                            self.body = Some(Body::Call);
                        }
                        None => self.body = Some(Body::Text(header.kind)),
                    }
                    self.state = HarmonyState::Body;
                    self.begun = false;
                    Step::Take(end)
                }
                None => self.no_header(upto(input, end), writer, sink),
            },
            Found::At { end: taken, role: Marker::Channel | Marker::Constrain, .. } => {
                self.header.push_str(upto(from(input, end), taken - end));
                Step::Take(taken)
            }
            Found::At { .. } => self.no_header(upto(input, end), writer, sink),
            Found::Partial(0) => Step::Wait,
            Found::Partial(_) | Found::Nothing => Step::Take(end),
        }
    }

    /// Treat the text of a supposed header as part of the body before it.  Without a body the text is prose.
    fn no_header(
        &mut self,
        read: &str,
        writer: &mut MarkupWriter,
        sink: &mut EmitterSink<'_>,
    ) -> Step {
        let Some(body) = self.body else { return Step::Prose(read.len()) };
        let mut text = writer.take_candidate().unwrap_or_default();
        text.push_str(read);
        self.state = HarmonyState::Body;
        write_text(body, &text, writer, sink);
        Step::Take(read.len())
    }

    /// Return true if the text so far may be the beginning of a header.
    fn is_header(&self) -> bool {
        let (role, channel) = match self.header.split_once(CHANNEL) {
            Some((role, channel)) => (role, Some(channel.trim_start())),
            None => (self.header.as_str(), None),
        };
        let seen = role.len().min(ROLE.len());
        let is_role = upto(ROLE, seen) == upto(role, seen);
        let is_channel = channel.is_none_or(|channel| {
            let end = channel.find(|c: char| !c.is_ascii_alphabetic());
            let word = upto(channel, end.unwrap_or(channel.len()));
            let known =
                |name: &&str| if end.is_some() { *name == word } else { name.starts_with(word) };
            CHANNELS.iter().any(known)
        });
        is_role && is_channel
    }

    fn read_header(&self) -> Option<Header> {
        let (role, rest) = self.header.split_once(CHANNEL).unwrap_or((&self.header, "final"));
        let rest = rest.trim_start();
        let word = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let channel = upto(rest, word);
        let is_role = role.is_empty() || role.starts_with(ROLE);
        if !is_role || !CHANNELS.contains(&channel) {
            return None;
        }
        let recipient = recipient(role).or_else(|| recipient(rest)).filter(|to| *to != ROLE);
        let format = match recipient {
            // The recipient `python` takes code.
            Some("python") => InputFormat::Text,
            _ => InputFormat::Json,
        };
        let name = recipient.map(|to| to.strip_prefix("functions.").unwrap_or(to).to_owned());
        let kind = if channel == "analysis" { PartKind::Thinking } else { PartKind::Text };
        Some(Header { kind, recipient: name.filter(|name| !name.is_empty()), format })
    }

    fn body(&mut self, input: &str, writer: &mut MarkupWriter, sink: &mut EmitterSink<'_>) -> Step {
        let found = find(input, 0, MARKERS, |marker, _| begins(marker) || marker == Marker::End);
        let end = match found {
            Found::At { start, .. } | Found::Partial(start) => start,
            Found::Nothing => input.len(),
        };
        if let Some(body) = self.body {
            self.begun |= end > 0;
            write_text(body, upto(input, end), writer, sink);
        }
        match found {
            Found::At { end, role: Marker::End, .. } => {
                writer.end_call(CallEnd::Provider, sink);
                writer.leave_part();
                self.body = None;
                self.state = HarmonyState::Between;
                Step::Take(end)
            }
            Found::At { start, .. } if start > 0 => Step::Take(start),
            Found::At { end, .. } => {
                // The end token of the message before may be missing.
                writer.begin_candidate("");
                self.begin_header(upto(input, end));
                Step::Take(end)
            }
            Found::Partial(0) => Step::Wait,
            Found::Partial(_) | Found::Nothing => Step::Take(end),
        }
    }
}

struct Header {
    kind: PartKind,
    recipient: Option<String>,
    format: InputFormat,
}

fn begins(marker: Marker) -> bool {
    matches!(marker, Marker::Start | Marker::Channel)
}

fn write_text(body: Body, text: &str, writer: &mut MarkupWriter, sink: &mut EmitterSink<'_>) {
    match body {
        Body::Text(kind) => writer.write_text(kind, text, sink),
        Body::Call => writer.args(text, sink),
    }
}

/// Return the recipient that a piece of a header names.
fn recipient(header: &str) -> Option<&str> {
    let (_, to) = header.split_once("to=")?;
    let end = to.find(|c: char| c.is_whitespace() || c == '<').unwrap_or(to.len());
    Some(upto(to, end))
}
