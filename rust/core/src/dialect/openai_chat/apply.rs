//! State of a Chat Completions stream, and the application of events to it.

use super::audio::Audio;
use super::calls::{CallPlace, Calls};
use super::carriers::{citations, each_thinking};
use super::executed_tools::ExecutedTools;
use super::filters::FilterResults;
use super::logprobs::Tokens;
use super::read::{
    self, Arguments, Choice, Chunk, Event, Message, RareContent, RareMembers, ToolCall,
};
use super::reasoning::{Thinking, each_text};
use super::safeguards::warn_of_flagged_calls;
use super::templates::EventTemplate;

use super::facts::{FACTS, TIMINGS};
use crate::contract::{ErrorCode, Failure, InputFormat, Logprobs};
use crate::dialect::protocol::{Frame, Protocol, Wanted};
use crate::dialect::unread::Unread;
use crate::emit::{Counts, PartHandle, PartKind};
use crate::json::{self, Reader, Result, Str};
use crate::limits::Limits;
use crate::sink::DeltaSink;
use crate::template::is_one_line;

/// The state of a stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    /// The open part.  Text of the same kind extends it.
    current: Option<(PartKind, PartHandle)>,
    last_text: Option<PartHandle>,
    thinking: Thinking,
    calls: Calls,
    citations: Option<String>,
    search_results: Option<String>,
    audio: Option<Audio>,
    filter_results: FilterResults,
    executed_tools: ExecutedTools,
    /// The message arrived whole, not in deltas.  Then `{}` as arguments is the real value and not a placeholder.
    whole: bool,
    /// Memory for the log probabilities of a chunk.
    tokens: TokenMemory,
}

/// Memory for log probabilities between two chunks.  Its content does not belong to the state: a template that matches an
/// event in part reads into it, and the next event begins with an empty list.
#[derive(Clone, Debug, Default)]
struct TokenMemory(Option<Box<Tokens>>);

impl PartialEq for TokenMemory {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Protocol for State {
    type EventTemplate = EventTemplate;
    const HAS_CHOICES: bool = true;

    fn read<'a>(frame: Frame<'a>, reader: &mut Reader<'a>, wanted: Wanted) -> Result<Event<'a>> {
        read::read(frame, reader, wanted)
    }

    fn read_object(&mut self, reader: &mut Reader<'_>) -> bool {
        let (start, rest) = (reader.position(), reader.cursor().rest());
        let is_read = self.read_tokens(reader);
        let read = rest.as_bytes().get(..reader.position().saturating_sub(start));
        is_read && read.is_some_and(is_one_line)
    }

    fn swap_object(&mut self, other: &mut Self) {
        std::mem::swap(&mut self.tokens, &mut other.tokens);
    }

    fn show_choices(&self, event: &Event<'_>, _: &Limits, shown: &mut dyn FnMut(u64)) {
        match event {
            Event::More { number, .. } => shown(*number),
            Event::Chunk(chunk) => chunk.choices().for_each(|choice| shown(choice.number.value)),
        }
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "an event of a template is never put together then")]
    fn apply(&mut self, event: &Event<'_>, sink: &mut DeltaSink<'_>) {
        match event {
            Event::More { number, message, logprobs, other_choices } => {
                let is_followed = *number == sink.options().choice;
                if *other_choices || !is_followed {
                    sink.warn_other_choices("choices");
                }
                if is_followed {
                    self.message(message, sink);
                    if *logprobs {
                        self.emit_logprobs(sink);
                    }
                }
            }
            Event::Chunk(Chunk { failed: Some(json), .. }) => {
                self.close(sink);
                sink.error(sink.failure(json));
            }
            Event::Chunk(chunk) => {
                if let Some(foreign) = chunk.rare.as_ref().and_then(|rare| rare.foreign) {
                    self.close(sink);
                    let message = format!("no chat answer was recognised; this is {foreign}");
                    return sink.error(Failure::new(ErrorCode::ProtocolError, message.into()));
                }
                self.chunk(chunk, sink);
            }
        }
    }

