//! Writes the seeds of every target from the project's fixtures: `seeds FOLDER`.

use std::path::Path;
use std::{env, fs, io};

use deltafold_fuzz::{fixtures, seed};

fn write(folder: &Path, target: &str, name: &str, seed: &[u8]) -> io::Result<()> {
    let folder = folder.join(target);
    fs::create_dir_all(&folder)?;
    fs::write(folder.join(name.replace('/', "-")), seed)
}

fn main() -> io::Result<()> {
    let corpus = env::args().nth(1).ok_or_else(|| io::Error::other("usage: seeds FOLDER"))?;
    let corpus = Path::new(&corpus);
    for fixture in fixtures() {
        let message = fs::read(fixture.folder.join("message.json"))?;
        write(corpus, "reader", &fixture.name, &message)?;
        for (target, body) in [
            ("decode", &fixture.wire),
            ("template", &fixture.wire),
            ("framing", &fixture.wire),
            ("partial_json", &message),
            ("encode", &fixture.wire),
        ] {
            if let Some(seed) = seed(&fixture.dialect, body) {
                write(corpus, target, &fixture.name, &seed)?;
            }
        }
    }
    Ok(())
}
