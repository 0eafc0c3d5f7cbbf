//! Events of models without a protocol of their own on Bedrock: text, a finish reason, and two counts.
//!
//! | model | text | reason | counts |
//! |---|---|---|---|
//! | Titan | `outputText`, `results[].outputText` | `completionReason` | `inputTextTokenCount`, `totalOutputTextTokenCount` |
//! | Llama | `generation` | `stop_reason` | `prompt_token_count`, `generation_token_count` |
//! | Mistral | `outputs[].text`, `choices[].message` | `stop_reason` | |
//! | DeepSeek | `choices[].text` | `stop_reason` | |
//! | Claude 2 | `completion` | `stop_reason` | |
//! | Cohere | `text`, `generations[].text` | `finish_reason` | |
//!
//! Law: of several answers one is followed.  An answer without `index` has its position in the list.
//!
//! Source: docs.aws.amazon.com, "Inference request parameters and response fields for foundation models", and recordings
//! (Titan).

use super::facts::FACTS;
use crate::contract::InputFormat;
use crate::dialect::choices::{ChoiceNumbers, Followed};
use crate::dialect::protocol::{Frame, Protocol, Wanted};
use crate::dialect::unread::Unread;
use crate::emit::{CallEnd, Counts, PartHandle, PartKind};
use crate::facts::UsageMember;
use crate::json::{self, Kind, Reader, Result, Str};
use crate::limits::Limits;
use crate::sink::DeltaSink;
use crate::template::{Template, Token, Tokens};

/// One event, borrowed from its frame.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Event<'a> {
    text: Option<Str<'a>>,
    calls: Option<&'a str>,
    reason: Option<Str<'a>>,
    input: Option<u64>,
    output: Option<u64>,
    error: Option<&'a str>,
    /// The number of the answer, for events of several answers.
    index: Option<u64>,
    other_answers: bool,
    /// Facts of the answer that no rule knows.
    unread: Unread<'a>,
}

impl<'a> Event<'a> {
    /// Read a member.  The numbers of the answers in a list that are followed go to `shown`.
    fn member(
        &mut self,
        reader: &mut Reader<'a>,
        key: &str,
        wanted: Wanted,
        shown: &mut dyn FnMut(u64),
    ) -> Result<()> {
        match key {
            "outputText" | "generation" | "completion" | "text" => {
                self.text = reader.filled_string()?.or(self.text);
            }
            "completionReason" | "stop_reason" | "finish_reason" => {
                self.reason = reader.filled_string()?.or(self.reason);
            }
            "tool_calls" => self.calls = reader.opt_raw()?.or(self.calls),
            "index" => self.index = reader.count()?,
            "outputs" | "results" | "choices" | "generations" => {
                let mut numbers = ChoiceNumbers::default();
                reader.maybe_array(|reader| self.answer(reader, &mut numbers, wanted, shown))?;
            }
            "error" => self.error = reader.opt_raw()?,
            // Names of an event, and members that repeat the prompt or the answer.
            "type" | "role" | "event_type" | "is_finished" | "prompt" | "response" => {
                reader.ignore()?;
            }
            _ => match FACTS.usage.member(key) {
                Some(UsageMember::Input) => self.input = reader.count()?,
                Some(UsageMember::Output) => self.output = reader.count()?,
                _ => self.unread.fact(reader, key)?,
            },
        }
        Ok(())
    }

    /// Read one of several answers.
    fn answer(
        &mut self,
        reader: &mut Reader<'a>,
        numbers: &mut ChoiceNumbers,
        wanted: Wanted,
        shown: &mut dyn FnMut(u64),
    ) -> Result<()> {
        let mut answer = Self { input: self.input, output: self.output, ..Self::default() };
        reader.maybe_object(|reader, key| match key {
            "message" => reader.maybe_object(|reader, key| match key {
                "content" => {
                    answer.text = reader.filled_string()?.or(answer.text);
                    Ok(())
                }
                _ => answer.member(reader, key, wanted, shown),
            }),
            // An answer holds no further list of answers.
            "outputs" | "results" | "choices" | "generations" => reader.ignore(),
            _ => answer.member(reader, key, wanted, shown),
        })?;
        if let Some(number) = numbers.next(answer.index, "", wanted.followed) {
            shown(number.value);
            self.text = answer.text.or(self.text);
            self.calls = answer.calls.or(self.calls);
            self.reason = answer.reason.or(self.reason);
            self.input = answer.input;
            self.output = answer.output;
            self.unread.join(answer.unread);
        } else {
            self.other_answers = true;
        }
        Ok(())
    }

    /// Remove the content of an event that names another answer.
    fn followed(self, wanted: Wanted) -> Self {
        if self.index.is_none_or(|index| wanted.followed.holds(index)) {
            return Self { index: None, ..self };
        }
        Self { input: self.input, error: self.error, other_answers: true, ..Self::default() }
    }
}