    fn close(&mut self, sink: &mut DeltaSink<'_>) {
        self.send_thinking_state(sink);
        let lists =
            [("citations", self.citations.take()), ("search_results", self.search_results.take())];
        for (name, list) in lists {
            if let Some(list) = list {
                let part = match self.last_text {
                    Some(part) => part,
                    None => self.part(PartKind::Text, sink),
                };
                sink.annotate_list(part, name, &list);
            }
        }
        self.filter_results.send(sink);
        self.executed_tools.send(sink);
        if let Some(audio) = self.audio.take() {
            audio.send(sink);
        }
    }
}

impl State {
    #[inline(never)]
    fn chunk(&mut self, chunk: &Chunk<'_>, sink: &mut DeltaSink<'_>) {
        sink.identity(chunk.model, chunk.id);
        sink.text_detail("system_fingerprint", chunk.fingerprint);
        sink.service_tier(chunk.service_tier);
        // Some servers write 0 for a time that they do not know.
        sink.details(chunk.created.filter(|created| *created != "0").map(|time| ("created", time)));
        if let Some(error) = chunk.rare.as_ref().and_then(|rare| rare.error) {
            let failure = sink.failure(error);
            sink.defer_error(failure);
        }
        let number = sink.options().choice;
        let mut followed = chunk.choices().filter(|choice| choice.number.value == number);
        let first = followed.next();
        if sink.follows_all() {
            // Each of the choices is an answer of its own.
        } else if let Some((other, message)) = chunk.other_message(number) {
            warn_other_message(Some(other), message, sink);
        } else if chunk.other_choices || chunk.choices().any(|choice| choice.number.value != number)
        {
            sink.warn_other_choices("choices");
        }
        if let Some(rare) = &chunk.rare {
            self.lists(rare);
            rare.unread.send(sink);
            if let Some(results) = rare.safeguard_results {
                sink.late_detail("safeguard_results", results);
                warn_of_flagged_calls(results, sink);
            }
        }
        let mut reason = None;
        let said = sink.said();
        let begins = self.is_empty();
        for choice in first.into_iter().chain(followed) {
            self.choice(choice, begins, sink);
            // A plain stop of one piece says less than the reason of another.
            let stops = choice.finish_reason.is_some_and(|reason| reason.raw == "stop");
            reason = if stops {
                reason.or(choice.finish_reason)
            } else {
                choice.finish_reason.or(reason)
            };
        }
        if let Some(reason) = reason {
            self.finish(reason, sink);
        }
        let vendor_usage = || chunk.rare.as_ref().and_then(|rare| rare.vendor_usage);
        let own_usage = || first.and_then(|choice| choice.usage);
        if let Some(usage) = chunk.usage.or_else(vendor_usage).or_else(own_usage) {
            sink.merge_usage(Some(usage), &FACTS.usage);
            if sink.said() == said {
                sink.counted(usage, &FACTS.usage);
            }
        } else if let (Some(rare), false) = (&chunk.rare, sink.has_usage_record())
            && let Some(timings) = rare.timings
            && let Ok(counts) = Counts::read(&TIMINGS, timings)
        {
            sink.usage(&counts, timings);
        }
        if chunk.whole && first.is_some_and(|choice| !choice.has_delta && choice.message.is_some())
        {
            self.close(sink);
            sink.says_whole();
            sink.end();
        }
    }

