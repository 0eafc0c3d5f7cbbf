//! Frames of `application/vnd.amazon.eventstream` around test payloads.

use deltafold::framing::aws_event_stream::{write_frame, write_header};

/// A header that holds a string.
pub fn header(name: &str, value: &str) -> Vec<u8> {
    headers(&[(name, value)])
}

/// Headers that hold strings.
pub fn headers(pairs: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in pairs {
        write_header(&mut block, name, value).unwrap();
    }
    block
}

/// A frame around a header block and a payload.
pub fn frame(headers: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    write_frame(&mut out, headers, payload).unwrap();
    out
}

/// An event, its headers as Bedrock orders them.
pub fn event(name: &str, json: &str) -> Vec<u8> {
    let pairs =
        [(":event-type", name), (":content-type", "application/json"), (":message-type", "event")];
    frame(&headers(&pairs), json.as_bytes())
}

/// An exception.
pub fn exception(name: &str, json: &str) -> Vec<u8> {
    let pairs = [(":exception-type", name), (":message-type", "exception")];
    frame(&headers(&pairs), json.as_bytes())
}

/// Base64.
pub fn base64(bytes: &[u8]) -> String {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for group in bytes.chunks(3) {
        let word = group.iter().fold(0_u32, |word, byte| word << 8 | u32::from(*byte));
        let word = word << (8 * (3 - group.len()));
        for at in 0..4 {
            let place = (word >> (18 - 6 * at)) & 63;
            out.push(if at <= group.len() { char::from(alphabet[place as usize]) } else { '=' });
        }
    }
    out
}

/// A chunk of `InvokeModelWithResponseStream` around an event of a model.
pub fn chunk(json: &str) -> Vec<u8> {
    event("chunk", &format!("{{\"bytes\":\"{}\",\"p\":\"abcd\"}}", base64(json.as_bytes())))
}
