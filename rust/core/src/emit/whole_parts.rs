//! Parts that arrive whole: images, and provider blocks.  Audio, whose pieces are told as they arrive.
//!
//! In: an image or the JSON of a block.  Out: one `part` delta, counted against the bound of provider state; before it, an
//! `audio` delta for each piece.

use super::emitter::EmitterSink;
use crate::contract::Payload;
use crate::json;

/// Content of an image: its bytes, or its address.
#[derive(Clone, Copy, Debug)]
pub enum ImageContent<'a> {
    /// Bytes in base64.
    Base64(&'a str),
    /// Address of the image.
    Url(&'a str),
}

impl EmitterSink<'_> {
    /// Send a whole part; `part` is a JSON object `{kind, payload, providerState?}`.
    fn whole_part(&mut self, part: &str) {
        if !self.is_open() || !self.emitter.deltas.take_state_bytes(part.len()) {
            return;
        }
        self.end_open_part();
        self.confirm_call();
        if let Some(index) = self.emitter.deltas.open_part() {
            self.emitter.deltas.send(self.out, Payload::Part { part_index: Some(index), part });
        }
    }

    /// Send a block that only its provider understands; `block` is its JSON.  A value that is not an object only causes a
    /// warning.
    pub fn provider_part(&mut self, block: &str) {
        if !block.starts_with('{') {
            return self.warn_no_object(block);
        }
        let part = json::object(|part| {
            part.text("kind", "provider");
            part.object("payload", |payload| {
                payload.text("dialect", self.emitter.deltas.dialect);
                payload.json("block", block);
            });
        });
        self.whole_part(&part);
    }

    /// Send a piece of audio, and add it to `whole`, unless the bound of provider state is reached.
    pub fn audio(&mut self, data: &str, whole: &mut String) {
        if data.is_empty() || !self.is_open() || !self.emitter.deltas.take_state_bytes(data.len()) {
            return;
        }
        whole.push_str(data);
        self.emitter.deltas.send(self.out, Payload::Audio { data });
    }

    /// Send the block of audio whose pieces, of `said` bytes, were sent before.
    pub fn audio_part(&mut self, block: &str, said: usize) {
        // The pieces were counted when they arrived; the whole part is counted again.
        self.give_back_state_bytes(said);
        self.provider_part(block);
    }

    /// Send a generated image.  `state` is JSON that the provider must get back with the image.
    pub fn image_part(&mut self, mime_type: &str, content: ImageContent<'_>, state: Option<&str>) {
        let part = json::object(|part| {
            part.text("kind", "image");
            part.object("payload", |payload| {
                payload.text("mimeType", mime_type);
                match content {
                    ImageContent::Base64(data) => payload.text("data", data),
                    ImageContent::Url(url) => payload.text("url", url),
                }
            });
            if let Some(state) = state {
                part.json("providerState", &self.emitter.deltas.provider_state(state));
            }
        });
        self.whole_part(&part);
    }

    /// Attribute later parts and provider state to `dialect`, whose events came inside those of another dialect.
    pub fn speak_as(&mut self, dialect: &'static str) {
        self.emitter.deltas.dialect = dialect;
    }
}
