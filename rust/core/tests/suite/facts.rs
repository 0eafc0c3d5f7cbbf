//! The two-way tables of facts are total in both directions.

use std::collections::HashSet;

use deltafold::contract::{ErrorCode, FinishReason};
use deltafold::dialect::{Dialect, REGISTRY, VOCABULARY};
use deltafold::facts::{Ending, Facts, Row, UsageMember};

/// Checks that each member has one row, that no word is in two rows, and that a stand-in is a word of another row.
fn check_rows<T: Copy + PartialEq + std::fmt::Debug>(name: &str, all: &[T], rows: &[Row<T>]) {
    assert_eq!(rows.len(), all.len(), "{name}");
    let mut seen = HashSet::new();
    for member in all {
        let of_member: Vec<_> = rows.iter().filter(|row| row.member == *member).collect();
        let [row] = of_member[..] else { panic!("{name} {member:?}: {} rows", of_member.len()) };
        for word in row.words {
            assert!(seen.insert(word.to_ascii_lowercase()), "{name}: {word} stands in two rows");
        }
    }
}

fn check_finish_reasons(name: &str, facts: &Facts) {
    let table = &facts.finish_reasons;
    check_rows(name, FinishReason::ALL, table.rows);
    for row in table.rows {
        for word in row.words {
            assert_eq!(table.ending(word), Some(Ending::Finish(row.member)), "{name} {word}");
        }
        let written = table.word(row.member, false);
        let beside_calls = table.word(row.member, true);
        assert_eq!(beside_calls, row.beside_calls.or(written), "{name} {:?}", row.member);
        assert_eq!(written, row.stand_in.or(row.words.first().copied()), "{name} {:?}", row.member);
        // The value of `stand_in` is a word of the protocol that reads as another reason.
        if let Some(word) = row.stand_in {
            let other = table.rows.iter().find(|other| other.words.contains(&word));
            assert!(other.is_some_and(|other| other.member != row.member), "{name} {word}");
        }
    }
    for (word, code) in table.failures {
        assert_eq!(table.ending(word), Some(Ending::Failure(*code)), "{name} {word}");
    }
    assert_eq!(table.ending("a word of tomorrow"), None, "{name}");
}

/// A record with `number` at a path, as the protocol writes it.
fn record(path: &str, number: u64) -> String {
    if let Some(list) = path.strip_suffix("[AUDIO]") {
        return format!(
            "{{\"{list}\":[{{\"modality\":\"TEXT\",\"tokenCount\":1}},{{\"modality\":\"AUDIO\",\"tokenCount\":{number}}}]}}"
        );
    }
    match path.split_once('.') {
        Some((outer, inner)) => format!("{{\"{outer}\":{{\"{inner}\":{number}}}}}"),
        None => format!("{{\"{path}\":{number}}}"),
    }
}

fn check_usage(name: &str, facts: &Facts) {
    let table = &facts.usage;
    let members: Vec<UsageMember> = table.rows.list.iter().map(|row| row.member).collect();
    assert_eq!(members, UsageMember::ALL, "{name}");
    let mut seen = HashSet::new();
    for row in table.rows.list {
        assert_eq!(table.path(row.member), row.paths.first().copied(), "{name}");
        for path in row.paths {
            assert!(seen.insert(*path), "{name}: {path} stands in two rows");
            assert_eq!(table.member(path), Some(row.member), "{name} {path}");
            let numbers = table.read(&record(path, 17)).unwrap();
            match row.member {
                UsageMember::Cost => assert_eq!(numbers.cost(), Some(17.0), "{name} {path}"),
                UsageMember::CostTicks => assert_eq!(numbers.cost(), Some(1.7e-9), "{name} {path}"),
                member => assert_eq!(numbers.get(member), Some(17), "{name} {path}"),
            }
            for other in UsageMember::ALL.into_iter().filter(|other| *other != row.member) {
                assert_eq!(numbers.get(other), None, "{name} {path} {other:?}");
            }
        }
        // The first path wins, whatever the order of the members.
        if let [first, .., last] = row.paths
            && !first.contains(['.', '['])
            && !last.contains(['.', '['])
            && row.member != UsageMember::Cost
        {
            for json in [
                format!("{{\"{first}\":1,\"{last}\":2}}"),
                format!("{{\"{last}\":2,\"{first}\":1}}"),
                format!("{{\"{last}\":1,\"{first}\":null}}"),
            ] {
                assert_eq!(table.read(&json).unwrap().get(row.member), Some(1), "{name} {json}");
            }
        }
    }
    assert_eq!(table.read("{\"tomorrow\":1}").unwrap(), table.read("{}").unwrap(), "{name}");
}

fn check_errors(name: &str, facts: &Facts) {
    let table = &facts.errors;
    let rows: Vec<Row<ErrorCode>> = table.rows.iter().map(|(row, _)| *row).collect();
    check_rows(name, ErrorCode::ALL, &rows);
    for (row, status) in table.rows {
        assert!((400..600).contains(status), "{name} {:?}", row.member);
        assert_eq!(table.word(row.member), (row.word(), *status), "{name} {:?}", row.member);
        for word in row.words {
            assert_eq!(table.code(word), Some(row.member), "{name} {word}");
            // The classifier knows the words of every protocol, and no two protocols disagree.
            assert_eq!(VOCABULARY.code(word), Some(row.member), "{name} {word}");
        }
        if let Some(word) = row.stand_in {
            assert_ne!(table.code(word), Some(row.member), "{name} {word}");
        }
    }
    assert_eq!(table.code("a word of tomorrow"), None, "{name}");
}

#[test]
fn finish_reasons_are_total_in_both_directions() {
    for Dialect { name, facts, .. } in REGISTRY {
        check_finish_reasons(name, facts);
    }
}

#[test]
fn usage_members_are_total_in_both_directions() {
    for Dialect { name, facts, .. } in REGISTRY {
        check_usage(name, facts);
    }
}

#[test]
fn error_codes_are_total_in_both_directions() {
    for Dialect { name, facts, .. } in REGISTRY {
        check_errors(name, facts);
    }
}
