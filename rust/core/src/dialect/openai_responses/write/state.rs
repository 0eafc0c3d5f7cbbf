//! Members of provider state and of items as the writer needs them.
//!
//! In: JSON of provider state and of items.  Out: ids, phases and texts.

use crate::encode::{State, write_compact};
use crate::json::{Reader, members, write_string};

const DIALECT: &str = "openai-responses";

/// Return a text as a JSON string.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::new();
    write_string(&mut out, text);
    out
}

/// Return the member that holds the text of a call that the provider ran, and the text.
pub(super) fn run_call(item: &str) -> Option<(&'static str, String)> {
    let members = members(item);
    let text = |name: &str| {
        let value = members.iter().find(|(key, _)| key == name)?.1;
        Reader::trusted(value).opt_string().ok()?.map(|text| text.text())
    };
    let member = match text("type")?.as_str() {
        "custom_tool_call" => "input",
        "function_call" => "arguments",
        _ => return None,
    };
    Some((member, text(member)?))
}

/// Return a string in provider state of this dialect as JSON.
pub(super) fn own_member<'a>(json: Option<&'a str>, name: &str) -> Option<&'a str> {
    let state = State::read(json?);
    state.text_member(name).filter(|_| state.dialect == DIALECT)
}

/// Return the id in provider state of this dialect.
pub(super) fn own_id(json: Option<&str>) -> Option<String> {
    let id = own_member(json, "id")?;
    let id = Reader::trusted(id).opt_string().ok()??.text();
    Some(id).filter(|id| !id.is_empty())
}

/// Return the phase in provider state of this dialect, as JSON.
pub(super) fn own_phase(json: Option<&str>) -> Option<String> {
    own_member(json, "phase").map(|phase| {
        let mut out = String::new();
        write_compact(&mut out, phase);
        out
    })
}
