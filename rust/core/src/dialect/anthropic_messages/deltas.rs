//! The `delta` members of `content_block_delta` and `message_delta`.

use crate::dialect::unread::Unread;
use crate::json::{Reader, Result, Str};

/// The `delta` of a `content_block_delta`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BlockDelta<'a> {
    /// `text_delta`
    Text(Str<'a>),
    /// `thinking_delta`
    Thinking(Str<'a>),
    /// `input_json_delta`
    InputJson(Str<'a>),
    /// `signature_delta`
    Signature(Str<'a>),
    /// `citations_delta`
    Citation(&'a str),
    /// A type that sets members of its block (`compaction_delta`), or an unknown type: its name and its object.
    Other(Str<'a>, &'a str),
}

/// The members of a delta, during reading.
#[derive(Default)]
pub(super) struct DeltaMembers<'a> {
    kind: Option<Str<'a>>,
    text: Option<Str<'a>>,
    partial_json: Option<Str<'a>>,
    thinking: Option<Str<'a>>,
    signature: Option<Str<'a>>,
    citation: Option<&'a str>,
    pub(super) stop_reason: Option<Str<'a>>,
    pub(super) facts: Facts<'a>,
}

/// Members that the terminal event repeats unchanged; each a JSON value.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Facts<'a> {
    stop_sequence: Option<&'a str>,
    stop_details: Option<&'a str>,
    container: Option<&'a str>,
    context_management: Option<&'a str>,
    diagnostics: Option<&'a str>,
}

impl<'a> Facts<'a> {
    /// Read one of the members.  Returns false for any other member.
    pub(super) fn read(&mut self, reader: &mut Reader<'a>, key: &str) -> Result<bool> {
        match key {
            "stop_sequence" => self.stop_sequence = reader.opt_raw()?,
            "stop_details" => self.stop_details = reader.opt_raw()?,
            "container" => self.container = reader.opt_raw()?,
            "context_management" => self.context_management = reader.opt_raw()?,
            "diagnostics" => self.diagnostics = reader.opt_raw()?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Return whether a stop string ended the answer.
    pub(super) fn name_a_stop_string(&self) -> bool {
        self.stop_sequence.is_some_and(|text| text.starts_with('"') && text != "\"\"")
    }

    /// Return the present members with their names.
    pub(super) fn known(self) -> impl Iterator<Item = (&'static str, &'a str)> {
        let Self { stop_sequence, stop_details, container, context_management, diagnostics } = self;
        let all = [
            ("stop_sequence", stop_sequence),
            ("stop_details", stop_details),
            ("container", container),
            ("context_management", context_management),
            ("diagnostics", diagnostics),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value?)))
    }
}

pub(super) fn read_delta_member<'a>(
    reader: &mut Reader<'a>,
    key: &str,
    delta: &mut DeltaMembers<'a>,
    unread: &mut Unread<'a>,
) -> Result<()> {
    match key {
        "type" => delta.kind = reader.filled_string()?,
        "text" => delta.text = reader.opt_string()?,
        "partial_json" => delta.partial_json = reader.opt_string()?,
        "thinking" => delta.thinking = reader.opt_string()?,
        "signature" => delta.signature = reader.opt_string()?,
        "citation" => delta.citation = reader.opt_raw()?,
        "stop_reason" => delta.stop_reason = reader.filled_string()?,
        // A hint for a progress bar.
        "estimated_tokens" => reader.ignore()?,
        _ if delta.facts.read(reader, key)? => {}
        key => unread.fact(reader, key)?,
    }
    Ok(())
}

impl<'a> BlockDelta<'a> {
    /// Return the delta with these members, or `None` for a delta without content.
    pub(super) fn from_members(members: &DeltaMembers<'a>, raw: &'a str) -> Option<Self> {
        let Some(kind) = members.kind else {
            // Emulations may omit the type; then the member decides.
            let text = members.text.map(Self::Text);
            let thinking = members.thinking.map(Self::Thinking);
            return text.or(thinking).or(members.partial_json.map(Self::InputJson));
        };
        match kind.raw {
            "text_delta" => members.text.map(Self::Text),
            "thinking_delta" => members.thinking.map(Self::Thinking),
            "input_json_delta" => members.partial_json.map(Self::InputJson),
            "signature_delta" => members.signature.map(Self::Signature),
            "citations_delta" => members.citation.map(Self::Citation),
            _ => Some(Self::Other(kind, raw)),
        }
    }
}
