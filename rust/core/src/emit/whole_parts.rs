//! Parts that arrive whole: media, files, and blocks that only their provider understands.

use super::calls::CallEnd;
use super::sink::DeltaSink;
use crate::contract::{Output, Payload};
use crate::json::write_string;

impl<O: Output> DeltaSink<'_, O> {
    /// What the provider must get back with a whole part, as its member `providerState`; `data` is a JSON value.
    pub fn provider_state(&self, data: &str) -> String {
        self.emitter.deltas.provider_state(data)
    }

    /// A whole part at once; `part` is a JSON object `{kind, payload}`.
    pub fn whole_part(&mut self, part: &str) {
        self.end_markup(CallEnd::Provider);
        if !self.is_open() || !self.emitter.deltas.take_state_bytes(part.len()) {
            return;
        }
        self.end_open_part();
        if let Some(index) = self.emitter.deltas.open_part() {
            self.emitter.deltas.send(self.out, Payload::Part { part_index: Some(index), part });
        }
    }

    /// A block that only its provider understands; `block` is its JSON.  What is no object is no block, and is only warned
    /// of.
    pub fn provider_part(&mut self, block: &str) {
        if !block.starts_with('{') {
            return self.warn_no_object(block);
        }
        let mut part = String::from("{\"kind\":\"provider\",\"payload\":{\"dialect\":");
        write_string(&mut part, self.emitter.deltas.dialect);
        part.push_str(",\"block\":");
        part.push_str(block);
        part.push_str("}}");
        self.whole_part(&part);
    }

    /// Parts and provider state belong to this dialect from here on: its events came inside of another's.
    pub fn speak_as(&mut self, dialect: &'static str) {
        self.emitter.deltas.dialect = dialect;
    }
}
