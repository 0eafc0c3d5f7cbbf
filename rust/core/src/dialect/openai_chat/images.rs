//! Generated images in Chat Completions: a list of `{image_url: {url}}`, as OpenRouter sends them.

use super::apply::State;
use crate::emit::ImageContent;
use crate::json::Reader;
use crate::sink::DeltaSink;

impl State {
    pub(super) fn images(&mut self, images: &str, sink: &mut DeltaSink<'_>) {
        self.leave_part(sink);
        let _ = Reader::trusted(images).maybe_array(|reader| {
            let mut url = None;
            let start = reader.position();
            reader.maybe_object(|reader, key| {
                match key {
                    "image_url" => reader.maybe_object(|reader, key| {
                        match key {
                            "url" => url = reader.filled_string()?,
                            _ => reader.skip()?,
                        }
                        Ok(())
                    })?,
                    _ => reader.skip()?,
                }
                Ok(())
            })?;
            match url {
                Some(url) => image_part(&url.text(), sink),
                None => sink.provider_part(reader.since(start)),
            }
            Ok(())
        });
    }
}

/// Emit the image of a URL.  A data URL is split into its media type and its bytes.
fn image_part(url: &str, sink: &mut DeltaSink<'_>) {
    let inline = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    if let Some((mime_type, data)) = inline {
        sink.image_part(mime_type, ImageContent::Base64(data), None);
    } else {
        // The file extension in the path is the only hint at the media type.
        let path = url.split(['?', '#']).next().unwrap_or(url);
        let mime_type = match path.rsplit_once('.').map_or("", |(_, ending)| ending) {
            "png" => "image/png",
            "jpg" | "jpeg" => "image/jpeg",
            "gif" => "image/gif",
            "webp" => "image/webp",
            _ => "image/*",
        };
        sink.image_part(mime_type, ImageContent::Url(url), None);
    }
}
