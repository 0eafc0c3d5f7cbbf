//! Parts that are not finished: what a target writes now, and what waits for its turn.

use std::collections::VecDeque;

use super::annotations;
use super::parts::{Call, TextPart, WholePart};
use crate::contract::Logprobs;
use crate::json::write_list;

/// Content of a part, and its waiting share.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Content {
    Text(WaitingText),
    Call(Call),
    Whole(WholePart),
}

/// A part of text, and its waiting share.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct WaitingText {
    pub(super) part: TextPart,
    pub(super) text: String,
    /// JSON arrays, one for each delta that had any.
    pub(super) annotations: Vec<Box<str>>,
    pub(super) logprobs: Option<Box<Logprobs>>,
}

impl WaitingText {
    /// Return the annotations as one JSON array; `None` without any.
    pub(super) fn joined_annotations(&self) -> Option<String> {
        let lists = self.annotations.iter().flat_map(|json| annotations::list(json));
        let mut out = String::new();
        write_list(&mut out, lists, String::push_str);
        (!self.annotations.is_empty()).then_some(out)
    }
}

/// A part that is not finished.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Slot {
    pub(super) content: Content,
    /// Its first event was written.
    pub(super) opened: bool,
    /// Its last delta came.
    pub(super) ended: bool,
}

/// Unfinished parts by number.
///
/// Laws: finding a part costs the same however many are unfinished.  Finished parts at the front are dropped.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Slots {
    /// Number of the first part of the list.
    first: usize,
    list: VecDeque<Option<Box<Slot>>>,
    /// Numbers of the parts that take turns, in order.
    turns: VecDeque<usize>,
}

impl Slots {
    /// Add the next part; with `takes_turns` it is written after all unfinished parts that take turns.
    pub(super) fn push(&mut self, index: usize, slot: Slot, takes_turns: bool) {
        if self.list.is_empty() {
            self.first = index;
        }
        // The laws of the contract number parts densely; missing numbers would belong to parts that were never added.
        while self.first + self.list.len() < index {
            self.list.push_back(None);
        }
        self.list.push_back(Some(Box::new(slot)));
        if takes_turns {
            self.turns.push_back(index);
        }
    }

    #[inline]
    pub(super) fn get(&mut self, index: usize) -> Option<&mut Slot> {
        self.list.get_mut(index.checked_sub(self.first)?)?.as_deref_mut()
    }

    /// Return the number of the part whose turn it is.
    #[inline]
    pub(super) fn turn(&self) -> Option<usize> {
        self.turns.front().copied()
    }

    /// Return the numbers of the parts that wait behind another one, and of those that they wait for: all that take turns but
    /// the last.
    pub(super) fn earlier_turns(&self) -> Vec<usize> {
        self.turns.iter().take(self.turns.len().saturating_sub(1)).copied().collect()
    }

    /// Remove a finished part.
    pub(super) fn remove(&mut self, index: usize) -> Option<Box<Slot>> {
        let at = index.checked_sub(self.first)?;
        let slot = self.list.get_mut(at)?.take();
        if self.turn() == Some(index) {
            self.turns.pop_front();
        }
        while let Some(None) = self.list.front() {
            self.list.pop_front();
            self.first += 1;
        }
        slot
    }

    /// Remove an unfinished part that takes its turn, or not.
    pub(super) fn drop(&mut self, index: usize) -> Option<Box<Slot>> {
        self.turns.retain(|turn| *turn != index);
        self.remove(index)
    }

    /// Return the numbers of all unfinished parts, in order.
    pub(super) fn numbers(&self) -> Vec<usize> {
        let held = |(at, slot): (usize, &Option<Box<Slot>>)| slot.as_ref().map(|_| self.first + at);
        self.list.iter().enumerate().filter_map(held).collect()
    }
}
