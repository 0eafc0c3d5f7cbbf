//! What markup says: text, thinking and calls, each as parts of its own.
//!
//! In: what a grammar recognised.  Out: what [`EmitterSink`] takes.
//! Laws: a change of kind opens a new part; what may still turn out to be prose is kept as it was written until a call
//! begins; a call that began is ended once.

use std::sync::Arc;

use super::literals::from;
use super::tools::{Tools, Types};
use crate::contract::{InputFormat, Output};
use crate::emit::{CallEnd, CallHandle, EmitterSink, PartHandle, PartKind};
use crate::json::Str;

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct MarkupWriter {
    tools: Option<Arc<Tools>>,
    /// The part that text of its kind still extends.
    part: Option<(PartKind, PartHandle)>,
    last: Option<PartHandle>,
    last_text: Option<PartHandle>,
    call: Option<CallHandle>,
    /// What was read since a call may have begun.
    candidate: Option<String>,
    /// A call began since that was last asked.
    began: bool,
}

impl MarkupWriter {
    pub(super) fn new(tools: Option<Arc<Tools>>) -> Self {
        Self { tools, ..Self::default() }
    }

    /// Whether a tool of this name was offered, as far as anybody said what was.
    pub(super) fn offers(&self, name: &str) -> bool {
        self.tools.as_ref().is_none_or(|tools| tools.offers(name))
    }

    /// What a parameter takes.
    pub(super) fn types(&self, tool: &str, parameter: &str) -> Types {
        self.tools.as_ref().map_or(Types::STRING, |tools| tools.types(tool, parameter))
    }

    /// More text or thinking.
    pub(super) fn write_text<O: Output>(
        &mut self,
        kind: PartKind,
        text: &str,
        sink: &mut EmitterSink<'_, O>,
    ) {
        if !text.is_empty() {
            let part = self.part(kind, sink);
            sink.text(part, Str::plain(text));
        }
    }

    fn part<O: Output>(&mut self, kind: PartKind, sink: &mut EmitterSink<'_, O>) -> PartHandle {
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

    /// What comes next belongs to another part.
    pub(super) fn leave_part(&mut self) {
        self.part = None;
    }

    /// The part that what rides on the text belongs to: citations to text, everything else to the latest part.
    pub(super) fn attribute_part<O: Output>(
        &mut self,
        citations: bool,
        sink: &mut EmitterSink<'_, O>,
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

    /// What is read from here on may be a call, or prose.
    pub(super) fn begin_candidate(&mut self, lead: &str) {
        self.candidate = Some(lead.to_owned());
    }

    /// Whether what is read may still be prose.
    pub(super) fn has_candidate(&self) -> bool {
        self.candidate.is_some()
    }

    /// Keeps what was read, as long as it may be prose.
    pub(super) fn extend_candidate(&mut self, text: &str) {
        if let Some(candidate) = &mut self.candidate {
            candidate.push_str(text);
        }
    }

    /// What was no call after all.
    pub(super) fn take_candidate(&mut self) -> Option<String> {
        self.candidate.take()
    }

    /// Bytes that are kept.
    pub(super) fn held_bytes(&self) -> usize {
        self.candidate.as_ref().map_or(0, String::len)
    }

    /// Whether a call began since this was last asked.
    pub(super) fn take_call_began(&mut self) -> bool {
        std::mem::take(&mut self.began)
    }

    /// Begins a call.
    pub(super) fn begin_call<O: Output>(
        &mut self,
        name: &str,
        id: Option<&str>,
        format: InputFormat,
        sink: &mut EmitterSink<'_, O>,
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

    /// Whether a call is open.
    pub(super) fn has_open_call(&self) -> bool {
        self.call.is_some()
    }

    /// More text of the call's arguments.
    pub(super) fn args<O: Output>(&mut self, text: &str, sink: &mut EmitterSink<'_, O>) {
        if let Some(call) = self.call {
            sink.call_args(call, Str::plain(text));
        }
    }

    /// The call's arguments are over.
    pub(super) fn end_call<O: Output>(&mut self, how: CallEnd, sink: &mut EmitterSink<'_, O>) {
        if let Some(call) = self.call.take() {
            sink.end_call(call, how);
        }
    }

    /// A call that is still open stays half of one.
    pub(super) fn abandon_call<O: Output>(&mut self, sink: &mut EmitterSink<'_, O>) {
        self.end_call(CallEnd::Abandoned, sink);
    }

    /// A whole call at once.
    pub(super) fn whole_call<O: Output>(
        &mut self,
        name: &str,
        id: Option<&str>,
        args: &str,
        sink: &mut EmitterSink<'_, O>,
    ) {
        self.begin_call(name, id, InputFormat::Json, sink);
        self.args(args, sink);
        self.end_call(CallEnd::Provider, sink);
    }
}

/// What a grammar made of the text that comes next.
pub(super) enum Step {
    /// So many bytes are done with.
    Take(usize),
    /// Nothing can be said before more text comes.
    Wait,
    /// So many bytes are done with, and the markup is over.
    Leave(usize),
    /// So many bytes were read; they, and what was read since a call may have begun, are prose.
    Prose(usize),
}

/// The step over white space, or the byte behind it.
pub(super) enum Next {
    Step(Step),
    Byte(u8),
}

/// Tells the next byte, white space taken first.
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
