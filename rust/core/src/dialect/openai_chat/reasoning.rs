//! What must go back to the provider with the reasoning: `reasoning_details` (OpenRouter), `thinking_blocks` (LiteLLM).
//!
//! Law: fragments of one entry are joined, so that the list equals that of a whole response.

use crate::delta::Output;
use crate::finisher::{DeltaSink, PartHandle};
use crate::wire::{self, Kind, Reader};

/// The reasoning that is being streamed and what must go back with it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Thinking {
    pub(super) part: Option<PartHandle>,
    /// Entries of `reasoning_details`, fragments joined.
    details: Vec<Detail>,
    /// `thinking_blocks` of a LiteLLM proxy: the last list.
    pub(super) blocks: Option<String>,
    pub(super) unsent: bool,
}

/// Members are found by comparing; a hostile entry with more of them than any known one is not joined.
const MANY_MEMBERS: usize = 64;

/// One entry of `reasoning_details`.
#[derive(Clone, Debug, Default, PartialEq)]
struct Detail {
    kind: String,
    index: Option<String>,
    /// Members as JSON values; the three text members are kept unescaped and joined.
    members: Vec<(String, String)>,
    texts: Vec<(String, String)>,
}

impl Thinking {
    pub(super) fn add_details<O: Output>(&mut self, details: &str, sink: &mut DeltaSink<'_, O>) {
        if !sink.take_state_bytes(details.len()) {
            return;
        }
        let _ = Reader::trusted(details).maybe_array(|reader| {
            let mut new = Detail::default();
            reader.maybe_object(|reader, key| {
                match (key, reader.kind()?) {
                    ("type", Kind::String) => new.kind = reader.string()?.text(),
                    ("index", Kind::Number) => new.index = Some(reader.raw()?.to_owned()),
                    ("text" | "summary" | "data", Kind::String) => {
                        new.texts.push((key.to_owned(), reader.string()?.text()));
                    }
                    _ => new.members.push((key.to_owned(), reader.raw()?.to_owned())),
                }
                Ok(())
            })?;
            self.unsent = true;
            match self.details.last_mut() {
                Some(last) if last.continues(&new) => last.append(new),
                _ => self.details.push(new),
            }
            Ok(())
        });
    }

    pub(super) fn to_json(&self) -> String {
        let mut out = String::from("{");
        if !self.details.is_empty() {
            out.push_str("\"reasoning_details\":[");
            for (position, detail) in self.details.iter().enumerate() {
                if position > 0 {
                    out.push(',');
                }
                detail.write(&mut out);
            }
            out.push(']');
        }
        if let Some(blocks) = &self.blocks {
            if !self.details.is_empty() {
                out.push(',');
            }
            out.push_str("\"thinking_blocks\":");
            out.push_str(blocks);
        }
        out.push('}');
        out
    }
}

impl Detail {
    /// Fragments of one entry follow each other; encrypted entries always come whole.
    fn continues(&self, next: &Self) -> bool {
        self.kind == next.kind
            && self.index == next.index
            && self.kind != "reasoning.encrypted"
            && self.members.len() + next.members.len() <= MANY_MEMBERS
    }

    fn append(&mut self, next: Self) {
        for (name, text) in next.texts {
            match self.texts.iter_mut().find(|(known, _)| *known == name) {
                Some(entry) => entry.1.push_str(&text),
                None => self.texts.push((name, text)),
            }
        }
        for (name, value) in next.members {
            match self.members.iter_mut().find(|(known, _)| *known == name) {
                Some(entry) if value != "null" => entry.1 = value,
                Some(_) => {}
                None => self.members.push((name, value)),
            }
        }
    }

    fn write(&self, out: &mut String) {
        out.push_str("{\"type\":");
        wire::write_string(out, &self.kind);
        for (name, text) in &self.texts {
            out.push_str(",\"");
            out.push_str(name);
            out.push_str("\":");
            wire::write_string(out, text);
        }
        if let Some(index) = &self.index {
            out.push_str(",\"index\":");
            out.push_str(index);
        }
        for (name, value) in &self.members {
            out.push(',');
            wire::write_string(out, name);
            out.push(':');
            out.push_str(value);
        }
        out.push('}');
    }
}
