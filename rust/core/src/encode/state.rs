//! Provider state: written for its own dialect, or carried through a client in an envelope.
//!
//! Laws: state of one dialect is never shown to another as its own (docs/protocols/encoding.md#e9).  The same holds
//! for the secrets of a model that `Settings::own_models` leaves out; ids and other members of the dialect stay.

use std::collections::BTreeSet;

use super::draft::Draft;
use super::parts::{Call, TextKind, member, text};
use super::settings::Settings;
use super::spans::Span;
use crate::base64;
use crate::json::{ObjectWriter, compact, object};

/// Provider state, read.
#[derive(Clone, Debug, PartialEq)]
pub struct State<'a> {
    /// Dialect that the state belongs to.
    pub dialect: String,
    /// Model that the state belongs to.
    pub model_id: String,
    /// JSON of the state.
    pub data: &'a str,
}

impl<'a> State<'a> {
    /// Read a JSON object `{dialect, modelId, data}`.
    pub fn read(json: &'a str) -> Self {
        Self {
            dialect: text(member(json, "dialect")).unwrap_or_default(),
            model_id: text(member(json, "modelId")).unwrap_or_default(),
            data: member(json, "data").unwrap_or("null"),
        }
    }

    /// Return true if the client of a target with this dialect may have the secrets of the state as its own.
    pub fn is_own(&self, settings: &Settings, dialect: &str) -> bool {
        let is_model = |models: &BTreeSet<Box<str>>| {
            self.model_id.is_empty() || models.contains(&*self.model_id)
        };
        self.dialect == dialect && settings.own_models.as_deref().is_none_or(is_model)
    }

    /// Return a member of the state's object, as JSON.
    pub fn member(&self, key: &str) -> Option<&'a str> {
        member(self.data, key)
    }

    /// Return a string of the state's object, quotes included.
    pub fn text_member(&self, key: &str) -> Option<&'a str> {
        self.member(key).filter(|value| value.starts_with('"'))
    }
}

/// The part that an envelope belongs to, as far as its place in the target does not tell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Owner<'a> {
    /// The provider withholds the reasoning.
    pub redacted: bool,
    /// Id of the call.
    pub call_id: Option<&'a str>,
    /// Position of the text.
    pub span: Option<Span>,
}

impl<'a> Owner<'a> {
    /// Return the owner of the state of a thinking part.
    pub fn thinking(redacted: bool) -> Self {
        Self { redacted, ..Self::default() }
    }

    /// Return the owner of the state of a call.
    pub fn call(call: &'a Call) -> Self {
        Self { call_id: Some(&call.id), ..Self::default() }
    }
}

/// Return the envelope of a call's state that its own place in the target cannot carry.
///
/// The items of openai-responses are left out: their state is ids, and the API takes a call without them.
pub fn call_envelope(draft: &Draft, dialect: &str, call: &Call) -> Option<String> {
    let state = State::read(call.state.as_deref()?);
    let is_carried =
        draft.settings.envelope && ![dialect, "openai-responses"].contains(&&*state.dialect);
    is_carried.then(|| envelope(&state, &Owner::call(call)))
}

/// Return provider state as one opaque text in base64, for a client that sends it back unchanged.
///
/// Its beginning is that of the JSON object `{"deltafold":1,…}`, so that the reader of the next request recognises it.
pub fn envelope(state: &State<'_>, owner: &Owner<'_>) -> String {
    sealed(|envelope| {
        envelope.text("dialect", &state.dialect);
        envelope.text("modelId", &state.model_id);
        if state.data.starts_with('{') {
            envelope.json("data", &compact(state.data));
        } else {
            envelope.json("data", state.data);
        }
        if owner.redacted {
            envelope.json("redacted", "true");
        }
        if let Some(id) = owner.call_id {
            envelope.text("toolCallId", id);
        }
        write_span(envelope, owner);
    })
}

/// Return the envelope of a part without state, which says where the part begins and ends.
pub fn empty_envelope(owner: &Owner<'_>) -> String {
    sealed(|envelope| write_span(envelope, owner))
}

fn write_span(envelope: &mut ObjectWriter<'_>, owner: &Owner<'_>) {
    if let Some((kind, start, end)) = owner.span {
        let name = if kind == TextKind::Thinking { "thinking" } else { "text" };
        envelope.json(name, &format!("[{start},{end}]"));
    }
}

fn sealed(write: impl FnOnce(&mut ObjectWriter<'_>)) -> String {
    let json = object(|envelope| {
        envelope.number("deltafold", 1);
        write(envelope);
    });
    let mut out = String::with_capacity(json.len() * 4 / 3 + 4);
    base64::encode_into(json.as_bytes(), &mut out);
    out
}
