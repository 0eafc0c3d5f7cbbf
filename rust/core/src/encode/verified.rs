//! `Verified`: in debug builds, all that an encoder writes is read by the checker of the target's grammar.

use crate::grammar::{Checker, check_body};

/// The checker of one stream; nothing in release builds and after the end.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Verified {
    target: &'static str,
    checker: Option<Box<Checker>>,
}

impl Verified {
    /// Build the checker, if the output is a whole stream; with `answers`, of a stream of several answers.
    pub(super) fn new(target: &'static str, is_whole: bool, answers: bool) -> Self {
        let checker = (cfg!(debug_assertions) && is_whole)
            .then(|| if answers { Checker::of_answers(target) } else { Checker::new(target) });
        Self { target, checker: checker.flatten().map(Box::new) }
    }

    /// Check bytes against the grammar of the target.
    pub(super) fn check(&mut self, bytes: &[u8], status: Option<u16>, ended: bool) {
        let Some(checker) = &mut self.checker else { return };
        let verdict = match status {
            Some(status) if status != 200 => {
                if bytes.is_empty() {
                    Ok(())
                } else {
                    check_body(self.target, status, bytes)
                }
            }
            Some(_) if ended => {
                let verdict = checker.feed(bytes).and_then(|()| checker.close());
                self.checker = None;
                verdict
            }
            _ => checker.feed(bytes),
        };
        debug_assert!(verdict.is_ok(), "{verdict:?}");
    }
}
