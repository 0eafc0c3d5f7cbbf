//! Provider state of reasoning, which the next request must send back: `reasoning_details` (OpenRouter),
//! `thinking_blocks` (LiteLLM), and the thinking of `content_blocks` (Portkey), which is kept as `thinking_blocks`.
//!
//! Law: fragments of one entry are joined, so that the resulting list equals that of a whole response.

use std::borrow::Cow;

use crate::emit::PartHandle;
use crate::json::{self, Kind, Reader, Result, Str};
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
    /// Raw bytes of the reasoning that came in a member of its own, without `reasoning_details`.
    pub(super) said_bytes: u32,
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
    texts: Vec<(&'static str, String)>,
}

/// Names of the text members.
const TEXTS: [&str; 4] = ["text", "summary", "data", "thinking"];

impl Thinking {
    /// Count reasoning that came in a member of its own.
    #[inline]
    pub(super) fn said(&mut self, text: Str<'_>) {
        let bytes = u32::try_from(text.raw.len()).unwrap_or(u32::MAX);
        self.said_bytes = self.said_bytes.saturating_add(bytes);
    }

    /// Return whether entries, without other reasoning beside them, repeat earlier reasoning that had no entries.
    ///
    /// Servers that know the signature only at the end of the reasoning send its entry whole then.  The length decides,
    /// because storing the text would double its memory.
    pub(super) fn is_repetition(&self, details: &str) -> bool {
        if self.said_bytes == 0 || !self.details.is_empty() {
            return false;
        }
        let mut bytes = 0_usize;
        let mut fragment = Fragment::default();
        let _ = Reader::trusted(details).maybe_array(|reader| {
            fragment.read(reader)?;
            let texts =
                fragment.texts.iter().filter(|(name, _)| matches!(*name, "text" | "summary"));
            bytes += texts.map(|(_, text)| text.raw.len()).sum::<usize>();
            Ok(())
        });
        u32::try_from(bytes).is_ok_and(|bytes| bytes == self.said_bytes)
    }

    pub(super) fn add_details(&mut self, details: &str, sink: &mut DeltaSink<'_>) {
        self.unsent |= sink.take_state_bytes(details.len())
            && join_into(&mut self.details, details, Detail::continues);
    }

    pub(super) fn add_blocks(&mut self, blocks: &str, sink: &mut DeltaSink<'_>) {
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

/// Call `emit` with each text of `reasoning_details`, for messages in which no other member carries it.
pub(super) fn each_text(details: &str, mut emit: impl FnMut(Str<'_>)) {
    let _ = Reader::trusted(details).maybe_array(|reader| {
        reader.maybe_object(|reader, key| {
            match key {
                "text" | "summary" => {
                    if let Some(text) = reader.filled_string()? {
                        emit(text);
                    }
                }
                _ => reader.skip()?,
            }
            Ok(())
        })
    });
}

/// One entry as it arrives, borrowed from its frame.
#[derive(Default)]
struct Fragment<'a> {
    kind: Option<Str<'a>>,
    index: Option<&'a str>,
    members: Vec<(Cow<'a, str>, &'a str)>,
    texts: Vec<(&'static str, Str<'a>)>,
}

impl<'a> Fragment<'a> {
    fn read(&mut self, reader: &mut Reader<'a>) -> Result<()> {
        self.kind = None;
        self.index = None;
        self.members.clear();
        self.texts.clear();
        if reader.kind()? != Kind::Object {
            return reader.skip();
        }
        reader.entries(|reader, key| {
            let name = if key.escaped { Cow::Owned(key.text()) } else { Cow::Borrowed(key.raw) };
            let text = TEXTS.into_iter().find(|text| *text == name);
            match (name.as_ref(), text, reader.kind()?) {
                ("type", _, Kind::String) => self.kind = Some(reader.string()?),
                ("index", _, Kind::Number) => self.index = Some(reader.raw()?),
                (_, Some(text), Kind::String) => self.texts.push((text, reader.string()?)),
                _ => self.members.push((name, reader.raw()?)),
            }
            Ok(())
        })
    }

    fn to_detail(&self) -> Detail {
        let texts = self.texts.iter().map(|(name, text)| (*name, text.text()));
        let members = self.members.iter();
        Detail {
            kind: self.kind.map_or_else(String::new, |kind| kind.text()),
            index: self.index.map(str::to_owned),
            members: members.map(|(name, value)| (name.to_string(), (*value).to_owned())).collect(),
            texts: texts.collect(),
        }
    }
}

/// Add entries to a list and join each fragment to the entry that it continues.  Returns whether there were any.
fn join_into(
    details: &mut Vec<Detail>,
    json: &str,
    continues: fn(&Detail, &Fragment<'_>) -> bool,
) -> bool {
    let mut found = false;
    let mut new = Fragment::default();
    let _ = Reader::trusted(json).maybe_array(|reader| {
        new.read(reader)?;
        found = true;
        match details.last_mut() {
            Some(last) if continues(last, &new) => last.append(&new),
            _ => details.push(new.to_detail()),
        }
        Ok(())
    });
    found
}

impl Detail {
    /// Return whether `next` continues this block.  A signature ends a block, and redacted blocks always arrive whole.
    fn continues_block(&self, next: &Fragment<'_>) -> bool {
        let signed = |(name, value): &(String, String)| {
            name == "signature" && !matches!(value.as_str(), "null" | "\"\"")
        };
        self.kind == "thinking" && self.continues(next) && !self.members.iter().any(signed)
    }

    /// Return whether `next` continues this entry.  Fragments are adjacent, and encrypted entries always arrive whole.
    fn continues(&self, next: &Fragment<'_>) -> bool {
        next.kind.unwrap_or(Str::plain("")).is(&self.kind)
            && self.index.as_deref() == next.index
            && self.kind != "reasoning.encrypted"
            && self.members.len() + next.members.len() <= MANY_MEMBERS
    }

    fn append(&mut self, next: &Fragment<'_>) {
        for (name, text) in &next.texts {
            let known = self.texts.iter_mut().find(|(known, _)| known == name);
            match known {
                Some(entry) if text.escaped => entry.1.push_str(&text.text()),
                Some(entry) => entry.1.push_str(text.raw),
                None => self.texts.push((name, text.text())),
            }
        }
        for (name, value) in &next.members {
            match self.members.iter_mut().find(|(known, _)| known == name) {
                Some(entry) if *value != "null" => (*value).clone_into(&mut entry.1),
                Some(_) => {}
                None => self.members.push((name.to_string(), (*value).to_owned())),
            }
        }
    }

    fn write(&self, out: &mut String) {
        json::write_members(out, |object| {
            object.text("type", &self.kind);
            for (name, text) in &self.texts {
                object.text(name, text);
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
