//! Handover: an answer that one model began and another one serves.
//!
//! In: a part, or a folded message.  Out: whether it is the boundary between the models; the message of the serving model.
//!
//! Law: a call before the last boundary is of the model that declined, and never runs.  Only the protocol of the boundary can
//! say so.  Every other target leaves such calls out, or ends the answer as a filter does if one was already written.
//! Source: Anthropic, "Refusals and fallback", continuing the conversation (read 2026-11).

use std::borrow::Cow;

use super::draft::Draft;
use super::parts::{WholeContent, WholePart, member, text};
use crate::fold::{MessageAssembler, Part};

/// Dialect of the boundary, whose target writes every block of an answer.
pub(super) const DIALECT: &str = "anthropic-messages";

/// Return true if a whole part is a boundary that the protocol of a target cannot say.
pub(super) fn hands_over(target_dialect: &str, json: &str) -> bool {
    // Most parts are told apart without reading their JSON, which may be an image.
    if target_dialect == DIALECT || !json.contains("\"fallback\"") {
        return false;
    }
    match (WholePart { index: 0, json: json.into() }).content() {
        WholeContent::Provider { dialect, block } => {
            dialect == DIALECT && text(member(block, "type")).as_deref() == Some("fallback")
        }
        WholeContent::Image { .. } | WholeContent::Other { .. } => false,
    }
}

/// Return a message as its serving model wrote it: without the thinking and the calls before its last boundary, which become
/// notes.  The protocol of the boundary gets all of it.
pub fn of_serving_model<'a>(
    draft: &mut Draft,
    target_dialect: &str,
    message: &'a MessageAssembler,
) -> Cow<'a, MessageAssembler> {
    let is_boundary = |part: &Part| match part {
        Part::Whole(json) => hands_over(target_dialect, json),
        Part::Text(_) | Part::Thinking(_) | Part::ToolCall(_) => false,
    };
    let Some(last) = message.parts().iter().rposition(is_boundary) else {
        return Cow::Borrowed(message);
    };
    let is_left_out = |index: usize, part: &Part| {
        index < last && matches!(part, Part::Thinking(_) | Part::ToolCall(_))
    };
    let served = message.without(is_left_out);
    for _ in served.parts().len()..message.parts().len() {
        draft.notes.add("part", "a part of a model that another one took over from");
    }
    Cow::Owned(served)
}
