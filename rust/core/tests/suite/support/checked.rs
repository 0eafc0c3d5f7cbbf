//! `Checked`: an encoder whose bytes the checker of the target's grammar reads as they are taken.

use std::ops::{Deref, DerefMut};

use deltafold::encode::{AnswersEncoder, Encoder};
use deltafold_grammar::{Checker, check_body};

/// An encoder of one answer or of several.
pub trait Written: Sized {
    /// The checker of its stream.
    const CHECKER: fn(&str) -> Option<Checker>;
    /// What a checker needs to know: the target, the status and whether the stream ended.
    fn facts(&self) -> (&'static str, Option<u16>, bool);
    /// Take the bytes.
    fn take(&mut self) -> Vec<u8>;
}

impl Written for Encoder {
    const CHECKER: fn(&str) -> Option<Checker> = Checker::new;

    fn facts(&self) -> (&'static str, Option<u16>, bool) {
        (self.target(), self.status(), self.ended())
    }

    fn take(&mut self) -> Vec<u8> {
        Self::take(self)
    }
}

impl Written for AnswersEncoder {
    const CHECKER: fn(&str) -> Option<Checker> = Checker::of_answers;

    fn facts(&self) -> (&'static str, Option<u16>, bool) {
        (self.target(), self.status(), self.ended())
    }

    fn take(&mut self) -> Vec<u8> {
        Self::take(self)
    }
}

/// An encoder of a whole stream, and its checker until the end.
#[derive(Clone, Debug)]
pub struct Checked<E> {
    encoder: E,
    checker: Option<Box<Checker>>,
}

impl<E: Written> Checked<E> {
    /// Add a checker to an encoder that has written nothing.
    pub fn new(encoder: E) -> Self {
        let checker = E::CHECKER(encoder.facts().0).map(Box::new);
        assert!(checker.is_some(), "every target has a grammar");
        Self { encoder, checker }
    }

    /// Take the bytes written so far; they obey the grammar.
    pub fn take(&mut self) -> Vec<u8> {
        let bytes = self.encoder.take();
        let (target, status, ended) = self.encoder.facts();
        let Some(checker) = &mut self.checker else { return bytes };
        let verdict = match status {
            Some(status) if status != 200 && bytes.is_empty() => Ok(()),
            Some(status) if status != 200 => check_body(target, status, &bytes),
            Some(_) if ended => {
                let verdict = checker.feed(&bytes).and_then(|()| checker.close());
                self.checker = None;
                verdict
            }
            _ => checker.feed(&bytes),
        };
        assert_eq!(verdict, Ok(()));
        bytes
    }
}

impl<E> Deref for Checked<E> {
    type Target = E;

    fn deref(&self) -> &E {
        &self.encoder
    }
}

impl<E> DerefMut for Checked<E> {
    fn deref_mut(&mut self) -> &mut E {
        &mut self.encoder
    }
}
