//! The answers of one response, by number.

use std::collections::BTreeMap;

use super::tree::{Node, Rule};

/// States of the answers so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answers<T> {
    states: BTreeMap<u64, T>,
    several: bool,
}

/// One answer, whose number is 0.
impl<T> Default for Answers<T> {
    fn default() -> Self {
        Self { states: BTreeMap::new(), several: false }
    }
}

impl<T: Default> Answers<T> {
    /// Build the states of a response with any number of answers.
    pub(super) fn several() -> Self {
        Self { states: BTreeMap::new(), several: true }
    }

    /// Return the state of the answer that a choice or a candidate belongs to by its `index`.
    pub(super) fn of(&mut self, node: &Node<'_>) -> Rule<&mut T> {
        if !self.several {
            node.counts("index", 0)?;
        }
        Ok(self.states.entry(node.count("index")?).or_default())
    }

    /// Return true if there is an answer, and all of them are so.
    pub(super) fn all(&self, test: impl Fn(&T) -> bool) -> bool {
        !self.states.is_empty() && self.states.values().all(test)
    }

    /// Return true if a response may have several answers.
    pub(super) fn are_several(&self) -> bool {
        self.several
    }
}
