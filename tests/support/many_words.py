"""A stream of the Messages API that says twenty words, each in an event of its own."""

import json

WORDS = [f"word{number} " for number in range(20)]


def event(name: str, **members: object) -> bytes:
    return f"event: {name}\ndata: {json.dumps({'type': name, **members})}\n\n".encode()


BODY = b"".join(
    [
        event(
            "message_start",
            message={"id": "r", "model": "m", "usage": {"input_tokens": 1, "output_tokens": 1}},
        ),
        event("content_block_start", index=0, content_block={"type": "text", "text": ""}),
        *(
            event("content_block_delta", index=0, delta={"type": "text_delta", "text": word})
            for word in WORDS
        ),
        event("content_block_stop", index=0),
        event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 9}),
        event("message_stop"),
    ]
)
