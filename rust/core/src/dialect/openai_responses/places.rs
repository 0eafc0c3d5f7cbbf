//! The items of a stream, and the item that an event belongs to.
//!
//! In: the names that an event gives to an item: `output_index`, ids, or none.  Out: the number of the item.
//!
//! Laws:
//! - `output_index` decides, then an id.  Each of them may be absent, may change from event to event, or may be the same
//!   for several items.  A name that two items share decides only if no other name does.
//! - An item takes only content of its kind.  Content that no named item takes belongs to the latest open item of its kind.
//! - Text after the end of its item opens a new one.  Arguments do not, because they lack the name of a tool.

use std::collections::HashMap;

use super::items::{Item, ItemKind, ItemMembers};
use super::read::{Content, ItemPosition};
use crate::emit::PartHandle;
use crate::json::Str;
use crate::sink::DeltaSink;

/// Number of items that a search without a name examines.  A bound keeps the work linear in the stream.
const NEAR: usize = 64;

/// The items of a stream, in the order in which they were opened.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Places {
    entries: Vec<Entry>,
    by_index: HashMap<i64, Named>,
    by_id: HashMap<String, Named>,
    recent: Recent,
    /// No item before this one is open.
    first_open: usize,
}

/// The item that a name belongs to.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Named {
    at: usize,
    /// Several items have the name; `at` is the latest of them.
    shared: bool,
}

/// The latest event: its item and its names.
#[derive(Clone, Debug, Default, PartialEq)]
struct Recent {
    at: Option<usize>,
    output_index: Option<i64>,
    /// The index alone decides.
    index_decides: bool,
    /// Empty if the event has no id, or if its index decides.
    id: String,
}

#[derive(Clone, Debug, PartialEq)]
struct Entry {
    item: Item,
    kind: ItemKind,
    /// An `added` or `done` event named the item.
    announced: bool,
    /// The item received content.
    touched: bool,
    output_index: Option<i64>,
    id: Option<String>,
    call_id: Option<String>,
}

impl Entry {
    fn is_open(&self) -> bool {
        !matches!(self.item, Item::Hollow(_) | Item::Done(_))
    }

    fn takes(&self, content: Content) -> bool {
        self.kind.takes(content) && self.is_open()
    }
}

/// The names that an event about a whole item gives to it.
struct Names<'a> {
    index: Option<i64>,
    id: Option<String>,
    call_id: Option<String>,
    members: &'a ItemMembers<'a>,
}

/// Return whether both names are present and differ.
fn differ<T: PartialEq>(known: Option<&T>, given: Option<&T>) -> bool {
    known.zip(given).is_some_and(|(known, given)| known != given)
}

impl Names<'_> {
    /// Return whether the call ids differ.  One server changes the call id at the end of an item, and keeps its id.
    fn are_of_another_call(&self, entry: &Entry) -> bool {
        let same_id = self.id.is_some() && entry.id == self.id && entry.is_open();
        !same_id && differ(entry.call_id.as_ref(), self.call_id.as_ref())
    }

    fn have_another_id(&self, entry: &Entry) -> bool {
        differ(entry.id.as_ref(), self.id.as_ref())
    }

    fn have_another_index(&self, entry: &Entry) -> bool {
        differ(entry.output_index.as_ref(), self.index.as_ref())
    }

    fn fit(&self, entry: &Entry) -> bool {
        self.members.fits(entry.kind) && !self.are_of_another_call(entry)
    }
}

impl Recent {
    #[inline]
    fn is_named(&self, position: ItemPosition<'_>) -> bool {
        self.output_index == position.output_index
            && (self.index_decides
                || match position.item_id {
                    Some(id) => id.is(&self.id),
                    None => self.id.is_empty(),
                })
    }
}

impl Places {
    /// Return the kinds of the items, each once.
    pub(super) fn kinds(&self) -> Vec<ItemKind> {
        let mut kinds = Vec::new();
        for entry in &self.entries {
            if !kinds.contains(&entry.kind) {
                kinds.push(entry.kind);
            }
        }
        kinds
    }

    /// Iterate over the items, in the order in which they were opened.
    pub(super) fn items(&mut self) -> impl Iterator<Item = &mut Item> {
        self.entries.iter_mut().map(|entry| &mut entry.item)
    }

    /// Return an item.
    #[inline]
    pub(super) fn get(&mut self, at: usize) -> Option<&mut Item> {
        self.entries.get_mut(at).map(|entry| &mut entry.item)
    }

    /// Return the item of the latest event.
    pub(super) fn recent(&self) -> Option<&Item> {
        self.recent.at.and_then(|at| self.entries.get(at)).map(|entry| &entry.item)
    }

