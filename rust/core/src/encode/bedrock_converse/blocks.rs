//! Blocks of a ConverseStream beside text, reasoning and calls: server tools, their results, images, citations, unknown ones.
//!
//! In: blocks as whole bodies have them, and annotations of any dialect.  Out: the start and the delta that carry a block in a
//! stream, and the citations of the service.
//!
//! Laws: the decoder reads the block from its start and its delta again.  An input without the call that it belongs to has no
//! form in a stream.
//! Source: docs.aws.amazon.com, "ContentBlockStart", "ContentBlockDelta" and "CitationsDelta".

use crate::encode::{Draft, WholeContent, WholePart, annotations, write_compact};
use crate::json::scan::{JsonScan, Verdict};
use crate::json::{Reader, members, object, write_object};

/// Dialect whose blocks are those of the service.
const DIALECT: &str = "bedrock-converse";

/// A block in a stream; each member is a JSON object.
#[derive(Debug, Default, PartialEq)]
pub(super) struct StreamedBlock {
    /// Content of `contentBlockStart`.
    pub(super) start: Option<String>,
    /// Content of `contentBlockDelta`.
    pub(super) delta: Option<String>,
}

fn compact_value(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    write_compact(&mut out, json);
    out
}

fn text_of(json: &str) -> Option<String> {
    Reader::trusted(json).opt_string().ok()?.map(|text| text.text())
}

/// Return the name and the content of a block; `None` unless the block is an object with one member that is an object.
fn named(block: &str) -> Option<(String, String)> {
    let mut members = members(block).into_iter();
    let (name, content) = members.next().filter(|(_, content)| content.starts_with('{'))?;
    members.next().is_none().then(|| (name.into_owned(), compact_value(content)))
}

/// Return true if the content of a `toolUse` is a call of a tool that the provider runs.
fn is_server_call(content: &str) -> bool {
    let filled = |name: &str| {
        members(content)
            .iter()
            .any(|(key, value)| key == name && text_of(value).is_some_and(|text| !text.is_empty()))
    };
    filled("toolUseId")
        && filled("name")
        && members(content).iter().any(|(key, value)| {
            key == "type" && text_of(value).is_some_and(|text| text == "server_tool_use")
        })
}

/// Return the text that a client joins to the input of a tool.  A string that is not JSON is the text of a broken input.
fn input_text(json: &str) -> String {
    let Some(text) = text_of(json) else { return json.to_owned() };
    let mut scan = JsonScan::default();
    scan.feed(text.as_bytes());
    if scan.verdict() == Verdict::Complete { json.to_owned() } else { text }
}

fn wrapped(name: &str, content: &str) -> String {
    write_object(&[(name, content)])
}

/// Split the content of a block into the members of its start and those of its delta.
fn split(content: &str, in_delta: impl Fn(&str, &str) -> bool) -> (String, Vec<(String, String)>) {
    let (mut start, mut delta) = (Vec::new(), Vec::new());
    for (key, value) in members(content) {
        if in_delta(&key, value) {
            delta.push((key.into_owned(), value.to_owned()));
        } else {
            start.push((key.into_owned(), value));
        }
    }
    (write_object(&start), delta)
}

/// Return a block of the service as its start and its delta; `None` if a stream has no form for the block.
fn streamed(block: &str) -> Option<StreamedBlock> {
    let (name, content) = named(block)?;
    match name.as_str() {
        "text" | "reasoningContent" | "citationsContent" => None,
        "toolUse" => {
            if !is_server_call(&content) {
                return None;
            }
            let (start, input) = split(&content, |key, _| key == "input");
            let delta = input.first().map(|(_, json)| {
                object(|delta| {
                    delta.object("toolUse", |tool| tool.text("input", &input_text(json)));
                })
            });
            Some(StreamedBlock { start: Some(wrapped(&name, &start)), delta })
        }
        "toolResult" => {
            let (start, list) =
                split(&content, |key, value| key == "content" && value.starts_with('['));
            let delta = list.first().map(|(_, list)| wrapped(&name, list));
            // A result without its call began with its first delta.
            let begins = start != "{}" || delta.is_none();
            Some(StreamedBlock { start: begins.then(|| wrapped(&name, &start)), delta })
        }
        "image" => {
            let (start, source) = split(&content, |key, _| key != "format");
            let source: Vec<_> = source.iter().map(|(key, value)| (key, value.as_str())).collect();
            Some(StreamedBlock {
                start: (start != "{}").then(|| wrapped(&name, &start)),
                delta: Some(wrapped(&name, &write_object(&source))),
            })
        }
        _ => Some(StreamedBlock { start: Some(wrapped(&name, &content)), delta: None }),
    }
}

/// Return an image as a block; its data is a JSON string.
fn image_block(mime_type: &str, data: &str) -> String {
    let format = mime_type.strip_prefix("image/").filter(|format| *format != "*");
    object(|block| {
        block.object("image", |image| {
            if let Some(format) = format {
                image.text("format", format);
            }
            image.object("source", |source| source.json("bytes", data));
        });
    })
}

/// Return a part as a block of a whole body.  A part without a block of the service becomes a note.
pub(super) fn whole_block(draft: &mut Draft, part: &WholePart) -> Option<String> {
    let what = match part.content() {
        WholeContent::Provider { dialect, block } if dialect == DIALECT => match named(block) {
            Some((name, content)) if name != "toolUse" || is_server_call(&content) => {
                return Some(wrapped(&name, &content));
            }
            _ => "an input without its call".to_owned(),
        },
        WholeContent::Provider { dialect, .. } => format!("a part of {dialect}"),
        WholeContent::Image { mime_type, data: Some(data), .. }
            if mime_type.starts_with("image/") =>
        {
            return Some(image_block(&mime_type, data));
        }
        WholeContent::Image { .. } => "an image by its address".to_owned(),
        WholeContent::Other { kind } => format!("a part of the kind {kind}"),
    };
    draft.notes.add("part", &what);
    None
}

/// Return a part as a block of a stream.  A part without such a form becomes a note.
pub(super) fn streamed_part(draft: &mut Draft, part: &WholePart) -> Option<StreamedBlock> {
    let block = whole_block(draft, part)?;
    let streamed = streamed(&block);
    if streamed.is_none() {
        draft.notes.add("part", "a block without a form in a stream");
    }
    streamed
}

/// Return the annotations of a JSON array as citations of the service, each a JSON object.
pub(super) fn citations(draft: &mut Draft, annotations: &str) -> Vec<String> {
    let mut found = Vec::new();
    for annotation in annotations::list(annotations) {
        // Annotations of every other dialect have other members.
        let own = annotation.starts_with('{')
            && members(annotation).iter().all(|(key, _)| {
                matches!(key.as_ref(), "title" | "source" | "sourceContent" | "location")
            });
        if own {
            found.push(compact_value(annotation));
        } else if let Some(citation) = annotations::citation(annotation) {
            found.push(object(|own| {
                if let Some(title) = &citation.title {
                    own.text("title", title);
                }
                own.object("location", |location| {
                    location.object("web", |web| web.text("url", &citation.url));
                });
            }));
        } else {
            draft.notes.add("annotations", "an annotation without an address");
        }
    }
    found
}
