//! Entries of log probabilities, which three targets write in nearly the same form.

use super::tree::{Node, Rule};

/// Members that an entry must have beside `token` and `logprob`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `top_logprobs` is optional (ollama).
    Short,
    /// `top_logprobs` (deltas of Responses).
    Top,
    /// `bytes` and `top_logprobs` (Chat, and the done forms of Responses).
    Full,
}

/// Check the entries of a list, and return their number.
pub(super) fn check(list: &Node<'_>, form: Form) -> Rule<usize> {
    let entries = list.as_list()?;
    for entry in &entries {
        entry.text("token")?;
        entry.number("logprob")?;
        if form == Form::Full {
            let bytes = entry.at("bytes")?;
            if !bytes.is_null() {
                for byte in bytes.as_list()? {
                    byte.as_count()?;
                }
            }
        }
        if form == Form::Short && !entry.has("top_logprobs") {
            continue;
        }
        for top in entry.list("top_logprobs")? {
            top.text("token")?;
            top.number("logprob")?;
        }
    }
    Ok(entries.len())
}
