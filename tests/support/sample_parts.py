"""One or more parts of each kind, beside their wire forms."""

from deltafold.message.messages import (
    FileRefPart,
    ImagePart,
    MessagePart,
    ProviderPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)

STATE: dict[str, object] = {"dialect": "anthropic-messages", "modelId": "m", "data": {"s": "sig"}}

PARTS: list[tuple[MessagePart, dict[str, object]]] = [
    (TextPart(text="hi"), {"kind": "text", "payload": {"text": "hi"}}),
    (
        TextPart(text="", annotations=[{"url": "u"}], refusal=True),
        {
            "kind": "text",
            "payload": {
                "text": "",
                "annotations": [{"url": "u"}],
                "refusal": True,
            },
        },
    ),
    (
        ThinkingPart(text="", redacted=True, provider_state=STATE),
        {
            "kind": "thinking",
            "payload": {"text": "", "redacted": True},
            "providerState": STATE,
        },
    ),
    (
        ToolCallPart(tool_call_id="c", tool_name="f", raw_args_text='{"a": 1.50}'),
        {
            "kind": "tool_call",
            "payload": {
                "toolCallId": "c",
                "toolName": "f",
                "arguments": {"a": 1.5},
                "rawArgsText": '{"a": 1.50}',
            },
        },
    ),
    (
        ToolCallPart(tool_call_id="c", tool_name="f", raw_args_text="[1]"),
        {
            "kind": "tool_call",
            "payload": {
                "toolCallId": "c",
                "toolName": "f",
                "arguments": None,
                "rawArgsText": "[1]",
                "parseError": "arguments are an array, not an object",
            },
        },
    ),
    (
        ToolCallPart(tool_call_id="c", tool_name="f", raw_args_text="null"),
        {
            "kind": "tool_call",
            "payload": {
                "toolCallId": "c",
                "toolName": "f",
                "arguments": {},
                "rawArgsText": "null",
                "parseWarning": "arguments are null, read as an empty object",
            },
        },
    ),
    (
        ToolCallPart(tool_call_id="c", tool_name="f", raw_args_text='{"a', incomplete=True),
        {
            "kind": "tool_call",
            "payload": {
                "toolCallId": "c",
                "toolName": "f",
                "arguments": None,
                "rawArgsText": '{"a',
                "incomplete": True,
            },
        },
    ),
    (
        ToolCallPart(
            tool_call_id="c", tool_name="sh", arguments={"input": "ls"}, input_format="text"
        ),
        {
            "kind": "tool_call",
            "payload": {
                "toolCallId": "c",
                "toolName": "sh",
                "arguments": {"input": "ls"},
                "rawArgsText": "ls",
                "inputFormat": "text",
            },
        },
    ),
    (
        ToolResultPart(tool_call_id="c", content="42", provider_state=STATE),
        {
            "kind": "tool_result",
            "payload": {"toolCallId": "c", "isError": False, "content": "42"},
            "providerState": STATE,
        },
    ),
    (
        ToolResultPart(tool_call_id="c", content={"kind": "text"}, is_error=True, status="denied"),
        {
            "kind": "tool_result",
            "payload": {
                "toolCallId": "c",
                "isError": True,
                "status": "denied",
                "content": {"kind": "text"},
            },
        },
    ),
    (
        ToolResultPart(
            tool_call_id="c",
            content=[TextPart(text="see"), ImagePart(mime_type="image/png", data="aGk=")],
        ),
        {
            "kind": "tool_result",
            "payload": {
                "toolCallId": "c",
                "isError": False,
                "content": [
                    {"kind": "text", "payload": {"text": "see"}},
                    {"kind": "image", "payload": {"mimeType": "image/png", "data": "aGk="}},
                ],
            },
        },
    ),
    (
        ImagePart(mime_type="image/png", url="https://example.com/a.png"),
        {
            "kind": "image",
            "payload": {"mimeType": "image/png", "url": "https://example.com/a.png"},
        },
    ),
    (
        FileRefPart(path="/tmp/a", mime_type="text/plain", size=3),  # noqa: S108
        {
            "kind": "file_ref",
            "payload": {"path": "/tmp/a", "mimeType": "text/plain", "size": 3},  # noqa: S108
        },
    ),
    (
        ProviderPart(dialect="d", block={"type": "x", "n": 9007199254740993, "z": None}),
        {
            "kind": "provider",
            "payload": {
                "dialect": "d",
                "block": {"type": "x", "n": 9007199254740993, "z": None},
            },
        },
    ),
]
