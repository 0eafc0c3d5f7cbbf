//! Blocks that are no text and no call: put together from their pieces, as a whole body would hold them.

use crate::contract::Output;
use crate::emit::{Counts, DeltaSink, ImageContent};
use crate::json::scan::{JsonScan, Verdict};
use crate::json::{self, Carry, Reader, Result, Str};

/// A block that only its provider understands: `{name: {… start, input, content}}`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Opaque {
    name: String,
    start: String,
    /// Text of a tool's input.
    input: String,
    carry: Carry,
    /// Items of a tool's result, with commas between them.
    content: String,
    /// Bytes of it that are counted while it is open.
    held: usize,
}

impl Opaque {
    pub(super) fn open<O: Output>(
        name: &str,
        start: &str,
        sink: &mut DeltaSink<'_, O>,
    ) -> Option<Self> {
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

    pub(super) fn input<O: Output>(&mut self, text: Str<'_>, sink: &mut DeltaSink<'_, O>) {
        if sink.take_state_bytes(text.raw.len()) {
            self.held += text.raw.len();
            text.decode_into(&mut self.input, &mut self.carry);
        }
    }

    /// Takes the items of a list.
    pub(super) fn content<O: Output>(&mut self, list: &str, sink: &mut DeltaSink<'_, O>) {
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

    /// Lets it leave as a part, which is counted itself.
    pub(super) fn close<O: Output>(&mut self, sink: &mut DeltaSink<'_, O>) {
        self.carry.flush(&mut self.input);
        let mut scan = JsonScan::default();
        scan.feed(self.input.as_bytes());
        let mut value = String::new();
        match scan.verdict() {
            Verdict::Empty => {}
            Verdict::Complete if scan.deepest() < sink.options().limits.depth => {
                value.push_str(&self.input);
            }
            // Input that is no JSON stays text.
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

/// An image that arrives in pieces.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Image {
    /// `png`, `jpeg` …
    format: String,
    /// Base64.
    data: String,
}

impl Image {
    pub(super) fn open(start: &str) -> Self {
        let mut image = Self::default();
        // A text that `read` validated fails only by being no object.
        let _ = image.read(start);
        image
    }

    /// Reads `{format, source: {bytes}}`, each where it is there; whether it held bytes.
    fn read(&mut self, json: &str) -> Result<bool> {
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
                    _ => reader.skip()?,
                }
                Ok(())
            }),
            _ => reader.skip(),
        })?;
        if let Some(bytes) = bytes {
            bytes.decode_into(&mut self.data, &mut Carry::default());
        }
        Ok(bytes.is_some())
    }

    /// Takes more of it.  What is no bytes (a place in a store, an error) is kept as it came.
    pub(super) fn more<O: Output>(&mut self, json: &str, sink: &mut DeltaSink<'_, O>) {
        if self.data.ends_with('=') {
            // Base64 that was closed: what follows is another piece of its own.
            self.close(sink);
        }
        if !sink.take_state_bytes(json.len()) {
            return;
        }
        if self.read(json) != Ok(true) {
            sink.give_back_state_bytes(json.len());
            sink.provider_part(&json::object(|block| block.json("image", json)));
        }
    }

    /// An image that came at once.
    pub(super) fn whole<O: Output>(mut self, json: &str, sink: &mut DeltaSink<'_, O>) {
        self.more(json, sink);
        self.close(sink);
    }

    pub(super) fn close<O: Output>(&mut self, sink: &mut DeltaSink<'_, O>) {
        let data = std::mem::take(&mut self.data);
        if data.is_empty() {
            return;
        }
        let format = if self.format.is_empty() { "*" } else { &self.format };
        sink.give_back_state_bytes(data.len());
        sink.image_part(&format!("image/{format}"), ImageContent::Base64(&data), None);
    }
}

/// Counts of a usage record: the input excludes what the cache gave and took, ours includes it.
pub(super) fn counts(usage: &str) -> Result<Counts> {
    let mut counts = Counts::default();
    let mut input = None;
    Reader::trusted(usage).maybe_object(|reader, key| {
        match key {
            "inputTokens" => input = reader.count()?,
            "outputTokens" => counts.output = reader.count()?,
            "cacheReadInputTokens" => counts.cache_read = reader.count()?.or(counts.cache_read),
            "cacheWriteInputTokens" => counts.cache_write = reader.count()?.or(counts.cache_write),
            // The older names, said again beside the newer ones.
            "cacheReadInputTokenCount" => {
                counts.cache_read = counts.cache_read.or(reader.count()?);
            }
            "cacheWriteInputTokenCount" => {
                counts.cache_write = counts.cache_write.or(reader.count()?);
            }
            _ => reader.skip()?,
        }
        Ok(())
    })?;
    counts.set_input_beside_cache(input);
    Ok(counts)
}
