//! Conversion of Python literals to JSON.
//!
//! In: a literal (strings, numbers, `True`, `None`, lists, tuples, dictionaries), or the keyword arguments of a call.  Out:
//! the same value as JSON text; `None` if the text is not a literal.
//!
//! Laws: no code is evaluated.  Each byte is read a bounded number of times.  Nesting is limited.  `true`, `false` and
//! `null` of JSON are accepted too.
//!
//! Source: docs/protocols/inline-markup.md#python; docs.python.org, "Lexical analysis: literals".

use super::literals::{blanks, from, upto};
use crate::json::{Carry, MAX_DEPTH, digit_count, number_end, write_string};

/// Return a literal as JSON.
pub(super) fn to_json(text: &str, max_depth: usize) -> Option<String> {
    let mut literal = Literal::new(text, max_depth);
    literal.value()?;
    literal.finish()
}

/// Return keyword arguments as a JSON object.
pub(super) fn arguments(text: &str, max_depth: usize) -> Option<String> {
    let mut literal = Literal::new(text, max_depth);
    literal.out.push('{');
    let mut first = true;
    literal.space();
    while literal.at < text.len() {
        if !std::mem::take(&mut first) {
            literal.out.push(',');
        }
        let name = literal.word();
        if name.is_empty() {
            return None;
        }
        write_string(&mut literal.out, name);
        literal.space();
        literal.expect('=')?;
        literal.out.push(':');
        literal.value()?;
        literal.space();
        if literal.at < text.len() {
            literal.expect(',')?;
            literal.space();
        }
    }
    literal.out.push('}');
    literal.finish()
}

struct Literal<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    out: String,
}

impl<'a> Literal<'a> {
    fn new(text: &'a str, max_depth: usize) -> Self {
        let out = String::with_capacity(text.len());
        Self { text, at: 0, depth: max_depth.min(MAX_DEPTH), out }
    }

    fn finish(mut self) -> Option<String> {
        self.space();
        (self.at == self.text.len()).then_some(self.out)
    }

    fn rest(&self) -> &'a str {
        from(self.text, self.at)
    }

    fn space(&mut self) {
        self.at += blanks(self.rest());
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn expect(&mut self, wanted: char) -> Option<()> {
        self.eat(wanted).then_some(())
    }

    fn eat(&mut self, wanted: char) -> bool {
        let found = self.rest().starts_with(wanted);
        self.at += if found { wanted.len_utf8() } else { 0 };
        found
    }

    fn word(&mut self) -> &'a str {
        let rest = self.rest();
        let part = |character: char| character.is_alphanumeric() || character == '_';
        let end = rest.find(|character| !part(character)).unwrap_or(rest.len());
        self.at += end;
        upto(rest, end)
    }

    fn value(&mut self) -> Option<()> {
        self.space();
        match self.peek()? {
            '"' | '\'' => {
                let text = self.string()?;
                write_string(&mut self.out, &text);
            }
            '[' => self.items('[', ']')?,
            '(' => self.items('(', ')')?,
            '{' => self.members()?,
            '-' | '.' | '0'..='9' => self.number()?,
            _ => {
                let json = match self.word() {
                    "True" | "true" => "true",
                    "False" | "false" => "false",
                    "None" | "null" => "null",
                    _ => return None,
                };
                self.out.push_str(json);
            }
        }
        Some(())
    }

    fn enter(&mut self) -> Option<()> {
        self.depth = self.depth.checked_sub(1)?;
        Some(())
    }

    fn items(&mut self, open: char, close: char) -> Option<()> {
        self.enter()?;
        self.expect(open)?;
        self.out.push('[');
        let mut first = true;
        loop {
            self.space();
            if self.eat(close) {
                break;
            }
            if !std::mem::take(&mut first) {
                self.out.push(',');
            }
            self.value()?;
            self.space();
            if !self.eat(',') {
                self.expect(close)?;
                break;
            }
        }
        self.out.push(']');
        self.depth += 1;
        Some(())
    }

    fn members(&mut self) -> Option<()> {
        self.enter()?;
        self.expect('{')?;
        self.out.push('{');
        let mut first = true;
        loop {
            self.space();
            if self.eat('}') {
                break;
            }
            if !std::mem::take(&mut first) {
                self.out.push(',');
            }
            let key = self.string()?;
            write_string(&mut self.out, &key);
            self.space();
            self.expect(':')?;
            self.out.push(':');
            self.value()?;
            self.space();
            if !self.eat(',') {
                self.expect('}')?;
                break;
            }
        }
        self.out.push('}');
        self.depth += 1;
        Some(())
    }

    /// Read a number of JSON, or one of the two short forms that only Python has: `.5` and `1.`.
    fn number(&mut self) -> Option<()> {
        if self.eat('-') {
            self.out.push('-');
        }
        if self.rest().starts_with('.') {
            self.out.push('0');
            let digits = upto(self.rest(), 1 + digit_count(from(self.rest(), 1).as_bytes()));
            if digits.len() < 2 {
                return None;
            }
            self.out.push_str(digits);
            self.at += digits.len();
            return Some(());
        }
        let rest = self.rest();
        let whole = digit_count(rest.as_bytes());
        let end = match number_end(rest.as_bytes(), 0) {
            Ok(end) => end,
            Err(_) if whole > 0 => whole,
            Err(_) => return None,
        };
        self.out.push_str(upto(rest, end));
        self.at += end;
        if self.eat('.') {
            self.out.push_str(".0");
        }
        Some(())
    }

    fn string(&mut self) -> Option<String> {
        let quote = self.peek().filter(|quote| matches!(quote, '"' | '\''))?;
        let triple = if quote == '"' { "\"\"\"" } else { "'''" };
        let end = if self.rest().starts_with(triple) { triple } else { upto(triple, 1) };
        self.at += end.len();
        let mut out = String::new();
        let mut carry = Carry::default();
        loop {
            let rest = self.rest();
            let run = rest.find([quote, '\\'])?;
            if run > 0 {
                carry.flush(&mut out);
                out.push_str(upto(rest, run));
                self.at += run;
            }
            if self.rest().starts_with(end) {
                self.at += end.len();
                carry.flush(&mut out);
                return Some(out);
            }
            if self.eat(quote) {
                carry.flush(&mut out);
                out.push(quote);
            } else {
                self.at += 1;
                self.escape(&mut carry, &mut out)?;
            }
        }
    }

    fn escape(&mut self, carry: &mut Carry, out: &mut String) -> Option<()> {
        let letter = self.peek()?;
        self.at += letter.len_utf8();
        let digits = match letter {
            'x' => 2,
            'u' => 4,
            'U' => 8,
            _ => 0,
        };
        if digits > 0 {
            let hex = self.rest().get(..digits)?;
            let code = u32::from_str_radix(hex, 16).ok()?;
            self.at += digits;
            if let Ok(unit) = u16::try_from(code) {
                carry.unit(unit, out);
            } else {
                carry.flush(out);
                out.push(char::from_u32(code)?);
            }
            return Some(());
        }
        carry.flush(out);
        match letter {
            'n' => out.push('\n'),
            't' => out.push('\t'),
            'r' => out.push('\r'),
            'b' => out.push('\u{8}'),
            'f' => out.push('\u{c}'),
            'v' => out.push('\u{b}'),
            'a' => out.push('\u{7}'),
            '0' => out.push('\0'),
            '\\' | '\'' | '"' | '/' => out.push(letter),
            '\n' => {}
            // As in Python, a backslash before any other letter is kept.
            other => out.extend(['\\', other]),
        }
        Some(())
    }
}
