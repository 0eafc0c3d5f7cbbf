//! `Freeform`: the text of a custom tool inside of a function's arguments `{"input": "…"}`.
//!
//! In: argument text in any pieces.  Out: the unescaped text, as far as it is certain.
//!
//! Laws: an escape or a surrogate pair that is cut is held back.  Arguments of another form come out as they are.
//! Case: docs/protocols/encoding.md#freeform-tools.

use crate::json::{Carry, Str};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum At {
    /// Before the first character of the text.
    #[default]
    Before,
    /// Inside of the text.
    Inside,
    /// After the text.
    After,
    /// The arguments have another form.
    Plain,
}

/// Reader of one call's arguments.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Freeform {
    at: At,
    /// Undecided text: the beginning, or a cut escape.
    held: String,
    carry: Carry,
}

/// The beginning of the arguments, without white space.
const BEGINNING: [&str; 5] = ["{", "\"input\"", ":", "\"", ""];

/// Result of looking for the beginning.
enum Beginning {
    Found(usize),
    Cut,
    Other,
}

fn beginning(text: &str) -> Beginning {
    let mut rest = text;
    for token in BEGINNING {
        if token.is_empty() {
            return Beginning::Found(text.len() - rest.len());
        }
        rest = rest.trim_ascii_start();
        match rest.strip_prefix(token) {
            Some(after) => rest = after,
            None if token.starts_with(rest) => return Beginning::Cut,
            None => return Beginning::Other,
        }
    }
    Beginning::Other
}

impl Freeform {
    /// Read more arguments, and append the text that they hold.
    pub fn feed(&mut self, args: &str, out: &mut String) {
        match self.at {
            At::Plain => out.push_str(args),
            At::After => {}
            At::Inside => {
                if self.held.is_empty() {
                    self.inside(args, out);
                } else {
                    let mut text = std::mem::take(&mut self.held);
                    text.push_str(args);
                    self.inside(&text, out);
                }
            }
            At::Before => {
                self.held.push_str(args);
                match beginning(&self.held) {
                    Beginning::Cut => {}
                    Beginning::Other => {
                        self.at = At::Plain;
                        out.push_str(&std::mem::take(&mut self.held));
                    }
                    Beginning::Found(start) => {
                        self.at = At::Inside;
                        let held = std::mem::take(&mut self.held);
                        self.inside(held.get(start..).unwrap_or(""), out);
                    }
                }
            }
        }
    }

    /// End the arguments, and write the held text unchanged.
    pub fn end(&mut self, out: &mut String) {
        self.carry.flush(out);
        if self.at == At::Before && self.held.trim_ascii() != "{}" {
            out.push_str(&self.held);
        }
        self.held.clear();
    }

    fn inside(&mut self, text: &str, out: &mut String) {
        let (mut at, mut escaped) = (0, false);
        let bytes = text.as_bytes();
        let mut end = bytes.len();
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'"' => {
                    end = at;
                    self.at = At::After;
                    break;
                }
                b'\\' => {
                    escaped = true;
                    let length = if bytes.get(at + 1) == Some(&b'u') { 6 } else { 2 };
                    if at + length > bytes.len() {
                        end = at;
                        break;
                    }
                    at += length;
                }
                _ => at += 1,
            }
        }
        // The end is that of a character: a quote, a backslash or the end of the text.
        let (whole, rest) = text.split_at_checked(end).unwrap_or((text, ""));
        Str { raw: whole, escaped }.decode_into(out, &mut self.carry);
        if self.at == At::Inside {
            rest.clone_into(&mut self.held);
        } else {
            self.carry.flush(out);
        }
    }
}
