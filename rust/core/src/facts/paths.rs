//! `PathIndex`: an index of the paths of a usage table, built by the compiler.
//!
//! In: the rows of a table.  Out: for the name of a member, the paths that begin with it.
//!
//! Laws: the rows stay the only source; the index holds positions in them.  A lookup compares only names of the same length,
//! so that members without a path cost one test.

use super::members::{UsageMember, UsageRow};

/// Maximum number of paths of a table.
const MAX_PATHS: usize = 32;
/// Number of lengths that are distinguished.
const LENGTHS: usize = 64;

/// Position of a count at a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place<'a> {
    /// The value of the member.
    Whole,
    /// This member of an object.
    Inside(&'a str),
    /// The audio entries of a list.
    AudioList,
}

/// One path: its member, its position among the member's paths, and its text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    pub(super) member: UsageMember,
    pub(super) rank: u8,
    name: &'static str,
    place: Place<'static>,
}

/// The paths of a table by the length of their first name.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathIndex {
    paths: [Path; MAX_PATHS],
    /// One bit for each path whose first name has this length, modulo [`LENGTHS`].
    by_length: [u32; LENGTHS],
}

impl PathIndex {
    /// Index the paths of these rows.  Too many paths fail the build.
    #[expect(clippy::indexing_slicing, reason = "the compiler evaluates it, and checks the bounds")]
    pub(super) const fn new(rows: &[UsageRow]) -> Self {
        let nothing = Path { member: UsageMember::Input, rank: 0, name: "", place: Place::Whole };
        let mut index = Self { paths: [nothing; MAX_PATHS], by_length: [0; LENGTHS] };
        let (mut at, mut row) = (0, 0);
        while row < rows.len() {
            let UsageRow { member, paths } = rows[row];
            let mut rank = 0;
            while rank < paths.len() {
                let (name, place) = split(paths[rank]);
                #[expect(clippy::cast_possible_truncation, reason = "below MAX_PATHS")]
                let path = Path { member, rank: rank as u8, name, place };
                index.paths[at] = path;
                index.by_length[name.len() % LENGTHS] |= 1 << at;
                at += 1;
                rank += 1;
            }
            row += 1;
        }
        index
    }

    #[inline]
    fn of_length(&self, name: &str) -> u32 {
        self.by_length.get(name.len() % LENGTHS).copied().unwrap_or(0)
    }

    /// Return true if some path begins with a name of the length of this one.
    #[inline]
    pub(super) fn has_names_of_length(&self, name: &str) -> bool {
        self.of_length(name) != 0
    }

    /// Return the first path that begins with `name` and whose place `is` accepts.
    #[inline]
    pub(super) fn find(&self, name: &str, is: impl Fn(Place<'_>) -> bool) -> Option<&Path> {
        let mut left = self.of_length(name);
        while left != 0 {
            let path = self.paths.get(left.trailing_zeros() as usize)?;
            if path.name == name && is(path.place) {
                return Some(path);
            }
            left &= left - 1;
        }
        None
    }
}

/// Split a path into its first name and the rest.
const fn split(path: &'static str) -> (&'static str, Place<'static>) {
    let bytes = path.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let (name, rest) = path.split_at(at);
        match rest.as_bytes() {
            [b'[', ..] => return (name, Place::AudioList),
            [b'.', ..] => return (name, Place::Inside(rest.split_at(1).1)),
            _ => at += 1,
        }
    }
    (path, Place::Whole)
}
