//! Laws of any input.  The tests check them on bounded inputs, the fuzz targets of rust/fuzz on generated inputs.

pub mod encoding;
pub mod framing;
pub mod partial_json;
pub mod reader;
pub mod streams;

/// The text in the pieces between these places, taken modulo its length.
pub fn pieces<'a>(text: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut % (text.len() + 1)).collect();
    places.sort_unstable();
    let mut found = Vec::with_capacity(places.len() + 1);
    let mut rest = text;
    let mut start = 0;
    for place in places {
        let (piece, tail) = rest.split_at(place - start);
        found.push(piece);
        rest = tail;
        start = place;
    }
    found.push(rest);
    found
}
