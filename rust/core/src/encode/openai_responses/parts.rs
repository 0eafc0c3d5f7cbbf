//! Parts of a folded message as calls of a writer.
//!
//! In: a message.  Out: the calls of [`Writer`] that its parts make, and the number of whole tool calls.
//!
//! Law: a tool call without a name, or one that was cut before its first arguments, becomes a note.

use crate::encode::calls::{is_untold, note_cut_call};
use crate::encode::{Call, Draft, Extras, TextKind, TextPart, WholePart, Writer};
use crate::fold::{MessageAssembler, Part};

/// Write the parts of a message, and return the number of tool calls that are whole.
pub(super) fn write_parts<W: Writer>(
    writer: &mut W,
    draft: &mut Draft,
    message: &MessageAssembler,
) -> usize {
    let mut calls = 0;
    // They are those of the whole message, and the first text has them.
    let mut logprobs = message.logprobs().map(|logprobs| &**logprobs);
    for (index, part) in message.parts().iter().enumerate() {
        match part {
            Part::Text(folded) | Part::Thinking(folded) => {
                let kind =
                    if matches!(part, Part::Text(_)) { TextKind::Text } else { TextKind::Thinking };
                let text = TextPart::from_fold(index, kind, folded);
                if folded.text.is_empty() {
                    writer.bare(draft, &text);
                    continue;
                }
                writer.open_text(draft, &text);
                let takes_logprobs = kind == TextKind::Text && !text.refusal;
                let logprobs = if takes_logprobs { logprobs.take() } else { None };
                writer.text(draft, &text, &folded.text, Extras { annotations: None, logprobs });
                for json in &folded.annotations {
                    let extras = Extras { annotations: Some(json), logprobs: None };
                    writer.text(draft, &text, "", extras);
                }
                writer.close_text(draft, &text);
            }
            Part::ToolCall(folded) => {
                let call = Call::from_fold(index, 0, folded);
                if is_untold(&call) {
                    note_cut_call(draft, &call);
                    continue;
                }
                writer.open_call(draft, &call);
                if !call.args.is_empty() {
                    writer.args(draft, &call, &call.args);
                }
                writer.close_call(draft, &call);
                calls += usize::from(!call.incomplete);
            }
            Part::Whole(json) => {
                writer.whole_part(draft, &WholePart { index, json: json.clone() });
            }
        }
    }
    if logprobs.is_some_and(|logprobs| !logprobs.is_empty()) {
        draft.notes.add("logprobs", "log probabilities without a text");
    }
    calls
}
