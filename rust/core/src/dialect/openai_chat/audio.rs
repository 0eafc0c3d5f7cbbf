//! Audio of an answer: its data in pieces, and the text that is its transcript.

use super::facts::AUDIO;
use crate::emit::PartHandle;
use crate::json::{self, Reader, Str};
use crate::sink::DeltaSink;

/// The audio that was received so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Audio {
    id: Option<String>,
    data: String,
    expires_at: Option<String>,
    /// The text that is its transcript.
    pub(super) transcript: Option<PartHandle>,
}

impl Audio {
    /// Read a piece, and return its part of the transcript.
    pub(super) fn read<'a>(&mut self, json: &'a str, sink: &mut DeltaSink<'_>) -> Option<Str<'a>> {
        let mut said = None;
        let _ = Reader::trusted(json).maybe_object(|reader, key| {
            match key {
                "id" => self.id = reader.opt_raw()?.map(str::to_owned).or(self.id.take()),
                "expires_at" => {
                    self.expires_at = reader.opt_raw()?.map(str::to_owned);
                    if self.expires_at.is_some() {
                        sink.says_whole();
                    }
                }
                "transcript" => said = reader.filled_string()?,
                "data" => {
                    if let Some(data) = reader.filled_string()? {
                        sink.audio(&data.text(), &mut self.data);
                    }
                }
                _ => reader.skip()?,
            }
            Ok(())
        });
        said
    }

    /// Return the state of the part with the transcript.
    pub(super) fn transcript_state(&self) -> String {
        let audio = json::object(|audio| audio.json("id", self.id.as_deref().unwrap_or("null")));
        json::object(|state| state.json(AUDIO, &audio))
    }

    /// Emit the whole audio as a part, unless it has a transcript alone.
    pub(super) fn send(self, sink: &mut DeltaSink<'_>) {
        if self.data.is_empty() {
            return;
        }
        let block = json::object(|block| {
            block.text("type", "audio");
            block.json("id", self.id.as_deref().unwrap_or("null"));
            block.text("data", &self.data);
            block.json("expires_at", self.expires_at.as_deref().unwrap_or("null"));
        });
        sink.audio_part(&block, self.data.len());
    }
}
