//! The assembler tells after each feed whether text has come, as its parts say.

use deltafold::fold::{FoldingOutput, MessageAssembler, Part};

use crate::support::{decoder, fixtures};

fn text_of_parts(message: &MessageAssembler) -> bool {
    message.parts().iter().any(|part| matches!(part, Part::Text(part) if !part.text.is_empty()))
}

#[test]
fn the_first_text_is_known_after_each_feed() {
    for fixture in fixtures() {
        let mut decoder = decoder(&fixture.dialect);
        let mut message = MessageAssembler::default();
        for piece in fixture.wire.chunks(97) {
            decoder.feed(piece, &mut FoldingOutput::new(&mut message));
            assert_eq!(message.has_text(), text_of_parts(&message), "{}", fixture.name);
        }
        decoder.close(&mut FoldingOutput::new(&mut message));
        assert_eq!(message.has_text(), text_of_parts(&message), "{}", fixture.name);
        let silent = message.without(|_, part| matches!(part, Part::Text(_)));
        assert!(!silent.has_text(), "{}", fixture.name);
    }
}

#[test]
fn an_empty_text_is_no_text_until_it_grows() {
    let events = [
        "{\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"model\":\"c\",\"usage\":{\"input_tokens\":1}}}",
        "{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}",
        "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"citations_delta\",\"citation\":{\"type\":\"x\"}}}",
        "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"a\"}}",
    ];
    let mut decoder = decoder("anthropic-messages");
    let mut message = MessageAssembler::default();
    let known = events.map(|event| {
        let event = format!("data: {event}\n\n");
        decoder.feed(event.as_bytes(), &mut FoldingOutput::new(&mut message));
        message.has_text()
    });
    assert_eq!(known, [false, false, false, true]);
}
