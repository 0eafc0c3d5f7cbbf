//! Facts of an answer that the target has members for.
//!
//! In: the details of the terminal, and the names that the target knows.  Out: these members, as the source wrote them.
//!
//! Law: the names decide.  A fact whose form differs between two targets is written where its form is that of the target.

use std::borrow::Cow;

use super::write_compact;
use crate::json::{ObjectWriter, members};

/// A fact: its name and its JSON.
pub type Fact<'a> = (Cow<'a, str>, &'a str);

/// Return the facts with these names.
pub fn facts_of<'a>(details: Option<&'a str>, names: &[&str]) -> Vec<Fact<'a>> {
    let mut facts = details.map(members).unwrap_or_default();
    facts.retain(|(name, _)| names.contains(&name.as_ref()));
    facts
}

/// Write facts as members of an object.
pub fn write_facts(object: &mut ObjectWriter<'_>, facts: &[Fact<'_>]) {
    for (name, json) in facts {
        let mut value = String::new();
        write_compact(&mut value, json);
        object.json_of(name, &value);
    }
}
