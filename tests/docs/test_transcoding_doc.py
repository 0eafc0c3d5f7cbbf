"""The table of docs/transcoding.md is what the encoders note.

DELTAFOLD_BLESS=1 rewrites it.
"""

import os
from typing import Any

from any_name import AnyName
from corpus import ROOT
from deltafold import Encoder, MessageDelta, target_names

DOC = ROOT / "docs" / "transcoding.md"
BEGIN, END = "<!-- table -->\n", "<!-- end of the table -->"

Payload = dict[str, Any]
Step = tuple[str, Payload]


def state(dialect: str, data: Payload) -> Payload:
    return {"providerState": {"dialect": dialect, "modelId": "m", "data": data}}


def thinking(more: Payload, text: str = "Hm") -> list[Step]:
    return [
        ("thinking", {"textDelta": text, "partIndex": 0, **more}),
        ("part_end", {"partIndex": 0}),
    ]


def text(more: Payload) -> list[Step]:
    return [("text", {"textDelta": "Hi", "partIndex": 0, **more}), ("part_end", {"partIndex": 0})]


def call(args: str, *, incomplete: bool = False, more: Payload | None = None) -> list[Step]:
    start = {"toolCallId": "a", "toolName": "f", "partIndex": 0, **(more or {})}
    return [
        ("tool_call_start", start),
        ("tool_call_args", {"toolCallId": "a", "argsTextDelta": args}),
        ("tool_call_end", {"toolCallId": "a", "incomplete": incomplete}),
    ]


def part(kind: str, payload: Payload) -> list[Step]:
    return [("part", {"partIndex": 0, "part": {"kind": kind, "payload": payload}})]


CITATION = {"type": "url_citation", "url_citation": {"url": "https://a.b", "title": "A"}}
LOGPROBS = {"tokens": ["Hi"], "logprobs": [-0.1]}

FEATURES: dict[str, tuple[list[Step], str]] = {
    "text": (text({}), "stop"),
    "thinking": (thinking({}), "stop"),
    "signed thinking of Claude": (
        thinking(state("anthropic-messages", {"signature": "YWJj"})),
        "stop",
    ),
    "withheld thinking of Claude": (
        thinking(
            {
                "redacted": True,
                **state("anthropic-messages", {"type": "redacted_thinking", "data": "YWJj"}),
            },
            "",
        ),
        "stop",
    ),
    "encrypted reasoning of GPT": (
        thinking(
            {
                "redacted": True,
                **state(
                    "openai-responses",
                    {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "x"},
                ),
            },
            "",
        ),
        "stop",
    ),
    "signed text of Gemini": (text(state("gemini", {"thoughtSignature": "YWJj"})), "stop"),
    "tool call": (call("{}"), "tool_calls"),
    "tool call whose arguments are no object": (call("[1]"), "tool_calls"),
    "tool call that was cut off": (call('{"a"', incomplete=True), "length"),
    "tool call with free text": (call("ls", more={"inputFormat": "text"}), "tool_calls"),
    "citation of a page": (text({"annotations": [CITATION]}), "stop"),
    "other citation": (text({"annotations": [{"type": "file", "file_id": "f"}]}), "stop"),
    "log probabilities": (text({"logprobs": LOGPROBS}), "stop"),
    "refusal": (text({"refusal": True}), "refusal"),
    "image": (part("image", {"mimeType": "image/png", "data": "YWJj"}), "stop"),
    "block of another provider": (
        part("provider", {"dialect": "mistral", "block": {"type": "x"}}),
        "stop",
    ),
    "pause": (text({}), "pause"),
    "stop by a filter": (text({}), "content_filter"),
}


def verdict(steps: list[Step], reason: str, target: AnyName) -> str:
    """Treatment of a feature by a target: "yes", or the kinds of its notes."""
    usage = {
        "inputTokens": 3,
        "outputTokens": 2,
        "totalTokens": 5,
        "cacheReadTokens": 0,
        "reasoningTokens": 0,
    }
    whole: list[Step] = [
        ("start", {"modelId": "m", "requestId": "r"}),
        ("usage", usage),
        *steps,
        ("done", {"finishReason": reason}),
    ]
    encoder = Encoder(target)
    for seq, (kind, payload) in enumerate(whole, 1):
        encoder.feed(MessageDelta("run", seq, kind, payload))
    noted = sorted({note["code"] for note in encoder.notes})
    return "yes" if not noted else "no" if noted != ["finish_reason"] else "other word"


def table() -> str:
    targets = target_names()
    lines = ["| | " + " | ".join(targets) + " |", "|-" * (len(targets) + 1) + "|"]
    for feature, (steps, reason) in FEATURES.items():
        cells = (verdict(steps, reason, target) for target in targets)
        lines.append(f"| {feature} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def test_the_table_is_what_the_encoders_note() -> None:
    document = DOC.read_text("utf-8")
    before, _, rest = document.partition(BEGIN)
    _, _, after = rest.partition(END)
    if os.environ.get("DELTAFOLD_BLESS"):
        DOC.write_text(before + BEGIN + table() + END + after, "utf-8")
    assert DOC.read_text("utf-8") == before + BEGIN + table() + END + after


def test_each_feature_is_carried_by_some_target() -> None:
    for feature, (steps, reason) in FEATURES.items():
        verdicts = {verdict(steps, reason, target) for target in target_names()}
        assert verdicts - {"no"}, feature
