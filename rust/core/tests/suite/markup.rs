//! Markup in plain text: every grammar's table, in every split.
//!
//! The tables are `markup/<name>.txt`, in the form that `support/markup.rs` reads.

use crate::tables::{Case, cases, decode, parts};
use deltafold::markup::FAMILIES;

/// Whole, in every two pieces, and character by character.
fn check(case: &Case) {
    let whole = parts(&decode(&case.wanted, [case.text.as_str()], &case.finish));
    assert_eq!(whole, case.parts, "{}", case.name);
    for (cut, _) in case.text.char_indices() {
        let (left, right) = case.text.split_at(cut);
        let halves = parts(&decode(&case.wanted, [left, right], &case.finish));
        assert_eq!(halves, whole, "{}: cut before {right:?}", case.name);
    }
    let characters: Vec<String> = case.text.chars().map(String::from).collect();
    let single = parts(&decode(&case.wanted, characters.iter().map(String::as_str), &case.finish));
    assert_eq!(single, whole, "{}: character by character", case.name);
}

#[test]
fn every_family_has_its_table() {
    for family in FAMILIES {
        let least = if family.name == "olmo" { 5 } else { 15 };
        assert!(cases(family.name).len() >= least, "{}", family.name);
    }
}

#[test]
fn every_case_says_the_same_in_every_split() {
    for family in FAMILIES {
        for case in cases(family.name) {
            check(&case);
        }
    }
}
