//! Parts of a candidate: texts, calls, what came whole, and the signatures of all of them.
//!
//! In: parts of the contract.  Out: their JSON; a note for what Gemini has no word for.

use std::borrow::Cow;

use crate::base64;
use crate::encode::{
    Call, Draft, Owner, State, TextKind, WholeContent, WholePart, envelope, write_compact,
};
use crate::json::{Reader, members, object, write_string};

const DIALECT: &str = "gemini";

/// Return a signature as a JSON string of base64: an own one, or an envelope.
pub(super) fn signature(
    draft: &mut Draft,
    state: Option<&str>,
    owner: &Owner<'_>,
) -> Option<String> {
    let state = State::read(state?);
    if state.dialect == DIALECT && state.text_member("thoughtSignature").is_none() {
        return None;
    }
    if state.is_own(&draft.settings, DIALECT) {
        let signature = state.text_member("thoughtSignature")?;
        if !is_base64(signature) {
            draft.notes.add("provider_state", "a signature that is not base64");
            return None;
        }
        return Some(signature.to_owned());
    }
    if draft.settings.envelope {
        let mut out = String::new();
        write_string(&mut out, &envelope(&state, owner));
        return Some(out);
    }
    draft.notes.add("provider_state", &format!("provider state of {}", state.dialect));
    None
}

/// Return true for a JSON string of padded base64, in either alphabet.  The Python client refuses anything else.
fn is_base64(json: &str) -> bool {
    let text = Reader::trusted(json).opt_string().ok().flatten();
    text.is_some_and(|text| {
        let standard = text.text().replace('-', "+").replace('_', "/");
        standard.len().is_multiple_of(4)
            && base64::decode_into(standard.as_bytes(), &mut Vec::new()).is_some()
    })
}

/// Return a part of text or thinking.
pub(super) fn text_part(text: &str, kind: TextKind, signature: Option<&str>) -> String {
    object(|part| {
        if kind == TextKind::Thinking {
            part.json("thought", "true");
        }
        part.text("text", text);
        if let Some(signature) = signature {
            part.json("thoughtSignature", signature);
        }
    })
}

/// Return the part of a call; `None` if its arguments mean no object.
pub(super) fn call_part(draft: &mut Draft, call: &Call) -> Option<String> {
    let args = call.input_object()?;
    let signature = signature(draft, call.state.as_deref(), &Owner::default());
    Some(object(|part| {
        part.object("functionCall", |function| {
            function.text("id", &call.id);
            function.text("name", &call.name);
            function.value("args", |out| write_compact(out, &args));
        });
        if let Some(signature) = &signature {
            part.json("thoughtSignature", signature);
        }
    }))
}

/// Return a part that came whole; a note for what Gemini has no word for.
pub(super) fn whole_part(draft: &mut Draft, part: &WholePart) -> Option<String> {
    let what = match part.content() {
        WholeContent::Provider { dialect, block } if dialect == DIALECT => {
            let own = members(block);
            // The clients accept a call with any content.
            if own.iter().any(|(key, value)| key == "functionCall" && !value.starts_with('{')) {
                draft.notes.add("part", "a call that is no object");
                return None;
            }
            let wrong = |(key, value): &(Cow<'_, str>, &str)| {
                key == "thoughtSignature" && !is_base64(value)
            };
            if own.iter().any(wrong) {
                draft.notes.add("provider_state", "a signature that is not base64");
            }
            return Some(object(|part| {
                for (key, value) in own.iter().filter(|member| !wrong(member)) {
                    let mut compact = String::new();
                    write_compact(&mut compact, value);
                    part.json_of(key, &compact);
                }
            }));
        }
        WholeContent::Image { mime_type, data: Some(data), .. } => {
            return Some(object(|part| {
                part.object("inlineData", |inline| {
                    inline.text("mimeType", &mime_type);
                    inline.json("data", data);
                });
            }));
        }
        WholeContent::Image { mime_type, url: Some(url), .. } => {
            return Some(object(|part| {
                part.object("fileData", |file| {
                    file.text("mimeType", &mime_type);
                    file.json("fileUri", url);
                });
            }));
        }
        WholeContent::Provider { dialect, .. } => format!("a part of {dialect}"),
        WholeContent::Image { .. } => "an image without content".to_owned(),
        WholeContent::Other { kind } => format!("a part of the kind {kind}"),
    };
    draft.notes.add("part", &what);
    None
}
