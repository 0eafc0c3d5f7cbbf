//! The registry: one row for each wire protocol, and one folder of the same name.

use std::collections::BTreeSet;
use std::path::Path;

use deltafold::decoder::Decoder;
use deltafold::dialect::{REGISTRY, find};

/// Names of the dialect folders, as users write them.
fn folders() -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/dialect");
    std::fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .map(|path| path.file_name().unwrap().to_string_lossy().replace('_', "-"))
        .collect()
}

/// Rows whose dialect is read by another dialect's folder.
const SHARED: &[&str] = &["mistral"];

#[test]
fn every_row_has_its_folder_and_every_folder_its_row() {
    let names: BTreeSet<String> = REGISTRY.iter().map(|row| row.name.to_owned()).collect();
    assert_eq!(names.len(), REGISTRY.len(), "names are unique");
    let shared = SHARED.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(names, folders().union(&shared).cloned().collect());
}

#[test]
fn a_name_finds_its_own_row_and_a_fresh_state() {
    for row in REGISTRY {
        let found = find(row.name).expect("a row");
        assert_eq!(found.name, row.name);
        assert_eq!((found.state)(), (row.state)());
        let decoder = crate::support::decoder(row.name);
        assert_eq!(decoder.options().stream.dialect, row.name);
        assert_eq!((decoder.last_seq(), decoder.finished()), (0, false));
    }
}

#[test]
fn an_unknown_name_finds_nothing() {
    for name in
        ["", "openai", "openai_chat", "OpenAI-Chat", "openai-chat ", "anthropic-messages+qwen-xml"]
    {
        assert!(find(name).is_none(), "{name:?}");
    }
    let mut options = crate::support::options("openai-chat");
    options.stream.dialect = "nonsense";
    assert!(Decoder::new(options).is_none());
}