    /// Return the item that a content belongs to.  It becomes the item of the latest event.  `None` means a new item.
    #[inline]
    pub(super) fn of_content(
        &mut self,
        content: Content,
        position: ItemPosition<'_>,
        whole: bool,
    ) -> Option<usize> {
        if let Some(at) = self.recent.at
            && self.recent.is_named(position)
            && let Some(entry) = self.entries.get_mut(at)
            && entry.takes(content)
        {
            entry.touched = true;
            return Some(at);
        }
        let at = self.search(content, position, whole)?;
        self.follow(at, position);
        if let Some(entry) = self.entries.get_mut(at) {
            entry.touched = true;
        }
        Some(at)
    }

    /// Make an item that of the latest event.
    fn follow(&mut self, at: usize, position: ItemPosition<'_>) {
        let index = position.output_index.and_then(|index| self.by_index.get(&index));
        self.recent = Recent {
            at: Some(at),
            output_index: position.output_index,
            index_decides: index == Some(&Named { at, shared: false }),
            id: String::new(),
        };
        if let (Some(id), false) = (position.item_id, self.recent.index_decides) {
            self.recent.id = id.text();
        }
    }

    /// Return the latest item that fits.
    fn latest(&self, fits: impl Fn(&Entry) -> bool) -> Option<usize> {
        let near = self.entries.iter().enumerate().rev().take(NEAR);
        near.into_iter().find_map(|(at, entry)| fits(entry).then_some(at))
    }

    #[cold]
    fn search(
        &mut self,
        content: Content,
        position: ItemPosition<'_>,
        whole: bool,
    ) -> Option<usize> {
        let index = position.output_index.and_then(|index| self.by_index.get(&index)).copied();
        // A new index belongs to a new item, unless the id names an announced one.
        let is_new = position.output_index.is_some() && index.is_none();
        let id = position.item_id.and_then(|id| self.by_id.get(&id.text())).copied();
        let id = id.filter(|known| {
            !is_new || self.entries.get(known.at).is_some_and(|entry| entry.announced)
        });
        let own = |named: Option<Named>| named.filter(|named| !named.shared);
        let named = [own(index), own(id), id, index];
        let find = |fits: &dyn Fn(&Entry) -> bool| {
            let mut places = named.iter().flatten().map(|named| named.at);
            places.find(|at| self.entries.get(*at).is_some_and(fits))
        };
        // The whole of a content repeats it.  Arguments belong to a call that has a name.
        let repeats = whole || !content.opens_item();
        let ended = |entry: &Entry| repeats && entry.kind.takes(content);
        let found = find(&|entry| entry.takes(content)).or_else(|| find(&ended));
        if found.is_some() {
            return found;
        }
        if is_new {
            // The events of an item may count it differently from its `added` event.
            let at =
                self.latest(|entry| entry.takes(content) && entry.announced && !entry.touched)?;
            self.name_index(position.output_index, at);
            return Some(at);
        }
        let recent = self
            .recent
            .at
            .filter(|at| self.entries.get(*at).is_some_and(|entry| entry.takes(content)));
        let open = recent.or_else(|| self.latest(|entry| entry.takes(content)));
        if position.output_index.is_none() && position.item_id.is_some() && id.is_none() {
            // Without positions, the ids of an announced item may differ from event to event.
            return open.filter(|at| self.entries.get(*at).is_some_and(|entry| entry.announced));
        }
        open.or_else(|| self.latest(ended))
    }

    /// Return the item that an event about a whole item names.  `ends` is true if the event completes the item.
    pub(super) fn of_item(
        &mut self,
        position: ItemPosition<'_>,
        members: &ItemMembers<'_>,
        ends: bool,
    ) -> Option<usize> {
        let names = Names {
            index: position.output_index,
            id: position.item_id.map(|id| id.text()),
            call_id: members.call_id().map(|id| id.text()),
            members,
        };
        self.by_position(&names, ends)
            .or_else(|| self.by_ids(&names))
            .or_else(|| self.by_order(&names, ends))
    }

    fn by_position(&self, names: &Names<'_>, ends: bool) -> Option<usize> {
        let known = *self.by_index.get(&names.index?)?;
        let entry = self.entries.get(known.at)?;
        // The ids of one item may differ from event to event.
        let rotates = entry.is_open() && (ends || !entry.announced) && !known.shared;
        (names.fit(entry) && (rotates || !names.have_another_id(entry))).then_some(known.at)
    }

