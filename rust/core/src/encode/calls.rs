//! Calls that are not written at once.
//!
//! In: calls, and the choices of the caller.  Out: whether a call waits for the end, and whether it is written at all.

use super::draft::Draft;
use super::handover;
use super::parts::Call;
use super::settings::DeclinedCalls;
use super::writer::Writer;
use crate::contract::is_of_provider;

/// Arguments that wait for more, because they are whole even if the call was cut behind them.
pub(super) const NOTHING: &str = "{}";

/// Return true if calls wait for the end of the answer.
#[inline]
pub(super) fn holds_calls<W: Writer>(draft: &Draft) -> bool {
    W::CALLS_AT_END
        || (draft.settings.declined_calls == DeclinedCalls::Hold && W::DIALECT != handover::DIALECT)
}

/// Return true if a call that was not opened is not worth writing: it has no name, or was cut before the target can tell it.
pub(super) fn is_cut_call<W: Writer>(call: &Call) -> bool {
    is_untold(call) || (call.incomplete && W::WHOLE_CALLS)
}

/// Return true if no client is told of a call: it has no name, or was cut before its arguments, which a client would take for `{}`.
pub(super) fn is_untold(call: &Call) -> bool {
    let is_empty = call.args.is_empty() || call.args == NOTHING;
    call.name.is_empty() || (call.incomplete && is_empty)
}

/// Note a call that is not written.
pub(super) fn note_cut_call(draft: &mut Draft, call: &Call) {
    let why = if is_of_provider(&call.id) {
        "a call that its provider ran"
    } else if call.name.is_empty() {
        "a call without a name"
    } else {
        "a call that was cut off"
    };
    draft.notes.add("call", why);
}
