//! Signs of a dialect in the first bytes of a body, as a table.

/// Signs of one dialect.  An entry that ends with `*` matches every text with this beginning.
///
/// Detection asks for the fields in their order, and stops at the first field that matches.
#[derive(Clone, Copy, Debug)]
pub struct Signs {
    /// Values of `event_type`.
    pub event_types: &'static [&'static str],
    /// Values of `type`, or names of server-sent events without this member.
    pub types: &'static [&'static str],
    /// Values of `object`.
    pub objects: &'static [&'static str],
    /// Groups of members; an object that has all members of a group belongs to this dialect.
    pub members: &'static [&'static [&'static str]],
    /// Groups of members that count if no other dialect matches, because their names are common.
    pub common_members: &'static [&'static [&'static str]],
    /// Event names of binary frames.
    pub frames: &'static [&'static str],
}

impl Signs {
    /// No signs: the start of a table that states only the signs that a dialect has.
    pub const NONE: Self = Self {
        event_types: &[],
        types: &[],
        objects: &[],
        members: &[],
        common_members: &[],
        frames: &[],
    };
}

/// Return whether a text is an entry of a list, or begins as an entry that ends with `*`.
pub fn matches(entries: &[&str], text: &str) -> bool {
    entries.iter().any(|entry| match entry.strip_suffix('*') {
        Some(beginning) => text.starts_with(beginning),
        None => *entry == text,
    })
}
