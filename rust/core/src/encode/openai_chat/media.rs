//! Members of a Chat message beside text and calls: images, audio with its transcript, and lists of sources.
//!
//! In: whole parts, state and annotations of the contract.  Out: JSON of the members.
//!
//! Laws: each image has a number of its own, because clients join the entries of one number.  The transcript of audio is text
//! whose state names the audio.
//! Source: platform.openai.com, "Chat: audio"; openrouter.ai, "Image generation"; docs.perplexity.ai, "citations".

use crate::dialect::openai_chat::facts::AUDIO;
use crate::encode::annotations::{self, citation};
use crate::encode::audio::is_audio;
use crate::encode::parts::{member, text};
use crate::encode::{Draft, State, WholeContent, WholePart, write_compact};
use crate::json::{members, object, write_object, write_string};

const DIALECT: &str = "openai-chat";
/// Lists of sources that chunks have beside their choices.
const LISTS: [&str; 2] = ["citations", "search_results"];

/// Members of a message that carry a whole part.
#[derive(Debug, PartialEq)]
pub(super) enum Medium {
    /// Entry of `images`.
    Image(String),
    /// Members of `audio`, as an object.
    Audio(String),
    /// List of `executed_tools`.
    Tools(String),
}

/// Return the list of the tools that the server ran, if a block has it.
fn executed_tools<'a>(dialect: &str, block: &'a str) -> Option<&'a str> {
    let found = members(block).into_iter().find(|(name, _)| name == "executed_tools");
    found.map(|(_, list)| list).filter(|_| dialect == DIALECT)
}

/// Return the medium of a part, an image under the number `images`; the name of the loss for any other part.
pub(super) fn medium(part: &WholePart, images: usize) -> Result<Medium, String> {
    let url = match part.content() {
        WholeContent::Image { mime_type, data: Some(data), .. } => {
            format!("data:{mime_type};base64,{}", text(Some(data)).unwrap_or_default())
        }
        WholeContent::Image { url: Some(url), .. } => text(Some(url)).unwrap_or_default(),
        WholeContent::Image { .. } => return Err("an image without data".to_owned()),
        WholeContent::Provider { dialect, block } => {
            if let Some(tools) = executed_tools(&dialect, block) {
                return Ok(Medium::Tools(tools.to_owned()));
            }
            let audio = is_audio(&dialect, block).then(|| audio(block)).flatten();
            return audio.map(Medium::Audio).ok_or_else(|| match dialect.as_str() {
                DIALECT => "a block that is no audio".to_owned(),
                _ => format!("a part of {dialect}"),
            });
        }
        WholeContent::Other { kind } => return Err(format!("a part of the kind {kind}")),
    };
    if url.is_empty() {
        return Err("an image without an address".to_owned());
    }
    Ok(Medium::Image(object(|image| {
        image.number("index", images);
        image.text("type", "image_url");
        image.object("image_url", |image| image.text("url", &url));
    })))
}

/// Return the members of a block of audio without its type and without nulls.
fn audio(block: &str) -> Option<String> {
    let mut found = members(block);
    found.retain(|(key, value)| key != "type" && *value != "null");
    (!found.is_empty()).then(|| {
        let mut out = String::new();
        write_compact(&mut out, &write_object(&found));
        out
    })
}

/// Return audio with the transcript that was said before it.
pub(super) fn with_transcript(audio: Option<&str>, transcript: &str) -> String {
    let mut found = members(audio.unwrap_or("{}"));
    let mut text = String::new();
    write_string(&mut text, transcript);
    if !transcript.is_empty() {
        found.push(("transcript".into(), &text));
    }
    write_object(&found)
}

/// Return true if the state of a text marks it as the transcript of audio.
pub(super) fn is_transcript(state: Option<&str>) -> bool {
    let Some(json) = state else { return false };
    let state = State::read(json);
    state.dialect == DIALECT && member(state.data, AUDIO).is_some()
}

/// Return the name and the list of an annotation that is a list of sources: `{type: name, <name>: list}`.
fn source_list(annotation: &str) -> Option<(&'static str, String)> {
    let kind = annotations::kind(annotation);
    let name = LISTS.into_iter().find(|name| *name == kind)?;
    let list = member(annotation, name)?;
    let mut out = String::new();
    write_compact(&mut out, list);
    Some((name, out))
}

/// Return an annotation of Chat's own form under a number; `None` for any other annotation.
fn own_annotation(annotation: &str, number: usize) -> Option<String> {
    let own = annotations::kind(annotation) == "url_citation"
        && member(annotation, "url_citation").is_some_and(|citation| citation.starts_with('{'));
    own.then(|| {
        let mut found = members(annotation);
        found.retain(|(key, _)| key != "index");
        let number = number.to_string();
        found.insert(0, ("index".into(), &number));
        let mut out = String::new();
        write_compact(&mut out, &write_object(&found));
        out
    })
}

/// Annotations and lists of sources of one message.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Sources {
    /// JSON of the annotations, numbered.
    pub(super) annotations: Vec<String>,
    /// Lists by their members of the chunk.
    pub(super) lists: Vec<(&'static str, String)>,
}

impl Sources {
    /// Keep the annotations of a JSON array.
    pub(super) fn keep(&mut self, draft: &mut Draft, json: &str) {
        for annotation in annotations::list(json) {
            if let Some((name, list)) = source_list(annotation) {
                self.lists.retain(|(known, _)| *known != name);
                self.lists.push((name, list));
                continue;
            }
            if let Some(own) = own_annotation(annotation, self.annotations.len()) {
                self.annotations.push(own);
                continue;
            }
            match citation(annotation) {
                Some(citation) => {
                    let mut out = String::from("{\"index\":");
                    out.push_str(&self.annotations.len().to_string());
                    out.push_str(",\"type\":\"url_citation\",\"url_citation\":{");
                    citation.write_members(&mut out);
                    out.push_str("}}");
                    self.annotations.push(out);
                }
                None => draft.notes.add("annotations", "an annotation without an address"),
            }
        }
    }
}