    /// Apply an entry.  `begins` is true in the first chunk with content, whose full messages count.
    fn choice(&mut self, choice: &Choice<'_>, begins: bool, sink: &mut DeltaSink<'_>) {
        choice.unread.send(sink);
        if let Some(results) = choice.filter_results {
            self.filter_results.note(results);
        }
        if choice.names_a_stop_string {
            sink.stopped_by_string();
        }
        if choice.has_delta {
            self.message(&choice.delta, sink);
        } else if let Some(json) = choice.message.filter(|_| begins) {
            let mut message = Message::default();
            // `read` validated the JSON, so that an error here only means a value that is not an object.
            let mut unread = Unread::default();
            let _ = read::read_message(&mut Reader::trusted(json), &mut message, &mut unread);
            unread.send(sink);
            if self.takes(&message, sink) {
                self.whole = true;
                self.message(&message, sink);
                self.whole = false;
            } else {
                warn_other_message(None, json, sink);
            }
        }
        if choice.logprobs.unread {
            sink.warn_unread_logprobs();
        }
        if let Some(logprobs) = choice.logprobs.tokens.as_ref().and_then(|tokens| tokens.joined()) {
            self.logprobs(logprobs, sink);
        } else if let Some(json) = choice.logprobs.json
            && self.read_tokens(&mut Reader::trusted(json))
        {
            self.emit_logprobs(sink);
        }
    }

    /// Read log probabilities for [`Self::emit_logprobs`].
    fn read_tokens(&mut self, reader: &mut Reader<'_>) -> bool {
        self.tokens.0.get_or_insert_default().read_anew(reader).is_ok()
    }

    /// Emit the log probabilities that were read last.
    fn emit_logprobs(&mut self, sink: &mut DeltaSink<'_>) {
        let Some(mut tokens) = self.tokens.0.take() else { return };
        if let Some(logprobs) = tokens.join() {
            self.logprobs(logprobs, sink);
        }
        self.tokens.0 = Some(tokens);
    }

    fn logprobs(&mut self, logprobs: &Logprobs, sink: &mut DeltaSink<'_>) {
        let known = self.current.map(|(_, part)| part).or(self.last_text);
        let part = match known.or(self.thinking.part) {
            Some(part) => part,
            None => self.part(PartKind::Text, sink),
        };
        sink.logprobs(part, logprobs);
    }

    /// Return whether a full message belongs to the answer: the first one, and further ones of its number with its calls.
    ///
    /// GitHub Copilot writes the text of one answer and each of its calls as separate choices, of one number or of several.
    /// Two texts of one number are two answers, unless the caller knows better.
    fn takes(&mut self, message: &Message<'_>, sink: &mut DeltaSink<'_>) -> bool {
        if self.is_empty() {
            return true;
        }
        let says = message.content.is_some()
            || message.rare.as_ref().is_some_and(|rare| rare.content_list.is_some());
        if says && self.last_text.is_some() && !sink.options().joined_choices {
            return false;
        }
        self.leave_part(sink);
        true
    }

    /// Return whether no content was emitted.  Only then does a full message count; after deltas it repeats them.
    fn is_empty(&self) -> bool {
        self.last_text.is_none() && self.thinking.part.is_none() && self.calls.is_empty()
    }

    fn finish(&mut self, reason: Str<'_>, sink: &mut DeltaSink<'_>) {
        let raw = reason.unescaped();
        self.send_thinking_state(sink);
        sink.finish_word(&FACTS.finish_reasons, &raw);
    }

    fn message(&mut self, message: &Message<'_>, sink: &mut DeltaSink<'_>) {
        self.reasoning(message, sink);
        let Some(rare) = &message.rare else {
            if let Some(text) = message.content {
                self.text(PartKind::Text, text, sink);
            }
            if let Some(call) = &message.first_call {
                self.tool_call(call, sink);
            }
            return;
        };
        if let Some(blocks) = rare.thinking_blocks {
            self.thinking.add_blocks(blocks, sink);
        }
        if let Some(blocks) = rare.content_blocks.filter(|_| rare.thinking_blocks.is_none()) {
            let has_text = message.reasoning_content.or(message.reasoning).is_some();
            each_thinking(blocks, |text, block| {
                if let Some(text) = text.filter(|_| !has_text) {
                    self.text(PartKind::Thinking, text, sink);
                }
                self.thinking.add_blocks(&format!("[{block}]"), sink);
            });
        }
        if let Some(text) = message.content {
            self.text(PartKind::Text, text, sink);
        }
        self.rare_content(rare, sink);
        for call in message.first_call.iter().chain(&rare.more_calls) {
            self.tool_call(call, sink);
        }
        if let Some(extra) = rare.extra_content {
            let part = match self.last_text {
                Some(part) => part,
                None => self.part(PartKind::Text, sink),
            };
            sink.part_state(part, &json::object(|state| state.json("extra_content", extra)));
        }
        let annotations = rare.annotations.filter(|list| *list != "[]");
        let citations = rare.provider_fields.map(citations).unwrap_or_default();
        if annotations.is_some() || !citations.is_empty() {
            let part = match self.last_text {
                Some(part) => part,
                None => self.part(PartKind::Text, sink),
            };
            for annotations in annotations.into_iter().chain(citations) {
                sink.annotate(part, annotations);
            }
        }
    }

