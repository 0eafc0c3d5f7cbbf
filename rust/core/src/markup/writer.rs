//! `MarkupWriter`: emits the text, thinking and calls that a grammar recognised.
//!
//! In: results of a grammar.  Out: parts and calls, in an [`EmitterSink`].
//!
//! Laws: a change of kind opens a new part.  Text that may still be prose is kept as written until a call begins.  A call
//! that began is ended once.

use std::sync::Arc;

use super::literals::from;
use super::tools::{Tools, Types};
use crate::contract::InputFormat;
use crate::emit::{CallEnd, CallHandle, EmitterSink, PartHandle, PartKind};
use crate::json::Str;

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct MarkupWriter {
    tools: Option<Arc<Tools>>,
    /// Part that more text of the same kind extends.
    part: Option<(PartKind, PartHandle)>,
    last: Option<PartHandle>,
    last_text: Option<PartHandle>,
    call: Option<CallHandle>,
    /// Text since the start of a possible call.
    candidate: Option<String>,
    /// A call began since the last [`Self::take_call_began`].
    began: bool,
}

impl MarkupWriter {
    pub(super) fn new(tools: Option<Arc<Tools>>) -> Self {
        Self { tools, ..Self::default() }
    }

    /// Return true if a tool with this name was offered, or if the offered tools are unknown.
    pub(super) fn offers(&self, name: &str) -> bool {
        self.tools.as_ref().is_none_or(|tools| tools.offers(name))
    }

    /// Return the types of a parameter.
    pub(super) fn types(&self, tool: &str, parameter: &str) -> Types {
        self.tools.as_ref().map_or(Types::STRING, |tools| tools.types(tool, parameter))
    }

    /// Emit more text or thinking.
    pub(super) fn write_text(&mut self, kind: PartKind, text: &str, sink: &mut EmitterSink<'_>) {
        if !text.is_empty() {
            let part = self.part(kind, sink);
            sink.text(part, Str::plain(text));
        }
    }

    fn part(&mut self, kind: PartKind, sink: &mut EmitterSink<'_>) -> PartHandle {
        if let Some((known, part)) = self.part
            && known == kind
        {
            return part;
        }
        let part = sink.open_part(kind);
        self.part = Some((kind, part));
        self.last = Some(part);
        if kind == PartKind::Text {
            self.last_text = Some(part);
        }
        part
    }

    /// Let the next text open a new part.
    pub(super) fn leave_part(&mut self) {
        self.part = None;
    }

    /// Return the part that takes an attribute of the text: the latest text part for citations, else the latest part.
    pub(super) fn attribute_part(
        &mut self,
        citations: bool,
        sink: &mut EmitterSink<'_>,
    ) -> PartHandle {
        let known = if citations { self.last_text } else { self.last };
        if let Some(part) = known {
            return part;
        }
        let part = self.part(PartKind::Text, sink);
        if self.call.is_some() {
            self.part = None;
        }
        part
    }

    /// Begin to keep text that may be a call or prose.
    pub(super) fn begin_candidate(&mut self, lead: &str) {
        self.candidate = Some(lead.to_owned());
    }

    /// Return true while kept text may still be prose.
    pub(super) fn has_candidate(&self) -> bool {
        self.candidate.is_some()
    }

    /// Keep more text while it may be prose.
    pub(super) fn extend_candidate(&mut self, text: &str) {
        if let Some(candidate) = &mut self.candidate {
            candidate.push_str(text);
        }
    }

    /// Return the kept text, which was not a call, and stop keeping.
    pub(super) fn take_candidate(&mut self) -> Option<String> {
        self.candidate.take()
    }

    /// Return the number of kept bytes.
    pub(super) fn held_bytes(&self) -> usize {
        self.candidate.as_ref().map_or(0, String::len)
    }

    /// Return true if a call began since the last call of this function.
    pub(super) fn take_call_began(&mut self) -> bool {
        std::mem::take(&mut self.began)
    }

    /// Begin a call.
    pub(super) fn begin_call(
        &mut self,
        name: &str,
        id: Option<&str>,
        format: InputFormat,
        sink: &mut EmitterSink<'_>,
    ) {
        self.abandon_call(sink);
        let call = sink.open_verbatim_call(format);
        sink.name_call(call, id.map(Str::plain), Some(Str::plain(name)));
        sink.start_call(call);
        self.call = Some(call);
        self.candidate = None;
        self.part = None;
        self.began = true;
    }

    /// Return true while a call is open.
    pub(super) fn has_open_call(&self) -> bool {
        self.call.is_some()
    }

    /// Emit more argument text of the open call.
    pub(super) fn args(&mut self, text: &str, sink: &mut EmitterSink<'_>) {
        if let Some(call) = self.call {
            sink.call_args(call, Str::plain(text));
        }
    }

    /// End the open call.
    pub(super) fn end_call(&mut self, how: CallEnd, sink: &mut EmitterSink<'_>) {
        if let Some(call) = self.call.take() {
            sink.end_call(call, how);
        }
    }

    /// End the open call as incomplete.
    pub(super) fn abandon_call(&mut self, sink: &mut EmitterSink<'_>) {
        self.end_call(CallEnd::Abandoned, sink);
    }

    /// Emit a whole call.
    pub(super) fn whole_call(
        &mut self,
        name: &str,
        id: Option<&str>,
        args: &str,
        sink: &mut EmitterSink<'_>,
    ) {
        self.begin_call(name, id, InputFormat::Json, sink);
        self.args(args, sink);
        self.end_call(CallEnd::Provider, sink);
    }
}

/// Result of a grammar for the next text.
pub(super) enum Step {
    /// This number of bytes was consumed.
    Take(usize),
    /// The text is ambiguous until more arrives.
    Wait,
    /// This number of bytes was consumed, and the block has ended.
    Leave(usize),
    /// This number of bytes was read.  They, and the kept text before them, are prose.
    Prose(usize),
}

/// Step over white space, or the byte after it.
pub(super) enum Next {
    Step(Step),
    Byte(u8),
}

/// Return the next byte, or a step that consumes the white space before it.
pub(super) fn next_byte(input: &str) -> Next {
    let blanks = super::literals::blanks(input);
    if blanks > 0 {
        return Next::Step(Step::Take(blanks));
    }
    match from(input, 0).bytes().next() {
        Some(byte) => Next::Byte(byte),
        None => Next::Step(Step::Wait),
    }
}
