//! Contents of a message, and paragraphs of a reasoning item.
//!
//! In: texts with their `content_index` or `summary_index`, and the whole item.  Out: operations on parts.
//!
//! Laws:
//! - Each content of a message is a part of its own.  A reasoning item is one part.
//! - An index separates contents and is not a position in the list: one gateway begins at 1, others repeat one index or
//!   send none.  Text after the end of a content therefore opens another content.

use std::collections::BTreeMap;

use super::read::Content;
use crate::contract::Logprobs;
use crate::dialect::openai_chat::logprobs::read_entries;
use crate::dialect::unread::Unread;
use crate::emit::{PartHandle, PartKind};
use crate::json::{self, Kind, Reader, Result, Str};
use crate::sink::DeltaSink;

/// The contents of a message, in the order in which they were opened.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Message {
    contents: Vec<MessageContent>,
    /// The latest content with an index, text and refusals apart.
    by_index: BTreeMap<(i64, bool), usize>,
    /// The latest text and the latest refusal.
    latest: [Option<usize>; 2],
    /// The content that received text last.
    last: usize,
    announced: Announced,
    /// The first part of an earlier item of this id.
    said_before: Option<PartHandle>,
    /// The item repeats the earlier one.
    is_repeated: bool,
}

/// State of an item that began, from its first event: the item without its content, in progress.
///
/// The part has it before its first text, so that a writer can begin the item under its own id.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Announced(Option<Box<str>>);

impl Announced {
    /// Keep the item of an event if the item has an id and fits into the limits.
    pub(super) fn of(id: Option<Str<'_>>, item: &str, sink: &mut DeltaSink<'_>) -> Self {
        let is_kept = id.is_some() && sink.take_state_bytes(item.len());
        Self(is_kept.then(|| {
            let kept = without(item, &["content", "summary", "encrypted_content"]);
            json::merge_objects(&kept, "{\"status\":\"in_progress\"}").into()
        }))
    }

