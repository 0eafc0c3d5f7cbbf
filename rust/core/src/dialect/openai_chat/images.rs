//! Generated images: a list of `{image_url: {url}}`, as OpenRouter sends them.

use super::apply::State;
use crate::contract::Output;
use crate::emit::DeltaSink;
use crate::json::{self, Reader};

impl State {
    pub(super) fn images<O: Output>(&mut self, images: &str, sink: &mut DeltaSink<'_, O>) {
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
                Some(url) => sink.whole_part(&image_part(&url.text())),
                None => sink.provider_part(reader.since(start)),
            }
            Ok(())
        });
    }
}

/// `{kind: image}` of a URL; a data URL is taken apart.
fn image_part(url: &str) -> String {
    let mut part = String::from("{\"kind\":\"image\",\"payload\":{\"mimeType\":");
    let inline = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    if let Some((mime_type, data)) = inline {
        json::write_string(&mut part, mime_type);
        part.push_str(",\"data\":");
        json::write_string(&mut part, data);
    } else {
        // The type of what a URL shows is known only from its ending.
        let path = url.split(['?', '#']).next().unwrap_or(url);
        let mime_type = match path.rsplit_once('.').map_or("", |(_, ending)| ending) {
            "png" => "image/png",
            "jpg" | "jpeg" => "image/jpeg",
            "gif" => "image/gif",
            "webp" => "image/webp",
            _ => "image/*",
        };
        json::write_string(&mut part, mime_type);
        part.push_str(",\"url\":");
        json::write_string(&mut part, url);
    }
    part.push_str("}}");
    part
}
