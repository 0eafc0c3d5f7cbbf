//! Contents of a list: text, reasoning with its references, citations, and contents of other kinds.
//!
//! Source: Mistral's documentation of `ContentChunk` (docs/protocols/mistral.md#contents).

use super::apply::State;
use crate::dialect::unread::Unread;
use crate::emit::PartKind;
use crate::json::{self, Kind, Reader, Result, Str};
use crate::sink::DeltaSink;

impl State {
    /// Handle an item of a content list (Mistral's form): text, thinking, a citation, or a block specific to the provider.
    pub(super) fn content_item(
        &mut self,
        reader: &mut Reader<'_>,
        sink: &mut DeltaSink<'_>,
    ) -> Result<()> {
        let mut kind = None;
        let mut text = None;
        let mut thinking = None;
        let mut signed = false;
        let mut unread = Unread::default();
        match reader.kind()? {
            Kind::String => {
                self.text(PartKind::Text, reader.string()?, sink);
                return Ok(());
            }
            Kind::Null => return reader.skip(),
            _ => {}
        }
        let start = reader.position();
        reader.maybe_object(|reader, key| {
            match key {
                "type" => kind = reader.filled_string()?,
                "text" => text = reader.filled_string()?,
                "thinking" => thinking = Some(reader.raw()?),
                "signature" => signed = reader.filled_string()?.is_some(),
                key => unread.dropped(reader, key)?,
            }
            Ok(())
        })?;
        let is_text = kind.is_some_and(|kind| kind.raw == "text");
        if is_text || (thinking.is_some() && !signed) {
            unread.send(sink);
        }
        match (kind.map_or("", |kind| kind.raw), text, thinking) {
            ("text", text, _) => self.text(PartKind::Text, text.unwrap_or(Str::plain("")), sink),
            ("thinking", _, Some(list)) => {
                let mut inner = Reader::trusted(list);
                if inner.kind()? == Kind::String {
                    self.text(PartKind::Thinking, inner.string()?, sink);
                } else {
                    inner.maybe_array(|reader| {
                        let item = reader.raw()?;
                        let mut text = None;
                        Reader::trusted(item).maybe_object(|reader, key| {
                            match (key, reader.kind()?) {
                                ("text", Kind::String) => text = Some(reader.string()?),
                                _ => reader.skip()?,
                            }
                            Ok(())
                        })?;
                        match text {
                            Some(text) => self.text(PartKind::Thinking, text, sink),
                            // Thinking has no annotations.
                            None => sink.warn_unread("references of thinking"),
                        }
                        Ok(())
                    })?;
                }
                if signed {
                    let mut members = json::members(reader.since(start));
                    members.retain(|(key, _)| key != "thinking");
                    let part = self.part(PartKind::Thinking, sink);
                    sink.part_state(part, &json::write_object(&members));
                }
            }
            // A citation belongs to the text at this position.
            ("reference", ..) => {
                let part = self.part(PartKind::Text, sink);
                sink.annotate(part, reader.since(start));
            }
            _ => {
                self.leave_part(sink);
                sink.provider_part(reader.since(start));
            }
        }
        Ok(())
    }
}
