//! A feed costs a few allocations, whatever the number of its text deltas.

use std::cell::Cell;

use crate::cost::ALLOCATIONS;
use crate::support::binary;
use deltafold::DeltaBatch;
use deltafold::encode::{Encoder, Settings, TARGETS};
use deltafold::fold::{FoldingOutput, MessageAssembler};

fn allocations(f: impl FnOnce()) -> usize {
    let before = ALLOCATIONS.with(Cell::get);
    f();
    ALLOCATIONS.with(Cell::get) - before
}

const DIALECTS: [&str; 8] = [
    "openai-chat",
    "openai-responses",
    "anthropic-messages",
    "bedrock-converse",
    "bedrock-invoke",
    "gemini",
    "gemini-interactions",
    "ollama",
];

fn gemini_chunk(padding: &str, text: &str) -> String {
    format!(
        "data: {{{padding}\"candidates\":[{{\"content\":{{\"parts\":[{{\"text\":{text}}}],\"role\":\"model\"}},\"index\":0}}],\"usageMetadata\":{{\"promptTokenCount\":4}},\"modelVersion\":\"m\",\"responseId\":\"r\"}}\r\n\r\n"
    )
}

fn text_events(dialect: &str, count: usize) -> Vec<u8> {
    let event = |number: usize| {
        let text = format!("\"w{number} \\\"q\\\"\"");
        match dialect {
            "openai-chat" => format!(
                "data: {{\"id\":\"c\",\"model\":\"m\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":{text}}}}}]}}\n\n"
            )
            .into_bytes(),
            "openai-responses" => format!(
                "event: response.output_text.delta\ndata: {{\"type\":\"response.output_text.delta\",\"sequence_number\":{number},\"item_id\":\"msg_1\",\"output_index\":0,\"content_index\":0,\"delta\":{text}}}\n\n"
            )
            .into_bytes(),
            "gemini" => gemini_chunk("", &text).into_bytes(),
            "gemini-interactions" => format!(
                "event: step.delta\ndata: {{\"index\":0,\"delta\":{{\"text\":{text},\"type\":\"text\"}},\"event_type\":\"step.delta\"}}\n\n"
            )
            .into_bytes(),
            "bedrock-converse" => binary::event(
                "contentBlockDelta",
                &format!("{{\"contentBlockIndex\":0,\"delta\":{{\"text\":{text}}},\"p\":\"ab\"}}"),
            ),
            "bedrock-invoke" => binary::chunk(&format!("{{\"outputText\":{text}}}")),
            "ollama" => format!(
                "{{\"model\":\"m\",\"created_at\":\"{number}\",\"message\":{{\"content\":{text}}},\"done\":false}}\n"
            )
            .into_bytes(),
            _ => format!(
                "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":{text}}}}}\n\n"
            )
            .into_bytes(),
        }
    };
    (0..count).flat_map(event).collect()
}

/// Growing buffers double, so that ten times the deltas cost a few allocations more, not ten times as many.
const FEW: usize = 24;

#[test]
fn a_feed_into_a_batch_costs_a_few_allocations() {
    for dialect in DIALECTS {
        let mut decoder = crate::support::decoder(dialect);
        let mut batch = DeltaBatch::default();
        decoder.feed(&text_events(dialect, 8), &mut batch);
        for events in [100, 1_000, 10_000] {
            let body = text_events(dialect, events);
            let mut batch = DeltaBatch::default();
            let cost = allocations(|| decoder.feed(&body, &mut batch));
            assert_eq!(batch.len(), events);
            assert!(cost <= FEW + 12, "{dialect}: {cost} allocations for {events} events");
        }
    }
}

#[test]
fn a_feed_into_an_assembler_costs_a_few_allocations() {
    for dialect in DIALECTS {
        let mut decoder = crate::support::decoder(dialect);
        let mut assembler = MessageAssembler::default();
        decoder.feed(&text_events(dialect, 8), &mut FoldingOutput::new(&mut assembler));
        for events in [100, 1_000, 10_000] {
            let body = text_events(dialect, events);
            let cost = allocations(|| {
                decoder.feed(&body, &mut FoldingOutput::new(&mut assembler));
            });
            assert!(cost <= FEW, "{dialect}: {cost} allocations for {events} events");
        }
    }
}

#[test]
fn frames_that_repeat_nothing_are_read_without_allocating() {
    let chunk = |dialect: &str, number: usize| {
        let padding = "\"p\":[[[0]]],".repeat(number % 7);
        match dialect {
            "gemini" => gemini_chunk(&padding, "\"w\""),
            "gemini-interactions" => format!(
                "data: {{{padding}\"index\":0,\"delta\":{{\"text\":\"w\",\"type\":\"text\"}},\"event_type\":\"step.delta\"}}\n\n"
            ),
            _ => format!(
                "data: {{{padding}\"id\":\"c\",\"model\":\"m\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"w\"}}}}]}}\n\n"
            ),
        }
    };
    for dialect in ["openai-chat", "gemini", "gemini-interactions"] {
        let mut decoder = crate::support::decoder(dialect);
        let mut assembler = MessageAssembler::default();
        let body: String = (0..1_000).map(|number| chunk(dialect, number)).collect();
        decoder.feed(body.as_bytes(), &mut FoldingOutput::new(&mut assembler));
        let cost =
            allocations(|| decoder.feed(body.as_bytes(), &mut FoldingOutput::new(&mut assembler)));
        assert!(cost <= 200, "{dialect}: {cost} allocations for 1,000 frames of seven skeletons");
        assert_eq!(assembler.text().len(), 2_000, "{dialect}");
    }
}

#[test]
fn a_text_event_is_transcoded_without_allocating() {
    for dialect in DIALECTS {
        for target in TARGETS {
            let mut decoder = crate::support::decoder(dialect);
            let mut encoder = Encoder::new(target, Settings::default(), false);
            decoder.feed(&text_events(dialect, 8), &mut encoder);
            for events in [100, 1_000, 10_000] {
                let body = text_events(dialect, events);
                let cost = allocations(|| decoder.feed(&body, &mut encoder));
                let pair = format!("{dialect} to {}", target.name);
                assert!(cost <= FEW, "{pair}: {cost} allocations for {events} events");
            }
        }
    }
}
