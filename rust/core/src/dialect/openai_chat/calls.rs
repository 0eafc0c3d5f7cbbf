//! The calls of a message, and the call that a fragment belongs to.
//!
//! In: fragments of calls with an id, an index and a name, of which each may be absent or repeated.  Out: a known call, a
//! new one, or none.
//!
//! Laws:
//! - A known id decides, then the index.  A fragment without a name that matches neither belongs to the latest call.
//! - Calls may share an id.  Another name behind whole arguments begins another call.  At a new index, another name alone
//!   does, and so does the same name behind whole arguments.
//! - Each element of a whole message is a call of its own.

use std::collections::HashMap;

use super::read::{Arguments, FUNCTION, ToolCall};
use crate::emit::CallHandle;
use crate::sink::DeltaSink;

/// The calls of a message, in the order in which they were opened.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Calls {
    list: Vec<Call>,
    by_id: HashMap<String, usize>,
    by_index: HashMap<i64, usize>,
}

#[derive(Clone, Debug, PartialEq)]
struct Call {
    handle: CallHandle,
    id: Option<String>,
    /// The `index` under which the call was opened.
    index: Option<i64>,
}

/// The call that a fragment belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallPlace {
    /// The call at this position.
    Known(usize),
    /// A new call.
    New,
    /// No call: the fragment says nothing.
    Nowhere,
}

impl CallPlace {
    /// Return the place of an element of a whole message.
    pub(super) fn of_element(item: &ToolCall<'_>) -> Self {
        let says = item.name.is_some() || item.id.is_some() || says_arguments(item);
        if says { Self::New } else { Self::Nowhere }
    }
}

fn says_arguments(item: &ToolCall<'_>) -> bool {
    item.arguments.is_some_and(|arguments| match arguments {
        Arguments::Text(text) => !text.is_empty(),
        Arguments::Json(_) => true,
    })
}

impl Calls {
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Add a call that was opened for a fragment.
    pub(super) fn add(&mut self, handle: CallHandle, item: &ToolCall<'_>) {
        let at = self.list.len();
        self.list.push(Call { handle, id: None, index: item.index });
        if let Some(index) = item.index {
            self.by_index.insert(index, at);
        }
        self.named(at, item);
    }

    /// Return the handle of a call, which gets the id of a fragment if it has none.
    pub(super) fn named(&mut self, at: usize, item: &ToolCall<'_>) -> Option<CallHandle> {
        let call = self.list.get_mut(at)?;
        if let (None, Some(id)) = (&call.id, item.id) {
            let id = id.text();
            self.by_id.insert(id.clone(), at);
            call.id = Some(id);
        }
        Some(call.handle)
    }

    /// Return the call that a fragment belongs to.
    pub(super) fn find(&self, item: &ToolCall<'_>, sink: &DeltaSink<'_>) -> CallPlace {
        // Nearly every fragment has the index of the latest call, and more of its arguments.
        if let (None, None, Some(_), Some(call)) =
            (item.id, item.name, item.index, self.list.last())
            && call.index == item.index
        {
            return CallPlace::Known(self.list.len() - 1);
        }
        if item.index == Some(FUNCTION) && self.list.iter().any(|call| call.index != item.index) {
            return CallPlace::Nowhere;
        }
        let id = item.id.map(|id| id.text());
        let says_arguments = says_arguments(item);
        let bound = item.index.and_then(|index| match self.list.last() {
            Some(call) if call.index == Some(index) => Some(self.list.len() - 1),
            _ => self.by_index.get(&index).copied(),
        });
        if let Some(at) = id.as_ref().and_then(|id| self.by_id.get(id)).copied() {
            // Some servers use the function name as the id, so that several calls share one id.
            let shares = |at: &usize| self.list.get(*at).is_some_and(|call| call.id == id);
            let at = bound.filter(shares).unwrap_or(at);
            let is_elsewhere = item.index.is_some() && bound.is_none();
            if !self.begins_another(at, item, is_elsewhere, sink) {
                return CallPlace::Known(at);
            }
        }
        if let Some((at, call)) = bound.and_then(|at| Some((at, self.list.get(at)?))) {
            let another_id = id.is_some() && call.id.is_some() && item.name.is_some();
            // Some servers number all parallel calls 0 and give no ids: a name after whole arguments begins another call.
            let whole_before = item.name.is_some_and(|name| {
                sink.is_whole_before(call.handle, item.name)
                    && (says_arguments || sink.has_other_name(call.handle, name))
            });
            if !another_id && !whole_before {
                return CallPlace::Known(at);
            }
        } else if item.name.is_none() && says_arguments && !self.list.is_empty() {
            return CallPlace::Known(self.list.len() - 1);
        } else if item.name.is_none() && id.is_none() && !says_arguments {
            return CallPlace::Nowhere;
        }
        CallPlace::New
    }

    /// Return whether a fragment with the id of a call begins another call, which shares the id.
    ///
    /// A fragment at a new index, with `is_elsewhere`, does so with another name, or behind whole arguments.  At a known
    /// index or without one, another name behind whole arguments does: servers repeat ids, names and whole arguments.
    fn begins_another(
        &self,
        at: usize,
        item: &ToolCall<'_>,
        is_elsewhere: bool,
        sink: &DeltaSink<'_>,
    ) -> bool {
        let (Some(name), Some(call)) = (item.name, self.list.get(at)) else { return false };
        let is_renamed = sink.has_other_name(call.handle, name);
        let is_whole = sink.has_whole_args(call.handle);
        if is_elsewhere { is_renamed || is_whole } else { is_renamed && is_whole }
    }
}
