//! Members in which gateways carry what Messages has and Chat lacks: thinking (Portkey) and citations (LiteLLM).
//!
//! Sources: Portkey 1.15, `content_blocks` beside the text, in a stream as `delta`s; LiteLLM 1.110,
//! `provider_specific_fields.citation` in a stream, `.citations` in a whole body, one list for each block.

use crate::json::{self, Kind, Reader, Result, Str};

/// Call `found` with the text of each block that thinks, and with the block as an entry of `thinking_blocks`.
pub(super) fn each_thinking(blocks: &str, mut found: impl FnMut(Option<Str<'_>>, &str)) {
    // `read` validated the JSON, so that an error here only means a value that is not a list.
    let _ = Reader::trusted(blocks).maybe_array(|reader| {
        let block = ThinkingBlock::read(reader.raw()?)?;
        if let Some(json) = block.to_json() {
            found(block.thinking, &json);
        }
        Ok(())
    });
}

/// Return the citations among LiteLLM's members: one, or lists of them.
pub(super) fn citations(fields: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let _ = Reader::trusted(fields).maybe_object(|reader, key| {
        match (key, reader.kind()?) {
            ("citation", Kind::Object) => found.push(reader.raw()?),
            ("citations", Kind::Array) => reader.array(|reader| {
                let list = reader.raw()?;
                if list != "[]" && list != "null" {
                    found.push(list);
                }
                Ok(())
            })?,
            _ => reader.skip()?,
        }
        Ok(())
    });
    found
}

/// A block of Messages with thinking.
#[derive(Default)]
pub(super) struct ThinkingBlock<'a> {
    pub(super) thinking: Option<Str<'a>>,
    signature: Option<Str<'a>>,
    data: Option<Str<'a>>,
}

impl<'a> ThinkingBlock<'a> {
    fn read(block: &'a str) -> Result<Self> {
        let mut found = Self::default();
        Reader::trusted(block).maybe_object(|reader, key| found.read_member(reader, key))?;
        Ok(found)
    }

    fn read_member(&mut self, reader: &mut Reader<'a>, key: &str) -> Result<()> {
        match key {
            "delta" => reader.maybe_object(|reader, key| self.read_member(reader, key))?,
            "thinking" => self.thinking = reader.filled_string()?,
            "signature" => self.signature = reader.filled_string()?,
            "data" => self.data = reader.filled_string()?,
            _ => reader.skip()?,
        }
        Ok(())
    }

    /// Return the block as an entry of `thinking_blocks`; `None` if it does not think.
    fn to_json(&self) -> Option<String> {
        if let Some(data) = self.data {
            return Some(json::object(|block| {
                block.text("type", "redacted_thinking");
                block.wire_text("data", data);
            }));
        }
        self.thinking.or(self.signature)?;
        Some(json::object(|block| {
            block.text("type", "thinking");
            for (name, text) in [("thinking", self.thinking), ("signature", self.signature)] {
                if let Some(text) = text {
                    block.wire_text(name, text);
                }
            }
        }))
    }
}
