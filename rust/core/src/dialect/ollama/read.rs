//! Reader of Ollama lines: one line → one [`Event`].

use crate::contract::Logprobs;
use crate::dialect::openai_chat::logprobs::read_entries;
use crate::dialect::protocol::{Frame, Wanted};
use crate::dialect::unread::Unread;
use crate::json::{Reader, Result, Str};
use crate::template::{Template, Token, Tokens};

/// Members of the last line that make up the usage record.
pub(super) const USAGE: [&str; 6] = [
    "total_duration",
    "load_duration",
    "prompt_eval_count",
    "prompt_eval_duration",
    "eval_count",
    "eval_duration",
];

/// One line, borrowed from its frame.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Event<'a> {
    pub(super) model: Option<Str<'a>>,
    pub(super) thinking: Option<Str<'a>>,
    pub(super) text: Option<Str<'a>>,
    /// A list of calls.
    pub(super) calls: Option<&'a str>,
    /// Log probabilities, if the caller wants them and the line has any.
    pub(super) logprobs: Option<Box<Logprobs>>,
    /// The whole line, if it is the last.
    pub(super) done: Option<&'a str>,
    pub(super) reason: Option<Str<'a>>,
    pub(super) error: Option<&'a str>,
    /// Facts of the answer that no rule knows.
    pub(super) unread: Unread<'a>,
    /// A member of an answer of Cohere, which has a `message` too.
    is_foreign: bool,
}

/// The lines that repeat: those with only text or thinking.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EventTemplate {
    model: Option<Token>,
    thinking: Option<Token>,
    text: Option<Token>,
}

impl Template for EventTemplate {
    type Event<'a> = Event<'a>;

    fn has_facts(event: &Event<'_>) -> bool {
        !event.unread.is_empty()
    }

    fn from_event(event: &Event<'_>, tokens: &mut Tokens<'_>) -> Option<Self> {
        let Event { model, thinking, text, .. } = *event;
        let unread = event.unread.clone();
        let alone = *event == Event { model, thinking, text, unread, ..Event::default() };
        (alone && (thinking.is_some() || text.is_some())).then(|| Self {
            model: model.map(|model| tokens.rarely_changing(model)),
            thinking: thinking.map(|text| tokens.changing(text)),
            text: text.map(|text| tokens.changing(text)),
        })
    }

    #[inline]
    fn fill<'a>(&self, text: impl Fn(Token) -> Str<'a>) -> Event<'a> {
        Event {
            model: self.model.map(&text),
            thinking: self.thinking.map(&text),
            text: self.text.map(&text),
            ..Event::default()
        }
    }
}

/// Read a frame.
pub(super) fn read<'a>(
    frame: Frame<'a>,
    reader: &mut Reader<'a>,
    wanted: Wanted,
) -> Result<Event<'a>> {
    let mut event = Event::default();
    reader.object(|reader, key| match key {
        "model" => {
            event.model = reader.filled_string()?;
            Ok(())
        }
        "message" => reader.maybe_object(|reader, key| {
            match key {
                "content" => event.text = reader.filled_string()?,
                "tool_calls" => event.calls = reader.opt_raw()?,
                "thinking" => event.thinking = reader.filled_string()?,
                "role" => reader.ignore()?,
                key => event.unread.content(reader, key)?,
            }
            Ok(())
        }),
        _ => event.member(reader, key, frame, wanted),
    })?;
    reader.end()?;
    if event.is_foreign {
        return Ok(Event { unread: event.unread, ..Event::default() });
    }
    Ok(event)
}

impl<'a> Event<'a> {
    fn member(
        &mut self,
        reader: &mut Reader<'a>,
        key: &str,
        frame: Frame<'a>,
        wanted: Wanted,
    ) -> Result<()> {
        match key {
            // `/api/generate` sends these members at the top level, without a `message` object.
            "response" => self.text = reader.filled_string()?.or(self.text),
            "thinking" => self.thinking = reader.filled_string()?.or(self.thinking),
            "tool_calls" => self.calls = reader.opt_raw()?.or(self.calls),
            "done" => self.done = (reader.boolean()? == Some(true)).then_some(frame.json),
            "finish_reason" => {
                self.is_foreign = true;
                self.unread.fact(reader, key)?;
            }
            "done_reason" => self.reason = reader.filled_string()?,
            "error" => self.error = reader.opt_raw()?.filter(|raw| *raw != "\"\""),
            "logprobs" if wanted.logprobs => {
                let mut logprobs = Logprobs::default();
                read_entries(reader, &mut logprobs)?;
                self.logprobs = (!logprobs.is_empty()).then(|| Box::new(logprobs));
            }
            "logprobs" => self.logprobs = Wanted::unread_logprobs(reader)?,
            "context" => reader.skip()?,
            "created_at" => reader.ignore()?,
            key if USAGE.contains(&key) => reader.ignore()?,
            key => self.unread.fact(reader, key)?,
        }
        Ok(())
    }
}
