//! Parts as writers see them.

use super::arguments::argument_object;
use crate::contract::{InputFormat, Logprobs, is_of_provider};
use crate::fold::{TextPart as FoldedText, ToolCall};
use crate::json::{members, object};

/// Kind of a part of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextKind {
    /// Visible text.
    Text,
    /// Thinking (reasoning).
    Thinking,
}

/// A part of text or thinking, without its text.
#[derive(Clone, Debug, PartialEq)]
pub struct TextPart {
    /// Number of the part in the contract.
    pub index: usize,
    /// Kind of the part.
    pub kind: TextKind,
    /// The text is a refusal.
    pub refusal: bool,
    /// The provider withholds the reasoning.
    pub redacted: bool,
    /// JSON object `{dialect, modelId, data}`; the last one counts.
    pub state: Option<Box<str>>,
}

impl TextPart {
    /// Build a part from a folded one.
    pub fn from_fold(index: usize, kind: TextKind, part: &FoldedText) -> Self {
        Self {
            index,
            kind,
            refusal: part.refusal,
            redacted: part.redacted,
            state: part.provider_state.clone(),
        }
    }
}

/// What comes with one text.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Extras<'a> {
    /// JSON array of annotations.
    pub annotations: Option<&'a str>,
    /// Log probabilities of the tokens.
    pub logprobs: Option<&'a Logprobs>,
}

impl Extras<'_> {
    /// Return true if nothing comes with it.
    pub fn is_empty(&self) -> bool {
        self.annotations.is_none() && self.logprobs.is_none()
    }
}

/// A tool call.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Number of the part in the contract.
    pub index: usize,
    /// Number of the call among the calls that were written.
    pub ordinal: usize,
    /// Id of the call.
    pub id: Box<str>,
    /// Name of the tool.
    pub name: Box<str>,
    /// Format of the arguments.
    pub format: InputFormat,
    /// Argument text that waits, or all of it if the target takes calls whole.
    pub args: String,
    /// True if the end said that the arguments were cut off.
    pub incomplete: bool,
    /// JSON object `{dialect, modelId, data}`.
    pub state: Option<Box<str>>,
}

impl Call {
    /// Build a call from a folded one, with all of its arguments.
    pub fn from_fold(index: usize, ordinal: usize, call: &ToolCall) -> Self {
        Self {
            index,
            ordinal,
            id: (*call.id).into(),
            name: name_of(&call.id, &call.name),
            format: call.input_format,
            args: call.args.clone(),
            incomplete: call.incomplete,
            state: call.provider_state.clone(),
        }
    }

    /// Return the arguments as a JSON object; `None` if they mean none.
    pub fn input_object(&self) -> Option<String> {
        if self.format == InputFormat::Json {
            return argument_object(&self.args);
        }
        Some(object(|input| input.text("input", &self.args)))
    }
}

/// Return the name of a call; none for one that its provider ran, which no client may run again.
pub(super) fn name_of(id: &str, name: &str) -> Box<str> {
    if is_of_provider(id) { "".into() } else { name.into() }
}

/// A part that came in one delta.
#[derive(Clone, Debug, PartialEq)]
pub struct WholePart {
    /// Number of the part in the contract.
    pub index: usize,
    /// JSON object `{kind, payload, providerState?}`.
    pub json: Box<str>,
}

/// Content of a whole part.
#[derive(Clone, Debug, PartialEq)]
pub enum WholeContent<'a> {
    /// A block of one dialect.
    Provider {
        /// Name of the dialect.
        dialect: String,
        /// JSON of the block.
        block: &'a str,
    },
    /// An image.
    Image {
        /// MIME type.
        mime_type: String,
        /// Base64 of the bytes.
        data: Option<&'a str>,
        /// Address of the image.
        url: Option<&'a str>,
    },
    /// Any other part.
    Other {
        /// Kind of the part.
        kind: String,
    },
}

/// Return the JSON of a member of an object.
pub(super) fn member<'a>(object: &'a str, key: &str) -> Option<&'a str> {
    members(object).into_iter().find(|(name, _)| name == key).map(|(_, value)| value)
}

/// Return the text of a JSON string.
pub(super) fn text(json: Option<&str>) -> Option<String> {
    let mut reader = crate::json::Reader::trusted(json?);
    reader.opt_string().ok()?.map(|text| text.text())
}

impl WholePart {
    /// Return the content.  Texts of the content stay JSON strings, quotes included.
    pub fn content(&self) -> WholeContent<'_> {
        let kind = text(member(&self.json, "kind")).unwrap_or_default();
        let payload = member(&self.json, "payload").unwrap_or("{}");
        match kind.as_str() {
            "provider" => WholeContent::Provider {
                dialect: text(member(payload, "dialect")).unwrap_or_default(),
                block: member(payload, "block").unwrap_or("null"),
            },
            "image" => WholeContent::Image {
                mime_type: text(member(payload, "mimeType")).unwrap_or_default(),
                data: member(payload, "data").filter(|value| value.starts_with('"')),
                url: member(payload, "url").filter(|value| value.starts_with('"')),
            },
            _ => WholeContent::Other { kind },
        }
    }
}