    /// Emit the state of a part that opens, once.  An item of raw reasoning begins with an empty list of contents.
    #[cold]
    fn send(&mut self, part: PartHandle, is_raw: bool, sink: &mut DeltaSink<'_>) {
        if let Some(state) = self.0.take() {
            sink.give_back_state_bytes(state.len());
            if is_raw {
                sink.part_state(part, &json::merge_objects(&state, "{\"content\":[]}"));
            } else {
                sink.part_state(part, &state);
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct MessageContent {
    index: i64,
    refusal: bool,
    part: PartHandle,
    /// The whole text arrived.
    ended: bool,
}

impl Message {
    /// Begin a message whose item was announced.  An earlier item of its id began with the part `said_before`.
    pub(super) fn announced(announced: Announced, said_before: Option<PartHandle>) -> Self {
        Self { announced, said_before, ..Self::default() }
    }

    /// Return the first part.
    pub(super) fn first_part(&self) -> Option<PartHandle> {
        self.contents.first().map(|content| content.part)
    }

    /// Return the part that received text last.
    pub(super) fn last_part(&self) -> Option<PartHandle> {
        self.contents.get(self.last).map(|content| content.part)
    }

    /// Return the text part with an index, or the part that received text last.
    pub(super) fn part_at(&self, index: Option<i64>) -> Option<PartHandle> {
        let named = index.and_then(|index| self.by_index.get(&(index, false)));
        let named = named.and_then(|at| self.contents.get(*at));
        named.map(|content| content.part).or(self.last_part())
    }

    /// Accept a delta of a content, or the whole of its text.
    #[inline]
    pub(super) fn take(
        &mut self,
        content: Content,
        index: Option<i64>,
        text: Str<'_>,
        whole: bool,
        sink: &mut DeltaSink<'_>,
    ) {
        let refusal = content == Content::Refusal;
        let known = match self.contents.get(self.last) {
            Some(last) if last.is_named(index, refusal) && !last.ended => Some(self.last),
            _ => self.find(index, refusal, whole),
        };
        let at = known.unwrap_or_else(|| self.open(index, refusal, sink));
        self.last = at;
        let is_said = whole && self.is_said(at, &text.text(), sink);
        let Some(content) = self.contents.get_mut(at) else { return };
        if !is_said {
            say(content.part, text, whole, sink);
        }
        if whole {
            content.ended = true;
            sink.end_part(content.part);
        }
    }

    /// Return true if an earlier item of the id said a whole text, or if the contents of its index did together.
    ///
    /// A gateway adds a part again under its index, and writes the text of all of them as the whole text of each.
    #[cold]
    fn is_said(&mut self, at: usize, text: &str, sink: &DeltaSink<'_>) -> bool {
        let Some(content) = self.contents.get(at).copied().filter(|_| !text.is_empty()) else {
            return false;
        };
        let own = sink.rest_after(content.part, text);
        if own == Some(text) && self.repeats(text, sink) {
            return true;
        }
        let of_index = self.contents.iter().take(at + 1);
        let mut of_index = of_index
            .filter(|one| (one.index, one.refusal) == (content.index, content.refusal))
            .map(|one| one.part);
        let rest = of_index.try_fold(text, |rest, part| sink.rest_after(part, rest));
        own.is_none() && rest == Some("")
    }

    /// Return true if an earlier item of the id began with this text and no other.
    fn repeats(&mut self, text: &str, sink: &DeltaSink<'_>) -> bool {
        let repeats = self.said_before.is_some_and(|part| sink.rest_after(part, text) == Some(""));
        self.is_repeated |= repeats;
        repeats
    }

    #[cold]
    fn find(&self, index: Option<i64>, refusal: bool, whole: bool) -> Option<usize> {
        // Without an index, a further whole text belongs to a further content.
        let repeats = whole && index.is_some();
        let at = match index {
            Some(index) => self.by_index.get(&(index, refusal)).copied()?,
            None => self.latest.get(usize::from(refusal)).copied()??,
        };
        let content = self.contents.get(at)?;
        (!content.ended || repeats).then_some(at)
    }

    #[cold]
    fn open(&mut self, index: Option<i64>, refusal: bool, sink: &mut DeltaSink<'_>) -> usize {
        let next = || self.contents.last().map_or(0, |last| last.index.saturating_add(1));
        let index = index.unwrap_or_else(next);
        if refusal {
            sink.refused();
        }
        let kind = if refusal { PartKind::Refusal } else { PartKind::Text };
        let part = sink.open_repeated_block(kind);
        if self.said_before.is_none() {
            self.announced.send(part, false, sink);
        }
        let at = self.contents.len();
        self.contents.push(MessageContent { index, refusal, part, ended: false });
        self.by_index.insert((index, refusal), at);
        if let Some(latest) = self.latest.get_mut(usize::from(refusal)) {
            *latest = Some(at);
        }
        at
    }

    /// Accept the whole item and end the parts.  Return false if it has none.
    pub(super) fn finish(
        &mut self,
        list: Option<&str>,
        item: &str,
        sink: &mut DeltaSink<'_>,
    ) -> bool {
        // Contents are matched by their order.  The sort is stable, so that equal indexes keep the order of their texts.
        self.contents.sort_by_key(|content| (content.index, content.refusal));
        // `read` validated the JSON, so that an error here only means a value that is not a list.
        let _ = self.finish_contents(list, sink);
        if let Some(part) = self.first_part().filter(|_| !self.is_repeated) {
            sink.part_state(part, &without(item, &["content"]));
        }
        for content in &self.contents {
            sink.end_part(content.part);
        }
        let unknown = unknown_contents(list);
        if !unknown.is_empty() && !self.is_repeated {
            // A content goes back inside of a message.  The id is that of the message with the texts.
            let content = format!("[{}]", unknown.join(","));
            let content = json::write_object(&[("content", content.as_str())]);
            let item = without(item, &["id", "content"]);
            sink.provider_part(&json::merge_objects(&item, &content));
        }
        !self.contents.is_empty() || self.is_repeated || !unknown.is_empty()
    }

    /// Send the contents that were not streamed: texts and their annotations.
    fn finish_contents(&mut self, list: Option<&str>, sink: &mut DeltaSink<'_>) -> Result<()> {
        let streamed = self.contents.len();
        let mut position = 0;
        let wants_logprobs = sink.options().logprobs;
        texts(list, |text, content, extras| {
            // The contents of one index are adjacent.
            let name = self.contents.get(position).map(|one| (one.index, one.refusal));
            let same = self.contents.iter().skip(position);
            let same = same.take_while(|one| Some((one.index, one.refusal)) == name).count();
            let whole = text.text();
            if same > 0 && self.is_said(position + same - 1, &whole, sink) {
                position += same;
                return;
            }
            if same == 0 && !whole.is_empty() && self.repeats(&whole, sink) {
                return;
            }
            let is_known = position < streamed;
            let at = if is_known {
                position
            } else {
                self.open(None, content == Content::Refusal, sink)
            };
            position += 1;
            // A content of another kind keeps the part that was streamed.
            let Some(part) = self.contents.get(at).map(|content| content.part) else { return };
            extras.unread.send(sink);
            sink.text_whole(part, text);
            if is_known {
                return;
            }
            if let Some(annotations) = extras.annotations.filter(|list| *list != "[]") {
                sink.annotate(part, annotations);
            }
            if !wants_logprobs && extras.logprobs.is_some_and(|json| json.contains("\"token")) {
                sink.warn_unread_logprobs();
            }
            if let Some(json) = extras.logprobs.filter(|_| wants_logprobs) {
                let mut logprobs = Logprobs::default();
                // `read` validated the JSON, so that an error here only means entries that are no log probabilities.
                let _ = read_entries(&mut Reader::trusted(json), &mut logprobs);
                if !logprobs.is_empty() {
                    sink.logprobs(part, &logprobs);
                }
            }
        })
    }
}

impl MessageContent {
    #[inline]
    fn is_named(&self, index: Option<i64>, refusal: bool) -> bool {
        self.refusal == refusal && index.is_none_or(|index| index == self.index)
    }
}

/// The paragraphs of a reasoning item.  A blank line separates the paragraphs of a summary.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Reasoning {
    part: Option<PartHandle>,
    /// The first source of text: the summary or the reasoning itself.  The other one stays in the provider state.
    source: Option<Content>,
    /// The position of the current paragraph.
    paragraph: i64,
    /// The index that the events give to the current paragraph.
    index: Option<i64>,
    /// The whole text of the current paragraph arrived.
    ended: bool,
    announced: Announced,
}

impl Reasoning {
    /// Begin reasoning whose item was announced.
    pub(super) fn announced(announced: Announced) -> Self {
        Self { announced, ..Self::default() }
    }

    /// Accept a delta of a paragraph, or the whole of its text.
    #[inline]
    pub(super) fn take(
        &mut self,
        content: Content,
        index: Option<i64>,
        text: Str<'_>,
        whole: bool,
        sink: &mut DeltaSink<'_>,
    ) {
        if self.source.is_some_and(|source| source != content) {
            return;
        }
        self.source = Some(content);
        let is_other = self.index.is_some_and(|known| index.is_some_and(|index| index != known));
        if text.is_empty() || (is_other && whole && index < self.index) {
            return;
        }
        // Without an index, a further whole text belongs to a further paragraph.
        let goes_on = !is_other && (!self.ended || (whole && index.is_some()));
        let at = match index {
            Some(index) if self.part.is_none() => index,
            _ if self.part.is_none() || goes_on => self.paragraph,
            index => index
                .filter(|index| *index > self.paragraph)
                .unwrap_or(self.paragraph.saturating_add(1)),
        };
        self.index = index.or(self.index);
        self.say(at, text, whole, sink);
    }

    /// Emit text of the paragraph at a position.
    fn say(&mut self, at: i64, text: Str<'_>, whole: bool, sink: &mut DeltaSink<'_>) {
        let part = match self.part {
            Some(part) if at == self.paragraph => part,
            Some(part) => {
                if self.source == Some(Content::Summary) {
                    sink.text(part, Str::plain("\n\n"));
                }
                sink.begin_paragraph(part);
                part
            }
            None => {
                let part = *self.part.insert(sink.open_repeated_block(PartKind::Thinking));
                self.announced.send(part, self.source == Some(Content::Reasoning), sink);
                part
            }
        };
        self.paragraph = at;
        self.ended = whole;
        say(part, text, whole, sink);
    }

    /// Accept the whole item and end the part.
    pub(super) fn finish(
        &mut self,
        summary: Option<&str>,
        content: Option<&str>,
        item: &str,
        sink: &mut DeltaSink<'_>,
    ) {
        self.say_whole(summary, content, sink);
        self.part.get_or_insert_with(|| sink.open_repeated_block(PartKind::Thinking));
        self.set_state(item, sink);
        self.end(sink);
    }

    /// Take what the part lacks from the item of the final object.  Text of a part that came empty is a part of its own, because
    /// others may have followed.
    pub(super) fn fill(
        &mut self,
        summary: Option<&str>,
        content: Option<&str>,
        item: &str,
        has_ciphertext: bool,
        sink: &mut DeltaSink<'_>,
    ) {
        let says = self.source.is_none() && (has_text(summary) || has_text(content));
        if says || has_ciphertext {
            self.set_state(item, sink);
        }
        if says {
            self.say_whole(summary, content, sink);
            self.end(sink);
        }
    }

    fn end(&self, sink: &mut DeltaSink<'_>) {
        if let Some(part) = self.part {
            sink.end_part(part);
        }
    }

    /// Say the texts of the whole item that were not streamed.
    fn say_whole(
        &mut self,
        summary: Option<&str>,
        content: Option<&str>,
        sink: &mut DeltaSink<'_>,
    ) {
        for (source, list) in [(Content::Summary, summary), (Content::Reasoning, content)] {
            if self.source.is_none_or(|known| known == source) {
                let mut position = 0;
                // `read` validated the JSON, so that an error here only means a value that is not a list.
                let _ = texts(list, |text, _, _| {
                    self.source = Some(source);
                    let is_said = self.part.is_some() && position < self.paragraph;
                    if !text.is_empty() && !is_said {
                        self.say(position, text, true, sink);
                    }
                    position += 1;
                });
            }
        }
    }

    /// Set the provider state of the part: the whole item.
    fn set_state(&self, item: &str, sink: &mut DeltaSink<'_>) {
        if let Some(part) = self.part {
            sink.part_state(part, item);
        }
    }
}

fn say(part: PartHandle, text: Str<'_>, whole: bool, sink: &mut DeltaSink<'_>) {
    if whole {
        sink.text_whole(part, text);
    } else {
        sink.text(part, text);
    }
}

/// Return true if a list has a text that is not empty.
fn has_text(list: Option<&str>) -> bool {
    let mut found = false;
    // `read` validated the JSON, so that an error here only means a value that is not a list.
    let _ = texts(list, |text, _, _| found |= !text.is_empty());
    found
}

/// JSON lists beside the text of a content, and its members that no rule knows.
#[derive(Default)]
struct Extras<'a> {
    annotations: Option<&'a str>,
    logprobs: Option<&'a str>,
    unread: Unread<'a>,
}

/// Call `found` with each text of a content or summary list.
fn texts<'a>(
    list: Option<&'a str>,
    mut found: impl FnMut(Str<'a>, Content, Extras<'a>),
) -> Result<()> {
    let Some(list) = list else { return Ok(()) };
    Reader::trusted(list).maybe_array(|reader| {
        if reader.kind()? == Kind::String {
            found(reader.string()?, Content::Text, Extras::default());
            return Ok(());
        }
        let mut text = None;
        let mut content = Content::Text;
        let mut extras = Extras::default();
        reader.maybe_object(|reader, key| {
            match key {
                "text" => text = reader.opt_string()?.or(text),
                "refusal" => {
                    if let Some(refusal) = reader.filled_string()? {
                        content = Content::Refusal;
                        text = Some(refusal);
                    }
                }
                "annotations" => extras.annotations = reader.opt_raw()?,
                "logprobs" => extras.logprobs = reader.opt_raw()?,
                "type" => reader.skip()?,
                key => extras.unread.dropped(reader, key)?,
            }
            Ok(())
        })?;
        if let Some(text) = text {
            found(text, content, extras);
        }
        Ok(())
    })
}

/// Return the contents of a message of which no rule knows the kind.
fn unknown_contents(list: Option<&str>) -> Vec<&str> {
    let mut found = Vec::new();
    // `read` validated the JSON, so that an error here only means a value that is not a list of objects.
    let _ = Reader::trusted(list.unwrap_or("[]")).maybe_array(|reader| {
        let start = reader.position();
        let (mut kind, mut has_text) = (None, false);
        if reader.kind()? == Kind::String {
            return reader.skip();
        }
        reader.maybe_object(|reader, key| {
            match key {
                "type" => kind = reader.filled_string()?,
                "text" | "refusal" => has_text |= reader.opt_string()?.is_some(),
                _ => reader.skip()?,
            }
            Ok(())
        })?;
        let raw = reader.since(start);
        let is_known = |kind: Str<'_>| KNOWN.contains(&kind.raw);
        if !has_text && kind.is_some_and(|kind| !is_known(kind)) {
            found.push(raw);
        }
        Ok(())
    });
    found
}

/// Kinds of contents that may be empty, or whose data comes in events of its own.
const KNOWN: [&str; 6] =
    ["output_text", "text", "refusal", "reasoning_text", "output_audio", "audio"];

/// Return the item without these members.
pub(super) fn without(item: &str, names: &[&str]) -> String {
    let mut members = json::members(item);
    members.retain(|(key, _)| !names.contains(&key.as_ref()));
    json::write_object(&members)
}