    /// Emit the reasoning of a message, and keep its details.
    #[inline]
    fn reasoning(&mut self, message: &Message<'_>, sink: &mut DeltaSink<'_>) {
        let text = message.reasoning_content.or(message.reasoning);
        let Some(details) = message.reasoning_details else {
            if let Some(text) = text {
                if message.rare.is_none() {
                    self.thinking.said(text);
                }
                self.text(PartKind::Thinking, text, sink);
            }
            return;
        };
        match text {
            Some(text) => self.text(PartKind::Thinking, text, sink),
            None if self.thinking.is_repetition(details) => {}
            None => each_text(details, |text| self.text(PartKind::Thinking, text, sink)),
        }
        // Must follow the text, which may have opened a new part: the details belong to that part.
        self.thinking.add_details(details, sink);
    }

    fn rare_content(&mut self, rare: &RareContent<'_>, sink: &mut DeltaSink<'_>) {
        if let Some(list) = rare.content_list {
            // `read` validated the JSON, so that an error here only means a value that is not a list.
            let _ = Reader::trusted(list).array(|reader| self.content_item(reader, sink));
        }
        if let Some(text) = rare.refusal {
            sink.refused();
            self.text(PartKind::Refusal, text, sink);
        }
        if let Some(images) = rare.images {
            self.images(images, sink);
        }
        if let Some(audio) = rare.audio {
            self.audio(audio, sink);
        }
        if let Some(tools) = rare.executed_tools.filter(|list| *list != "[]") {
            self.executed_tools.take(tools, sink);
        }
    }

    fn lists(&mut self, rare: &RareMembers<'_>) {
        for (place, value) in
            [(&mut self.citations, rare.citations), (&mut self.search_results, rare.search_results)]
        {
            if let Some(value) = value.filter(|value| *value != "[]") {
                *place = Some(value.to_owned());
            }
        }
    }

    /// Return the part that text of this kind extends.  Opens a new part if the kind changed.
    #[inline]
    pub(super) fn part(&mut self, kind: PartKind, sink: &mut DeltaSink<'_>) -> PartHandle {
        match self.current {
            Some((known, part)) if known == kind => part,
            _ => self.open_part(kind, sink),
        }
    }

    #[inline(never)]
    fn open_part(&mut self, kind: PartKind, sink: &mut DeltaSink<'_>) -> PartHandle {
        self.leave_part(sink);
        if kind != PartKind::Thinking {
            self.send_thinking_state(sink);
        } else if self.thinking.part.is_some() {
            self.send_thinking_state(sink);
            self.thinking = Thinking::default();
        }
        let part = sink.open_part(kind);
        self.current = Some((kind, part));
        if kind == PartKind::Thinking {
            self.thinking.part = Some(part);
        } else {
            self.last_text = Some(part);
        }
        part
    }

    pub(super) fn leave_part(&mut self, sink: &mut DeltaSink<'_>) {
        if let Some((kind, part)) = self.current.take() {
            // Before the end: an encoder writes the state of a part with its last block.
            if kind == PartKind::Thinking {
                self.send_thinking_state(sink);
            }
            sink.end_part(part);
        }
    }

