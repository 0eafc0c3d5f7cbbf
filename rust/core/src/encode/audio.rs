//! Audio of an answer, for the two targets that write it.
//!
//! In: provider parts of Chat and Responses.  Out: whether a part is audio, and what of it is not written yet.
//!
//! Laws: pieces are written as they arrive; the part that follows them repeats their data, and only the rest is written.  Both
//! protocols carry the same data: base64 of the format that the request chose.

use crate::json::{Reader, members, write_object, write_string};

/// Return true if a provider part is audio.  An item of Responses with an id is one of the provider's own.
pub(super) fn is_audio(dialect: &str, block: &str) -> bool {
    let members = members(block);
    let has = |name: &str| members.iter().any(|(key, _)| key == name);
    members.iter().any(|(key, value)| key == "type" && *value == "\"audio\"")
        && (dialect == "openai-chat" || (dialect == "openai-responses" && !has("id")))
}

/// Return an object without the first `said` bytes of its member `data`; `None` if no member is left.
pub(super) fn rest_of_audio(audio: &str, said: usize) -> Option<String> {
    let mut found = members(audio);
    let data = found.iter().position(|(key, _)| said > 0 && key == "data");
    let data = data.map(|at| found.remove(at).1);
    let mut rest = String::new();
    if let Some(more) = data.and_then(|data| Reader::trusted(data).opt_string().ok()?) {
        write_string(&mut rest, more.text().get(said..).unwrap_or_default());
        if rest != "\"\"" {
            found.push(("data".into(), &rest));
        }
    }
    (!found.is_empty()).then(|| write_object(&found))
}
