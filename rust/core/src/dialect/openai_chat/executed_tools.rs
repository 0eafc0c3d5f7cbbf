//! Tools that the server ran: `executed_tools` of Groq's compound models.
//!
//! In: the lists of the deltas.  Out: one provider part with the last state of each tool, before the end of the answer.
//!
//! Law: an entry with a known `index` replaces the earlier one, which had no output yet.
//! Source: `ChoiceDelta.executed_tools` of groq-python 1.7.

use crate::json::{self, Reader, Result};
use crate::sink::DeltaSink;

/// The tools so far: the index and the JSON of each.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ExecutedTools(Vec<(Option<i64>, String)>);

impl ExecutedTools {
    /// Take the list of a delta.
    #[cold]
    pub(super) fn take(&mut self, list: &str, sink: &mut DeltaSink<'_>) {
        // `read` validated the JSON, so that an error here only means a value that is not a list.
        let _ = Reader::trusted(list).maybe_array(|reader| {
            let tool = reader.raw()?;
            self.add(tool, sink)
        });
    }

    fn add(&mut self, tool: &str, sink: &mut DeltaSink<'_>) -> Result<()> {
        let mut index = None;
        Reader::trusted(tool).maybe_object(|reader, key| {
            match key {
                "index" => index = reader.integer()?,
                _ => reader.skip()?,
            }
            Ok(())
        })?;
        let known = self.0.iter_mut().find(|(known, _)| index.is_some() && *known == index);
        if let Some((_, before)) = &known {
            sink.give_back_state_bytes(before.len());
        }
        if sink.take_state_bytes(tool.len()) {
            if let Some((_, before)) = known {
                tool.clone_into(before);
            } else {
                self.0.push((index, tool.to_owned()));
                // The provider bills them apart from tokens.
                sink.billed_calls("executed_tools", 1);
            }
        }
        Ok(())
    }

    /// Emit the tools.
    pub(super) fn send(&mut self, sink: &mut DeltaSink<'_>) {
        if self.0.is_empty() {
            return;
        }
        let tools = std::mem::take(&mut self.0);
        sink.give_back_state_bytes(tools.iter().map(|(_, tool)| tool.len()).sum());
        let mut list = String::new();
        json::write_list(&mut list, &tools, |out, (_, tool)| out.push_str(tool));
        sink.provider_part(&json::object(|block| {
            block.text("type", "executed_tools");
            block.json("executed_tools", &list);
        }));
    }
}
