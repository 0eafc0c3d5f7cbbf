//! `States`: provider state of the parts in the members of a Chat message.
//!
//! Laws: each entry of a list has a number of its own, because clients join the entries of one number.  An envelope names
//! the piece that it belongs to, because a Chat message has one text and one reasoning.  A message has one `extra_content`.

use crate::encode::{
    Call, Draft, Owner, Place, Span, Spans, State, TextKind, TextPart, empty_envelope, envelope,
    write_compact,
};
use crate::json::{members, object, write_list, write_members, write_string};

const DIALECT: &str = "openai-chat";

/// Provider state of the parts of one message.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct States {
    pub(super) spans: Spans,
    /// End of the last text with an envelope.
    sealed: Option<usize>,
    /// Number of the entries so far.
    entries: usize,
    has_extra: bool,
}

/// Members that carry the state of a call, as a JSON object.
pub(super) enum OfCall {
    /// Members of the call.
    Call(String),
    /// Members of the message.
    Message(String),
}

impl States {
    /// Return the members of a part that came whole; `separator` is the text before it.
    pub(super) fn of_whole(
        &mut self,
        draft: &mut Draft,
        part: &TextPart,
        separator: &str,
        text: &str,
    ) -> Option<String> {
        self.spans.add(part, separator);
        self.spans.open(part);
        self.spans.add(part, text);
        self.of_text(draft, part)
    }

    /// Return the members of the message that carry a part's state, as a JSON object; a note where nothing may carry it.
    pub(super) fn of_text(&mut self, draft: &mut Draft, part: &TextPart) -> Option<String> {
        let span = self.spans.of(part);
        let Some(state) = part.state.as_deref() else { return self.of_further(draft, span) };
        let state = State::read(state);
        if state.is_own(&draft.settings, DIALECT) {
            let mut out = String::new();
            write_compact(&mut out, state.data);
            return out.starts_with('{').then_some(out);
        }
        let owner = Owner { redacted: part.redacted, span, call_id: None };
        let signature = signature(draft, &state, &owner);
        let is_taken = self.has_extra && draft.settings.signatures == Place::ExtraContent;
        let Some(signature) = signature.filter(|_| !is_taken) else {
            return note(draft, &state);
        };
        self.seal(span);
        Some(self.members(draft.settings.signatures, &signature, None))
    }

    /// Return the members that separate two texts without state, which may be contents of one message.
    ///
    /// A stream without state before them has no such message.
    fn of_further(&mut self, draft: &Draft, span: Option<Span>) -> Option<String> {
        let place = draft.settings.signatures;
        let is_list = matches!(place, Place::ReasoningDetails | Place::ThinkingBlocks);
        let sealed = self.sealed.filter(|_| draft.settings.envelope && is_list)?;
        span.filter(|(kind, start, _)| *kind == TextKind::Text && sealed < *start)?;
        self.seal(span);
        let mut quoted = String::new();
        write_string(&mut quoted, &empty_envelope(&Owner { span, ..Owner::default() }));
        Some(self.members(place, &quoted, None))
    }

    fn seal(&mut self, span: Option<Span>) {
        if let Some((TextKind::Text, _, end)) = span {
            self.sealed = self.sealed.max(Some(end));
        }
    }

    /// Return the members that carry the state of a call of another dialect; a note where nothing may carry it.
    pub(super) fn of_call(&mut self, draft: &mut Draft, call: &Call) -> Option<OfCall> {
        let state = State::read(call.state.as_deref()?);
        let has_secret = state.dialect != DIALECT || state.member("extra_content").is_some();
        if !has_secret || state.is_own(&draft.settings, DIALECT) {
            return None;
        }
        let signature = signature(draft, &state, &Owner::call(call));
        let place = draft.settings.signatures;
        if place == Place::ExtraContent {
            let Some(signature) = signature else { return note(draft, &state) };
            return Some(OfCall::Call(extra_content(&signature)));
        }
        let Some(signature) = signature.filter(|_| draft.settings.envelope) else {
            return note(draft, &state);
        };
        Some(OfCall::Message(self.members(place, &signature, Some(&call.id))))
    }

    fn members(&mut self, place: Place, signature: &str, call_id: Option<&str>) -> String {
        if place == Place::ExtraContent {
            self.has_extra = true;
            return extra_content(signature);
        }
        let number = self.entries;
        self.entries += 1;
        let is_block = place == Place::ThinkingBlocks;
        let entry = object(|entry| {
            match (is_block, call_id) {
                (true, None) => {
                    entry.text("type", "thinking");
                    entry.text("thinking", "");
                    entry.json("signature", signature);
                }
                (true, Some(_)) => {
                    entry.text("type", "redacted_thinking");
                    entry.json("data", signature);
                }
                (false, None) => {
                    entry.text("type", "reasoning.text");
                    entry.text("text", "");
                    entry.json("signature", signature);
                }
                (false, Some(id)) => {
                    entry.text("type", "reasoning.encrypted");
                    entry.json("data", signature);
                    entry.text("id", id);
                }
            }
            entry.number("index", number);
        });
        object(|message| {
            let name = if is_block { "thinking_blocks" } else { "reasoning_details" };
            message.value(name, |out| {
                write_list(out, [entry], |out, entry| out.push_str(&entry));
            });
        })
    }
}

fn extra_content(signature: &str) -> String {
    object(|message| {
        message.object("extra_content", |extra| {
            extra.object("google", |google| google.json("thought_signature", signature));
        });
    })
}

/// Return a signature as a JSON string, or an envelope; nothing where the caller chose no place.
fn signature(draft: &Draft, state: &State<'_>, owner: &Owner<'_>) -> Option<String> {
    if draft.settings.signatures == Place::Nowhere {
        return None;
    }
    if draft.settings.envelope {
        let mut out = String::new();
        write_string(&mut out, &envelope(state, owner));
        return Some(out);
    }
    let found = state.text_member("signature").or_else(|| state.text_member("thoughtSignature"));
    found.map(str::to_owned)
}

fn note<T>(draft: &mut Draft, state: &State<'_>) -> Option<T> {
    draft.notes.add("provider_state", &format!("provider state of {}", state.dialect));
    None
}

/// Return JSON objects as one; lists of one name are joined.
pub(super) fn joined(objects: &[String]) -> String {
    let mut merged: Vec<(String, String)> = Vec::new();
    for (key, value) in objects.iter().flat_map(|json| members(json)) {
        let known = merged.iter_mut().find(|(name, _)| *name == key);
        match (known, value.strip_prefix('[')) {
            (None, _) => merged.push((key.into_owned(), value.to_owned())),
            (Some((_, list)), Some(more)) if list.len() > 2 && list.ends_with(']') => {
                list.pop();
                list.push(',');
                list.push_str(more);
            }
            (Some((_, old)), _) => value.clone_into(old),
        }
    }
    let mut out = String::new();
    write_members(&mut out, |object| {
        for (key, value) in &merged {
            object.json_of(key, value);
        }
    });
    out
}