    fn by_ids(&self, names: &Names<'_>) -> Option<usize> {
        let known = |id: &Option<String>| {
            let own = self.by_id.get(id.as_ref()?).filter(|known| !known.shared)?;
            Some((own.at, self.entries.get(own.at).filter(|entry| names.fit(entry))?))
        };
        // A name that comes again with other names belongs to another item.
        let by_id = known(&names.id)
            .filter(|(_, entry)| entry.is_open() || !names.have_another_index(entry));
        let by_call_id = known(&names.call_id).filter(|(_, entry)| {
            let may_be_another = names.have_another_id(entry) || !entry.is_open();
            !(may_be_another && names.have_another_index(entry))
        });
        by_id.or(by_call_id).map(|(at, _)| at)
    }

    /// Return the first open item that may have the names.  Without common names, items end in the order of their opening.
    fn by_order(&mut self, names: &Names<'_>, ends: bool) -> Option<usize> {
        while self.entries.get(self.first_open).is_some_and(|entry| !entry.is_open()) {
            self.first_open += 1;
        }
        let index = names.index.and_then(|index| self.by_index.get(&index));
        let is_positioned = index.map_or(names.index.is_some(), |known| !known.shared);
        let near = self.entries.iter().enumerate().skip(self.first_open).take(NEAR);
        near.into_iter().find_map(|(at, entry)| {
            // Without positions, the ids of an item may differ from event to event.
            let other_id =
                (is_positioned || entry.kind == ItemKind::Call) && names.have_another_id(entry);
            let fits = entry.is_open()
                && (ends || !entry.announced)
                && names.fit(entry)
                && !other_id
                && !names.have_another_index(entry);
            fits.then_some(at)
        })
    }

    /// Return the item that has an id of an item of the final object, unless it is done and lacks nothing.
    pub(super) fn lacking_by_id(&self, members: &ItemMembers<'_>) -> Option<usize> {
        [members.call_id(), members.id].into_iter().flatten().find_map(|id| {
            let named = self.by_id.get(&id.text()).filter(|named| !named.shared)?;
            let entry = self.entries.get(named.at)?;
            (!matches!(entry.item, Item::Done(_)) && members.fits(entry.kind)).then_some(named.at)
        })
    }

    /// Return the first part of the message that had an id before.
    pub(super) fn part_by_id(&self, id: Option<Str<'_>>) -> Option<PartHandle> {
        match self.entries.get(self.by_id.get(&id?.text())?.at)?.item {
            Item::Done(first_part) => first_part,
            _ => None,
        }
    }

    fn name_index(&mut self, index: Option<i64>, at: usize) {
        if let Some(index) = index {
            let named = self.by_index.entry(index).or_insert(Named { at, shared: false });
            *named = Named { at, shared: named.shared || named.at != at };
        }
    }

    fn name_id(&mut self, id: Option<&String>, at: usize) {
        if let Some(id) = id {
            let named = self.by_id.entry(id.clone()).or_insert(Named { at, shared: false });
            *named = Named { at, shared: named.shared || named.at != at };
        }
    }

    /// Add an item, unless a limit is reached.  Without `members`, the item is opened by its first content.
    pub(super) fn insert(
        &mut self,
        position: ItemPosition<'_>,
        members: Option<&ItemMembers<'_>>,
        item: Item,
        sink: &mut DeltaSink<'_>,
    ) -> Option<usize> {
        let call_id = members.and_then(ItemMembers::call_id);
        if !Item::count([position.item_id, call_id], sink) {
            return None;
        }
        let at = self.entries.len();
        let id = position.item_id.map(|id| id.text());
        let call_id = call_id.map(|id| id.text());
        self.name_index(position.output_index, at);
        self.name_id(id.as_ref(), at);
        self.name_id(call_id.as_ref(), at);
        self.entries.push(Entry {
            kind: item.kind(),
            item,
            announced: members.is_some(),
            touched: members.is_none(),
            output_index: position.output_index,
            id,
            call_id,
        });
        self.follow(at, position);
        Some(at)
    }

    /// Note that an event about a whole item named a known item.
    pub(super) fn announce(
        &mut self,
        at: usize,
        position: ItemPosition<'_>,
        members: &ItemMembers<'_>,
        sink: &mut DeltaSink<'_>,
    ) {
        self.follow(at, position);
        let Some(entry) = self.entries.get_mut(at) else { return };
        entry.announced = true;
        if let (None, Some(id)) = (&entry.call_id, members.call_id())
            && Item::count([None, Some(id)], sink)
        {
            let id = id.text();
            entry.call_id = Some(id.clone());
            self.name_id(Some(&id), at);
        }
    }
}
