//! Provider state of reasoning, which the next request must send back: `reasoning_details` (OpenRouter) and
//! `thinking_blocks` (LiteLLM).
//!
//! Law: fragments of one entry are joined, so that the resulting list equals that of a whole response.

use crate::contract::Output;
use crate::emit::PartHandle;
use crate::json::{self, Kind, Reader};
use crate::sink::DeltaSink;

/// The current reasoning part and its provider state.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Thinking {
    pub(super) part: Option<PartHandle>,
    /// Entries of `reasoning_details`, with their fragments joined.
    details: Vec<Detail>,
    /// Entries of `thinking_blocks` of a LiteLLM proxy, with their fragments joined.
    blocks: Vec<Detail>,
    pub(super) unsent: bool,
}

/// Maximum number of members of a joined entry.  It bounds the linear search for members in a hostile entry.
const MANY_MEMBERS: usize = 64;

/// One entry of `reasoning_details` or `thinking_blocks`.
#[derive(Clone, Debug, Default, PartialEq)]
struct Detail {
    kind: String,
    index: Option<String>,
    /// Members as raw JSON values.  The text members are in `texts`, unescaped and joined.
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

/// Add entries to a list and join each fragment to the entry that it continues.  Returns whether there were any.
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
    /// Return whether `next` continues this block.  A signature ends a block, and redacted blocks always arrive whole.
    fn continues_block(&self, next: &Self) -> bool {
        let signed = |(name, value): &(String, String)| {
            name == "signature" && !matches!(value.as_str(), "null" | "\"\"")
        };
        self.kind == "thinking" && self.continues(next) && !self.members.iter().any(signed)
    }

    /// Return whether `next` continues this entry.  Fragments are adjacent, and encrypted entries always arrive whole.
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
