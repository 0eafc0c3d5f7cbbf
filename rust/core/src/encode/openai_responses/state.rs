//! Members of provider state and of items as the writer needs them.
//!
//! In: JSON of provider state, items and annotations.  Out: ids, phases, texts, and citations with all members of the client's type.

use crate::dialect::openai_responses::facts::flat_name;
use crate::encode::audio::is_audio;
use crate::encode::{Call, State, WholeContent, WholePart, write_compact};
use crate::fold::Part;
use crate::json::{Reader, Str, members, object, write_string};

const DIALECT: &str = "openai-responses";

/// Members of a call, beside its names, that belong to the API and not to a model.
const OF_CALLS: [&str; 2] = ["caller", "async"];

/// The names of a call in a namespace, and its further members.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Origin {
    /// Namespace and the name inside of it.
    pub(super) name: Option<(Box<str>, Box<str>)>,
    /// Name and JSON.
    pub(super) members: Vec<(&'static str, String)>,
}

/// Return what the provider state of this dialect says of the names of a call.
///
/// A namespace counts only if the call has the name that is made of it: the caller may have renamed the call.
pub(super) fn own_origin(call: &Call) -> Origin {
    let mut origin = Origin::default();
    // Most states have none of the members; a search is cheaper than a reader.
    let is_told = |json: &&str| {
        json.contains("\"namespace\"") || OF_CALLS.iter().any(|name| json.contains(name))
    };
    let Some(json) = call.state.as_deref().filter(is_told) else { return origin };
    let state = State::read(json);
    if state.dialect != DIALECT {
        return origin;
    }
    let text = |json: &str| Reader::trusted(json).filled_string().ok().flatten().map(|s| s.text());
    let (mut namespace, mut name) = (None, None);
    for (key, value) in members(state.data) {
        match key.as_ref() {
            "namespace" => namespace = text(value),
            "name" => name = text(value),
            key => {
                let known = OF_CALLS.iter().find(|known| **known == key);
                if let Some(known) = known.filter(|_| value != "null") {
                    let mut out = String::new();
                    write_compact(&mut out, value);
                    origin.members.push((known, out));
                }
            }
        }
    }
    if let (Some(namespace), Some(name)) = (namespace, name)
        && flat_name(Some(Str::plain(&namespace)), Str::plain(&name)) == *call.name
    {
        origin.name = Some((namespace.into(), name.into()));
    }
    origin
}

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

/// Return whether provider state of this dialect lists summaries, and whether it lists contents, in this order.
///
/// `None` for another dialect.  An item that begins lists contents if its text is raw reasoning; the lists are empty then.
pub(super) fn own_forms(json: Option<&str>) -> Option<[Option<bool>; 2]> {
    let state = State::read(json?);
    let members = members(state.data);
    let filled = |name: &str| {
        let (_, list) = members.iter().find(|(key, _)| key == name)?;
        let inner = list.strip_prefix('[')?;
        Some(!inner.trim_start().starts_with(']'))
    };
    (state.dialect == DIALECT).then(|| [filled("summary"), filled("content")])
}

/// Return true if the reasoning in provider state of this dialect is raw and has no summary.
pub(super) fn is_own_raw(json: Option<&str>) -> bool {
    matches!(own_forms(json), Some([None | Some(false), Some(_)]))
}

/// Return the phase in provider state of this dialect, as JSON.
pub(super) fn own_phase(json: Option<&str>) -> Option<String> {
    own_member(json, "phase").map(|phase| {
        let mut out = String::new();
        write_compact(&mut out, phase);
        out
    })
}

/// Return true if a part of a message is audio.
pub(super) fn is_audio_part(part: &Part) -> bool {
    let Part::Whole(json) = part else { return false };
    let part = WholePart { index: 0, json: json.clone() };
    matches!(part.content(), WholeContent::Provider { dialect, block } if is_audio(&dialect, block))
}

/// Return a citation of a page in the protocol's own form with the members that its clients require; `None` for any other
/// annotation.
pub(super) fn own_citation(annotation: &str) -> Option<String> {
    let members = members(annotation);
    let is_own = members.iter().any(|(key, kind)| key == "type" && *kind == "\"url_citation\"");
    let has_url =
        members.iter().any(|(key, url)| key == "url" && url.starts_with('"') && *url != "\"\"");
    (is_own && has_url).then(|| {
        object(|citation| {
            let mut missing = vec![("title", "\"\""), ("start_index", "0"), ("end_index", "0")];
            for (key, value) in &members {
                let required = missing.iter().position(|(name, _)| name == key);
                // A required member of another type, such as null, counts as missing.
                let is_text = value.starts_with('"');
                if required.is_none_or(|_| is_text == (key == "title") && *value != "null") {
                    required.map(|at| missing.remove(at));
                    let mut out = String::new();
                    write_compact(&mut out, value);
                    citation.json_of(key, &out);
                }
            }
            for (key, value) in missing {
                citation.json(key, value);
            }
        })
    })
}
