//! `OpenBlocks`: the content blocks of a message that have begun and not ended, by their index.
//!
//! In: the starts and stops of blocks.  Out: the block that a delta belongs to.
//!
//! Law: the newest block is found without a search, because a message rarely has two open blocks.

use std::collections::BTreeMap;

/// Open blocks by index.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct OpenBlocks<B> {
    newest: Option<(i64, B)>,
    /// Boxed, because a node of the map allocates room for eleven values.
    others: BTreeMap<i64, Box<B>>,
}

impl<B> Default for OpenBlocks<B> {
    fn default() -> Self {
        Self { newest: None, others: BTreeMap::new() }
    }
}

impl<B> OpenBlocks<B> {
    /// Add a block.  No open block has its index.
    pub(super) fn insert(&mut self, index: i64, block: B) {
        if let Some((index, block)) = self.newest.replace((index, block)) {
            self.others.insert(index, Box::new(block));
        }
    }

    /// Return the block with this index.
    #[inline]
    pub(super) fn get_mut(&mut self, index: i64) -> Option<&mut B> {
        match &mut self.newest {
            Some((newest, block)) if *newest == index => Some(block),
            _ => self.others.get_mut(&index).map(Box::as_mut),
        }
    }

    /// Remove and return the block with this index.
    pub(super) fn remove(&mut self, index: i64) -> Option<B> {
        match self.newest.take_if(|(newest, _)| *newest == index) {
            Some((_, block)) => Some(block),
            None => self.others.remove(&index).map(|block| *block),
        }
    }

    /// Return the lowest index of an open block.
    pub(super) fn first_index(&self) -> Option<i64> {
        let newest = self.newest.as_ref().map(|(index, _)| *index);
        let others = self.others.first_key_value().map(|(index, _)| *index);
        newest.into_iter().chain(others).min()
    }
}
