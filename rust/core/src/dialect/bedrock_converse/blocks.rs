//! Blocks that are neither text nor calls, assembled from their fragments to the form that they have in a whole body.

use crate::dialect::unread::Unread;
use crate::emit::ImageContent;
use crate::json::scan::{JsonScan, Verdict};
use crate::json::{self, Carry, Reader, Result, Str};
use crate::sink::DeltaSink;

/// A block that is specific to the provider: `{name: {… start, input, content}}`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Opaque {
    name: String,
    start: String,
    /// Text of the input of a tool.
    input: String,
    carry: Carry,
    /// Items of a tool's result, separated by commas.
    content: String,
    /// Bytes that count against the limit on state while the block is open.
    held: usize,
}

impl Opaque {
    pub(super) fn open(name: &str, start: &str, sink: &mut DeltaSink<'_>) -> Option<Self> {
        let held = name.len() + start.len();
        sink.take_state_bytes(held).then(|| Self {
            name: name.to_owned(),
            start: start.to_owned(),
            input: String::new(),
            carry: Carry::default(),
            content: String::new(),
            held,
        })
    }

    pub(super) fn input(&mut self, text: Str<'_>, sink: &mut DeltaSink<'_>) {
        if sink.take_state_bytes(text.raw.len()) {
            self.held += text.raw.len();
            text.decode_into(&mut self.input, &mut self.carry);
        }
    }

    /// Append the items of a list.
    pub(super) fn content(&mut self, list: &str, sink: &mut DeltaSink<'_>) {
        let items = list.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let items = items.unwrap_or(list).trim();
        if !items.is_empty() && sink.take_state_bytes(items.len()) {
            self.held += items.len();
            if !self.content.is_empty() {
                self.content.push(',');
            }
            self.content.push_str(items);
        }
    }

    /// Emit the block as a provider part.  Its bytes are given back first, because the part is counted again.
    pub(super) fn close(&mut self, sink: &mut DeltaSink<'_>) {
        self.carry.flush(&mut self.input);
        let mut scan = JsonScan::default();
        scan.feed(self.input.as_bytes());
        let mut value = String::new();
        match scan.verdict() {
            Verdict::Empty => {}
            Verdict::Complete if scan.deepest() < sink.options().limits.depth => {
                value.push_str(&self.input);
            }
            // Input that is not JSON stays text.
            Verdict::Complete | Verdict::Open | Verdict::Wrong => {
                json::write_string(&mut value, &self.input);
            }
        }
        let mut patch = Vec::new();
        if !value.is_empty() {
            patch.push(("input", value.as_str()));
        }
        let content = format!("[{}]", self.content);
        if !self.content.is_empty() {
            patch.push(("content", content.as_str()));
        }
        let inner = json::merge_objects(&self.start, &json::write_object(&patch));
        sink.give_back_state_bytes(self.held);
        sink.provider_part(&json::write_object(&[(&self.name, inner.as_str())]));
    }
}

/// An image that arrives in fragments.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Image {
    /// The format, such as `png` or `jpeg`.
    format: String,
    /// The image data as base64.
    data: String,
}

impl Image {
    pub(super) fn open(start: &str) -> Self {
        let mut image = Self::default();
        // `read` validated the JSON, so that an error here only means a value that is not an object.
        let _ = image.read(start, &mut Unread::default());
        image
    }

    /// Read `{format, source: {bytes}}`, both members optional.  Returns whether it held bytes.
    fn read<'a>(&mut self, json: &'a str, unread: &mut Unread<'a>) -> Result<bool> {
        let mut bytes = None;
        Reader::trusted(json).maybe_object(|reader, key| match key {
            "format" => {
                if let Some(format) = reader.filled_string()? {
                    self.format = format.text();
                }
                Ok(())
            }
            "source" => reader.maybe_object(|reader, key| {
                match key {
                    "bytes" => bytes = reader.filled_string()?,
                    key => unread.dropped(reader, key)?,
                }
                Ok(())
            }),
            key => unread.dropped(reader, key),
        })?;
        if let Some(bytes) = bytes {
            bytes.decode_into(&mut self.data, &mut Carry::default());
        }
        Ok(bytes.is_some())
    }

    /// Append a fragment.  A fragment without bytes (a storage location, an error) becomes a provider part.
    pub(super) fn more(&mut self, json: &str, sink: &mut DeltaSink<'_>) {
        if self.data.ends_with('=') {
            // The padding ends the base64: the next fragment belongs to another image.
            self.close(sink);
        }
        if !sink.take_state_bytes(json.len()) {
            return;
        }
        let mut unread = Unread::default();
        if self.read(json, &mut unread) == Ok(true) {
            unread.send(sink);
        } else {
            sink.give_back_state_bytes(json.len());
            // The start contains the format, the delta the location of the image.
            let format = json::object(|image| {
                if !self.format.is_empty() {
                    image.text("format", &self.format);
                }
            });
            let image = json::merge_objects(&format, json);
            sink.provider_part(&json::object(|block| block.json("image", &image)));
        }
    }

    /// Emit an image that arrived whole.
    pub(super) fn whole(mut self, json: &str, sink: &mut DeltaSink<'_>) {
        self.more(json, sink);
        self.close(sink);
    }

    pub(super) fn close(&mut self, sink: &mut DeltaSink<'_>) {
        let data = std::mem::take(&mut self.data);
        if data.is_empty() {
            return;
        }
        let format = if self.format.is_empty() { "*" } else { &self.format };
        sink.give_back_state_bytes(data.len());
        sink.image_part(&format!("image/{format}"), ImageContent::Base64(&data), None);
    }
}