/// Return the numbers of the answers that an event holds; none for an event that is not valid.
pub(super) fn choices(frame: Frame<'_>, limits: &Limits) -> Vec<u64> {
    let wanted = Wanted { followed: Followed::All(limits.choices), logprobs: false };
    let (mut event, mut listed) = (Event::default(), Vec::new());
    let mut reader = Reader::new(frame.json, frame.max_depth);
    let read = reader
        .object(|reader, key| event.member(reader, key, wanted, &mut |number| listed.push(number)));
    let Event { text, calls, reason, .. } = event;
    if read.and_then(|()| reader.end()).is_err() {
        listed.clear();
    } else if listed.is_empty() {
        let says = text.is_some() || calls.is_some() || reason.is_some();
        listed.extend(event.index.or(says.then_some(0)));
    }
    listed
}

/// The events that repeat: those with only text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct EventTemplate(Token);

impl Template for EventTemplate {
    type Event<'a> = Event<'a>;

    fn has_facts(event: &Event<'_>) -> bool {
        !event.unread.is_empty()
    }

    fn from_event(event: &Event<'_>, tokens: &mut Tokens<'_>) -> Option<Self> {
        let text = event.text?;
        let unread = event.unread.clone();
        let alone = *event == Event { text: Some(text), unread, ..Event::default() };
        alone.then(|| Self(tokens.changing(text)))
    }

    #[inline]
    fn fill<'a>(&self, text: impl Fn(Token) -> Str<'a>) -> Event<'a> {
        Event { text: Some(text(self.0)), ..Event::default() }
    }
}

/// The state of a stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct State {
    part: Option<PartHandle>,
    counts: Counts,
}

impl Protocol for State {
    type EventTemplate = EventTemplate;

    fn read<'a>(_: Frame<'a>, reader: &mut Reader<'a>, wanted: Wanted) -> Result<Event<'a>> {
        let mut event = Event::default();
        reader.object(|reader, key| event.member(reader, key, wanted, &mut |_| {}))?;
        reader.end()?;
        Ok(event.followed(wanted))
    }

    fn apply(&mut self, event: &Event<'_>, sink: &mut DeltaSink<'_>) {
        if let Some(json) = event.error {
            return sink.error(sink.failure(json));
        }
        event.unread.send(sink);
        if event.other_answers {
            sink.warn_other_choices("answers");
        }
        if let Some(text) = event.text {
            let part = *self.part.get_or_insert_with(|| sink.open_part(PartKind::Text));
            sink.text(part, text);
        }
        if let Some(calls) = event.calls {
            self.close(sink);
            // `read` validated the JSON, so that an error here only means a value that is not a list.
            let _ = Reader::trusted(calls).maybe_array(|reader| call(reader, sink));
        }
        if event.input.is_some() || event.output.is_some() {
            self.counts.input = event.input.or(self.counts.input);
            self.counts.output = event.output.or(self.counts.output);
            let number = |count: Option<u64>| count.map_or("null".to_owned(), |c| c.to_string());
            let (input, output) = (number(self.counts.input), number(self.counts.output));
            let raw = json::write_object(&[
                ("inputTokenCount", input.as_str()),
                ("outputTokenCount", output.as_str()),
            ]);
            sink.usage(&self.counts, &raw);
        }
        if let Some(reason) = event.reason {
            finish(reason, sink);
        }
    }

    fn close(&mut self, sink: &mut DeltaSink<'_>) {
        if let Some(part) = self.part.take() {
            sink.end_part(part);
        }
    }
}

/// Emit a whole call.  Mistral's form wraps it in `function`; Cohere's form has `parameters`.
fn call(reader: &mut Reader<'_>, sink: &mut DeltaSink<'_>) -> Result<()> {
    let (mut id, mut name, mut arguments) = (None, None, None);
    let mut member = |reader: &mut Reader<'_>, key: &str| {
        match key {
            "id" => id = reader.scalar()?.map(|id| id.text()),
            "name" => name = reader.filled_string()?.map(|name| name.text()),
            "arguments" if reader.kind()? == Kind::String => {
                arguments = Some(reader.string()?.text());
            }
            "arguments" | "parameters" => arguments = reader.opt_raw()?.map(str::to_owned),
            _ => reader.skip()?,
        }
        Ok(())
    };
    reader.maybe_object(|reader, key| match key {
        "function" => reader.maybe_object(&mut member),
        _ => member(reader, key),
    })?;
    if name.is_some() || arguments.is_some() {
        let call = sink.open_call(InputFormat::Json);
        sink.name_call(call, id.as_deref().map(Str::plain), name.as_deref().map(Str::plain));
        sink.call_args(call, Str::plain(arguments.as_deref().unwrap_or("")));
        sink.end_call(call, CallEnd::Provider);
    }
    Ok(())
}

fn finish(reason: Str<'_>, sink: &mut DeltaSink<'_>) {
    let raw = reason.text();
    sink.finish_word(&FACTS.finish_reasons, &raw);
}
