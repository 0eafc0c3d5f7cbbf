//! Items that are written at once: blocks of the protocol's own, generated images, and calls that the provider ran.
//! Annotations of the open text.
//!
//! In: JSON of blocks, images and annotations.  Out: events of whole items, and annotations in the protocol's own form.

use super::ResponsesWriter;
use super::item::{Item, Kind};
use super::state::{own_citation, run_call};
use crate::encode::annotations::{self, citation};
use crate::encode::{Draft, write_compact};
use crate::json::{members, object};

impl ResponsesWriter {
    /// Write a block of the protocol's own, under a new id if it has none.
    pub(super) fn block(&mut self, draft: &mut Draft, block: &str) {
        let mut item = String::new();
        let has_id =
            members(block).iter().any(|(key, value)| key == "id" && value.starts_with('"'));
        if has_id {
            write_compact(&mut item, block);
        } else {
            let id = self.next_id(draft, "item");
            item = object(|object| {
                object.text("id", &id);
                for (key, value) in members(block) {
                    if key != "id" {
                        object.json_of(&key, value);
                    }
                }
            });
        }
        match run_call(&item) {
            Some(call) => self.run_call(draft, &item, call),
            None => self.whole(draft, item),
        }
    }

    /// Write a generated image; `data` is its base64 as a JSON string.
    pub(super) fn image(&mut self, draft: &mut Draft, data: &str) {
        let id = self.next_id(draft, "ig");
        let item = object(|item| {
            item.text("id", &id);
            item.text("type", "image_generation_call");
            item.text("status", "completed");
            item.json("result", data);
        });
        self.whole(draft, item);
    }

    /// Write an item without a body.
    pub(super) fn whole(&mut self, draft: &mut Draft, json: String) {
        let index = self.output.len();
        for name in ["response.output_item.added", "response.output_item.done"] {
            self.event(draft, name, |event| {
                event.number("output_index", index);
                event.json("item", &json);
            });
        }
        self.output.push(json);
    }

    /// Write a call that the provider ran, whose text its client gets in events of its own.
    fn run_call(&mut self, draft: &mut Draft, json: &str, (member, text): (&'static str, String)) {
        let id =
            members(json).into_iter().find(|(key, _)| key == "id").map(|(_, id)| id.to_owned());
        let kind = if member == "input" { Kind::Custom } else { Kind::Function };
        let mut item = Item::call(String::new(), "", "", kind);
        let index = self.output.len();
        let skeleton = object(|skeleton| {
            for (key, value) in members(json) {
                skeleton.json_of(&key, if key == member { "\"\"" } else { value });
            }
        });
        self.event(draft, "response.output_item.added", |event| {
            event.number("output_index", index);
            event.json("item", &skeleton);
        });
        item.text = text;
        let delta = (!item.text.is_empty()).then(|| (item.delta_event(), "delta"));
        for (name, member) in delta.into_iter().chain([item.done_event()]) {
            self.event(draft, name, |event| {
                event.json("item_id", id.as_deref().unwrap_or("\"\""));
                event.number("output_index", index);
                event.text(member, &item.text);
            });
        }
        self.event(draft, "response.output_item.done", |event| {
            event.number("output_index", index);
            event.json("item", json);
        });
        self.output.push(json.to_owned());
    }

    /// Keep the annotations of the open part, which follow its text.
    pub(super) fn annotate(&mut self, draft: &mut Draft, json: &str) {
        for annotation in annotations::list(json) {
            let Some(item) = &mut self.item else { return };
            let own = matches!(
                annotations::kind(annotation).as_str(),
                "file_citation" | "container_file_citation" | "file_path"
            );
            let written = if own {
                let mut out = String::new();
                write_compact(&mut out, annotation);
                out
            } else if let Some(own) = own_citation(annotation) {
                own
            } else if let Some(citation) = citation(annotation) {
                let mut out = String::from("{\"type\":\"url_citation\",");
                citation.write_members(&mut out);
                out.push('}');
                out
            } else {
                draft.notes.add("annotations", "an annotation without an address");
                continue;
            };
            if item.is_refusal() || item.is_reasoning() {
                draft.notes.add("annotations", "annotations of a part that is no text");
                continue;
            }
            item.annotations.push(written);
        }
    }
}
