//! Any bytes decode lawfully and the same in any chunking, with templates and without.

#![allow(
    clippy::allow_attributes,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "an oracle fails loudly, and where it stands"
)]

use std::sync::{Arc, LazyLock};

use deltafold::contract::{Delta, Laws, Output};
use deltafold::decoder::{Decoder, Options};
use deltafold::dialect::Shapes;

use super::super::{Each, Owned, decode_with, options};
use super::pieces;

/// Decodes the pieces and checks every delta by the laws; bytes after the end change nothing.
pub fn decode_lawfully<'a>(
    decoder: Decoder,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<Owned>, Decoder) {
    decode_by(Decoder::feed, decoder, pieces)
}

fn decode_by<'a>(
    feed: fn(&mut Decoder, &[u8], &mut dyn Output),
    mut decoder: Decoder,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<Owned>, Decoder) {
    let mut deltas: Vec<Owned> = Vec::new();
    let mut laws = Laws::of_decoder();
    let mut take = |delta: &Delta<&str>| {
        if let Err(violation) = laws.check(delta) {
            panic!("{violation}");
        }
        deltas.push(delta.to_owned());
    };
    let mut out = Each(&mut take);
    for piece in pieces {
        feed(&mut decoder, piece, &mut out);
    }
    decoder.close(&mut out);
    decoder.feed(b"data: {}\n\n", &mut out);
    decoder.close(&mut out);
    assert!(laws.ended() && decoder.finished());
    assert_eq!(decoder.last_seq(), deltas.len() as u64, "seq is dense");
    (deltas, decoder)
}

/// The deltas and the decoder after them are the same in one feed, in these pieces and byte by byte.  The deltas of a body that
/// is known to be whole are the same, too.
pub fn chunkings_agree(dialect: &str, body: &[u8], cuts: &[usize]) {
    let fresh = || {
        let mut options = options(dialect);
        options.stream.logprobs = true;
        Decoder::new(options).unwrap()
    };
    let (whole, state) = decode_lawfully(fresh(), [body]);
    let (deltas, _) = decode_by(Decoder::feed_whole, fresh(), [body]);
    assert_eq!(deltas, whole, "of a body that is known to be whole");
    for pieces in [pieces(body, cuts), body.chunks(1).collect()] {
        let (deltas, after) = decode_lawfully(fresh(), pieces);
        assert_eq!(deltas, whole);
        assert!(after == state, "the decoder after the end of {:?}", String::from_utf8_lossy(body));
    }
}

/// A decoder that keeps the frames' JSON (`provider_raw`) reads every frame, so that it is the oracle.
fn deltas(options: Options, body: &[u8]) -> Vec<Owned> {
    let mut deltas = decode_with(Decoder::new(options).expect("a dialect"), [body]);
    for delta in &mut deltas {
        delta.provider_raw = None;
    }
    deltas
}

/// Shapes of all bodies that this process has checked.
static SHAPES: LazyLock<Arc<Shapes>> = LazyLock::new(Arc::default);

/// Templates make the deltas that reading every frame makes, those of the stream and those that streams share.
///
/// The first stream of a new table shows its skeletons, the second one has them kept, the third one uses them.
pub fn templates_agree(name: &str, dialect: &str, body: &[u8]) {
    for logprobs in [false, true] {
        let mut options = options(dialect);
        options.stream.logprobs = logprobs;
        let mut raw = options.clone();
        raw.stream.provider_raw = true;
        let reads = deltas(raw, body);
        let new: Arc<Shapes> = Arc::default();
        let tables = [None, Some(&new), Some(&new), Some(&new), Some(&*SHAPES)];
        for (round, shapes) in tables.into_iter().enumerate() {
            let options = Options { shapes: shapes.cloned(), ..options.clone() };
            let hits = deltas(options, body);
            assert!(
                hits == reads,
                "{name}: templates differ from read in round {round}\n{hits:#?}\n{reads:#?}"
            );
        }
    }
}