    #[inline]
    pub(super) fn text(&mut self, kind: PartKind, text: Str<'_>, sink: &mut DeltaSink<'_>) {
        if text.is_empty() {
            return;
        }
        let part = match self.current {
            Some((known, part)) if known == kind => part,
            _ => {
                self.note_mirrored(kind, text, sink);
                self.open_part(kind, sink)
            }
        };
        sink.text(part, text);
    }

    /// Warn of a first text that begins with the tag of reasoning, beside reasoning in a member of its own.
    ///
    /// MiniMax writes its reasoning into both.
    fn note_mirrored(&self, kind: PartKind, text: Str<'_>, sink: &mut DeltaSink<'_>) {
        if kind == PartKind::Text
            && self.last_text.is_none()
            && self.thinking.part.is_some()
            && text.raw.trim_start().starts_with("<think>")
        {
            let message =
                "the text begins with <think>, and its reasoning came in a member of its own too";
            sink.warn("mirrored_reasoning", message, None);
        }
    }

    fn audio(&mut self, json: &str, sink: &mut DeltaSink<'_>) {
        let audio = self.audio.get_or_insert_default();
        let Some(text) = audio.read(json, sink) else { return };
        let part = if let Some(part) = audio.transcript {
            part
        } else {
            let state = audio.transcript_state();
            self.open_transcript(&state, sink)
        };
        sink.text(part, text);
    }

    /// Open the part of a transcript.  Its state comes first, because writers tell it from other text by its state.
    fn open_transcript(&mut self, state: &str, sink: &mut DeltaSink<'_>) -> PartHandle {
        self.leave_part(sink);
        let part = sink.open_part(PartKind::Text);
        sink.part_state(part, state);
        self.last_text = Some(part);
        if let Some(audio) = &mut self.audio {
            audio.transcript = Some(part);
        }
        part
    }

    fn tool_call(&mut self, item: &ToolCall<'_>, sink: &mut DeltaSink<'_>) {
        let place =
            if self.whole { CallPlace::of_element(item) } else { self.calls.find(item, sink) };
        let handle = match place {
            CallPlace::Nowhere => return,
            CallPlace::Known(at) => self.calls.named(at, item),
            CallPlace::New => {
                self.leave_part(sink);
                self.send_thinking_state(sink);
                let format = if item.custom { InputFormat::Text } else { InputFormat::Json };
                let handle = if self.whole {
                    sink.open_verbatim_call(format)
                } else {
                    sink.open_call(format)
                };
                self.calls.add(handle, item);
                Some(handle)
            }
        };
        let Some(handle) = handle else { return };
        if let Some(extra) = item.extra_content {
            sink.call_state(handle, &json::object(|state| state.json("extra_content", extra)));
        }
        sink.name_call(handle, item.id, item.name);
        let text = match item.arguments {
            Some(Arguments::Text(text)) => text,
            Some(Arguments::Json(raw)) => Str::plain(raw),
            None => return,
        };
        sink.call_args(handle, text);
    }

    /// Emit the provider state of the reasoning, if it changed since it was last emitted.
    fn send_thinking_state(&mut self, sink: &mut DeltaSink<'_>) {
        if !std::mem::take(&mut self.thinking.unsent) {
            return;
        }
        let data = self.thinking.to_json();
        match self.thinking.part {
            Some(part) => sink.part_state(part, &data),
            None => self.thinking.part = Some(sink.redacted(&data)),
        }
    }
}

/// Warn of a choice of a whole body that is not part of the answer, by its content and its number; `None` for the number of
/// the answer.
fn warn_other_message(number: Option<u64>, json: &str, sink: &mut DeltaSink<'_>) {
    let mut message = Message::default();
    let unread = &mut Unread::default();
    let _ = read::read_message(&mut Reader::trusted(json), &mut message, unread);
    let what = match message.first_call {
        Some(_) => "a tool call",
        None => "another answer",
    };
    let which = match number {
        Some(number) => format!("choice {number}"),
        None => "a second choice of the same number".to_owned(),
    };
    sink.warn("other_choices", &format!("{which} holds {what} and is not followed"), None);
}
