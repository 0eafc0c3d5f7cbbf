//! Every fixture decodes to the deltas in its folder.

use crate::support::{Fixture, decode, wire};
use serde_json::Value;

fn expected(fixture: &Fixture) -> Vec<Value> {
    let path = fixture.folder.join("deltas.jsonl");
    let text = std::fs::read_to_string(&path).expect("deltas.jsonl");
    text.split_terminator('\n').map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn every_fixture_decodes_to_its_deltas() {
    for fixture in crate::support::fixtures() {
        let found: Vec<_> = decode(&fixture.dialect, &fixture.wire).iter().map(wire).collect();
        let wanted = expected(&fixture);
        for (position, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
            assert_eq!(found, wanted, "{} delta {position}", fixture.name);
        }
        assert_eq!(found.len(), wanted.len(), "{}: number of deltas", fixture.name);
    }
}

#[test]
fn every_fixture_says_where_it_comes_from() {
    for fixture in crate::support::fixtures() {
        let source = std::fs::read_to_string(fixture.folder.join("SOURCE.md"));
        let source = source.unwrap_or_default();
        assert!(source.contains("hecked against "), "{} has no SOURCE.md", fixture.name);
    }
}
