//! What the tests share: a decoder with fixed names, owned deltas, the folded message, the fixtures and the corpus.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::allow_attributes,
    reason = "each test crate uses its own part"
)]

use std::path::PathBuf;

use deltafold::assemble::{MessageAssembler, Part};
use deltafold::decoder::Decoder;
use deltafold::delta::Delta;
use deltafold::finisher::Options;
use deltafold::limits::Limits;
use deltafold::provider_error::Response;

/// A delta that owns its text.
pub type Owned = Delta<Box<str>>;

/// Options of a stream named "run".
pub fn options(dialect: &str) -> Options {
    Options {
        dialect: deltafold::dialect::find(dialect).expect("a dialect").name,
        run_id: "run".into(),
        model_id: None,
        request_id: None,
        response: Response { status: 200, ..Response::default() },
        choice: 0,
        provider_raw: false,
        logprobs: false,
        limits: Limits::default(),
    }
}

/// A decoder of a stream named "run".
pub fn decoder(dialect: &str) -> Decoder {
    Decoder::new(options(dialect)).expect("a dialect")
}

/// Feeds the pieces and closes.
pub fn decode_with<'a>(
    mut decoder: Decoder,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Vec<Owned> {
    let mut deltas = Vec::new();
    let mut out = |delta: &Delta<&str>| deltas.push(delta.to_owned());
    for piece in pieces {
        decoder.feed(piece, &mut out);
    }
    decoder.close(&mut out);
    assert!(decoder.finished(), "closing ends the stream");
    deltas
}

/// Decodes a whole body.
pub fn decode(dialect: &str, body: &[u8]) -> Vec<Owned> {
    decode_with(decoder(dialect), [body])
}

/// Folds deltas; each must be lawful.
pub fn fold(deltas: &[Owned]) -> MessageAssembler {
    let mut assembler = MessageAssembler::default();
    for delta in deltas {
        assembler.consume(&delta.as_deref()).expect("a lawful delta");
    }
    assembler
}

/// The thinking of a message, all parts joined.
pub fn thinking(message: &MessageAssembler) -> String {
    let texts = message.parts().iter().map(|part| match part {
        Part::Thinking(part) => part.text.as_str(),
        _ => "",
    });
    texts.collect()
}

/// The recorded streams, or `None` (said aloud) where they are not there.
pub fn corpus() -> Option<PathBuf> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpus");
    let path =
        std::env::var_os("DELTAFOLD_CORPUS").map_or_else(|| PathBuf::from(beside), PathBuf::from);
    if path.join("manifest.jsonl").is_file() {
        Some(path)
    } else {
        eprintln!("skipped: no recorded streams at {} (set DELTAFOLD_CORPUS)", path.display());
        None
    }
}

/// A line of a JSON lines file, by `id`.
pub fn json_lines(path: &std::path::Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(path).expect("a readable file");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// A recorded stream and what it must decode to.
pub struct Recording {
    pub id: String,
    pub dialect: String,
    pub body: Vec<u8>,
    pub expected: serde_json::Value,
}

/// The recorded streams that these dialects read.
pub fn recordings() -> Vec<Recording> {
    let Some(root) = corpus() else {
        return Vec::new();
    };
    let manifest = json_lines(&root.join("manifest.jsonl"));
    let expected = json_lines(&root.join("expected.jsonl"));
    let files: std::collections::HashMap<&str, &str> = manifest
        .iter()
        .map(|line| (line["id"].as_str().unwrap(), line["file"].as_str().unwrap()))
        .collect();
    expected
        .into_iter()
        .filter(|line| line["framing"] == "sse" && line["terminal"] != "unsupported")
        .filter(|line| {
            line["reader"].as_str().is_some_and(|r| deltafold::dialect::find(r).is_some())
        })
        .map(|line| {
            let id = line["id"].as_str().unwrap().to_owned();
            let body = std::fs::read(root.join(files[id.as_str()])).expect("a recording");
            Recording {
                dialect: line["reader"].as_str().unwrap().to_owned(),
                body,
                id,
                expected: line,
            }
        })
        .collect()
}

/// A fixture of the project: a folder `<dialect>/<case>` with `wire.sse`.
pub struct Fixture {
    pub name: String,
    pub dialect: String,
    pub wire: Vec<u8>,
    pub folder: PathBuf,
}

/// All fixtures, sorted by name.
pub fn fixtures() -> Vec<Fixture> {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures"));
    let mut found = Vec::new();
    for dialect in folders(&root) {
        for folder in folders(&dialect) {
            let name =
                |path: &std::path::Path| path.file_name().unwrap().to_string_lossy().into_owned();
            found.push(Fixture {
                name: format!("{}/{}", name(&dialect), name(&folder)),
                dialect: name(&dialect),
                wire: std::fs::read(folder.join("wire.sse")).expect("wire.sse"),
                folder,
            });
        }
    }
    assert!(!found.is_empty(), "no fixtures in {}", root.display());
    found
}

fn folders(path: &std::path::Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path).expect("a folder");
    let mut found: Vec<_> =
        entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    found.sort();
    found
}
