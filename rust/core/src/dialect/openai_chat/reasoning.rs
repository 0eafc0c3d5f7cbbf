//! What must go back to the provider with the reasoning: `reasoning_details` (OpenRouter), `thinking_blocks` (LiteLLM).
//!
//! Law: fragments of one entry are joined, so that the list equals that of a whole response.

use crate::contract::Output;
use crate::emit::PartHandle;
use crate::json::{self, Kind, Reader};
use crate::sink::DeltaSink;

/// The reasoning that is being streamed and what must go back with it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Thinking {
    pub(super) part: Option<PartHandle>,
    /// Entries of `reasoning_details`, fragments joined.
    details: Vec<Detail>,
    /// `thinking_blocks` of a LiteLLM proxy, fragments joined.
    blocks: Vec<Detail>,
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
        self.unsent |= sink.take_state_bytes(details.len())
            && join_into(&mut self.details, details, Detail::continues);
    }

    pub(super) fn add_blocks<O: Output>(&mut self, blocks: &str, sink: &mut DeltaSink<'_, O>) {
        self.unsent |= sink.take_state_bytes(blocks.len())
            && join_into(&mut self.blocks, blocks, Detail::continues_block);
    }

    pub(super) fn to_json(&self) -> String {
        json::object(|object| {
            for (name, list) in
                [("reasoning_details", &self.details), ("thinking_blocks", &self.blocks)]
            {
                if !list.is_empty() {
                    object.value(name, |out| {
                        json::write_list(out, list, |out, detail| detail.write(out));
                    });
                }
            }
        })
    }
}

/// Adds entries to a list, a fragment to the entry that it continues; whether there were any.
fn join_into(
    details: &mut Vec<Detail>,
    json: &str,
    continues: fn(&Detail, &Detail) -> bool,
) -> bool {
    let mut found = false;
    let _ = Reader::trusted(json).maybe_array(|reader| {
        let mut new = Detail::default();
        reader.maybe_object(|reader, key| {
            match (key, reader.kind()?) {
                ("type", Kind::String) => new.kind = reader.string()?.text(),
                ("index", Kind::Number) => new.index = Some(reader.raw()?.to_owned()),
                ("text" | "summary" | "data" | "thinking", Kind::String) => {
                    new.texts.push((key.to_owned(), reader.string()?.text()));
                }
                _ => new.members.push((key.to_owned(), reader.raw()?.to_owned())),
            }
            Ok(())
        })?;
        found = true;
        match details.last_mut() {
            Some(last) if continues(last, &new) => last.append(new),
            _ => details.push(new),
        }
        Ok(())
    });
    found
}

impl Detail {
    /// A block ends with its signature; withheld ones always come whole.
    fn continues_block(&self, next: &Self) -> bool {
        let signed = |(name, value): &(String, String)| {
            name == "signature" && !matches!(value.as_str(), "null" | "\"\"")
        };
        self.kind == "thinking" && self.continues(next) && !self.members.iter().any(signed)
    }

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
        json::write_members(out, |object| {
            object.text("type", &self.kind);
            for (name, text) in &self.texts {
                object.text_of(name, text);
            }
            if let Some(index) = &self.index {
                object.json("index", index);
            }
            for (name, value) in &self.members {
                object.json_of(name, value);
            }
        });
    }
}
