"""Reader of a ConverseStream: the event stream parser of botocore."""

import functools
from dataclasses import dataclass, field
from typing import Any

import botocore.awsrequest
import botocore.config
import botocore.session

from judging import Answer, Stream, parsed

# Type of the call of a tool that the service runs.
SERVER_TOOL = "server_tool_use"


class _Body:
    """Raw body of a response, as urllib3 hands it to botocore."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def stream(self, *_: object, **__: object) -> list[bytes]:
        return [self._body] if self._body else []

    def close(self) -> None:
        """Close nothing: the bytes are in memory."""


@functools.cache
def client() -> Any:  # noqa: ANN401 - botocore makes its clients' types at run time
    sessions: Any = botocore.session
    return sessions.get_session().create_client(
        "bedrock-runtime",
        region_name="us-east-1",
        aws_access_key_id="key",
        aws_secret_access_key="secret",
        config=botocore.config.Config(retries={"max_attempts": 0}),
    )


def events_of(stream: Stream) -> list[dict[str, Any]]:
    """Return the events that botocore parses; raises what botocore raises for exception frames."""
    bedrock = client()

    def answer_of(request: Any, **_: object) -> object:  # noqa: ANN401 - as above
        raw = _Body(stream.body)
        return botocore.awsrequest.AWSResponse(
            request.url, stream.status, dict(stream.headers), raw
        )

    bedrock.meta.events.register_first("before-send", answer_of, unique_id="judge")
    try:
        response = bedrock.converse_stream(
            modelId="m", messages=[{"role": "user", "content": [{"text": "?"}]}]
        )
        return list(response["stream"])
    finally:
        bedrock.meta.events.unregister("before-send", unique_id="judge")


def read(stream: Stream) -> Answer:
    answer, calls = Answer(), dict[int, list[str]]()
    for event in events_of(stream):
        start = event.get("contentBlockStart", {}).get("start", {}).get("toolUse")
        # The service runs its own tools: the client reads their calls and runs none.
        if start and start.get("type") != SERVER_TOOL:
            index = event["contentBlockStart"]["contentBlockIndex"]
            calls[index] = [start["toolUseId"], start["name"], ""]
        block = event.get("contentBlockDelta", {})
        delta = block.get("delta", {})
        answer.text += delta.get("text", "")
        answer.thinking += delta.get("reasoningContent", {}).get("text", "")
        if "toolUse" in delta and block["contentBlockIndex"] in calls:
            calls[block["contentBlockIndex"]][2] += delta["toolUse"]["input"]
        if stop := event.get("messageStop"):
            answer.finish = stop["stopReason"]
        if usage := event.get("metadata", {}).get("usage"):
            cached = usage.get("cacheReadInputTokens", 0) + usage.get("cacheWriteInputTokens", 0)
            answer.input_tokens = usage["inputTokens"] + cached
            answer.output_tokens = usage["outputTokens"]
    answer.calls = [(call, name, parsed(text)) for _, (call, name, text) in sorted(calls.items())]
    return answer


@dataclass
class OwnBlock:
    """Content of one block beside text, reasoning and calls of the client."""

    starts: list[object] = field(default_factory=list[object])
    server_input: str = ""
    results: list[object] = field(default_factory=list[object])
    citations: list[object] = field(default_factory=list[object])
    image: bytes = b""
    errors: list[object] = field(default_factory=list[object])


def own_blocks(stream: Stream) -> list[OwnBlock]:
    """Return what botocore reads beside text, reasoning and calls of the client, block by block."""
    blocks: dict[int, OwnBlock] = {}
    for event in events_of(stream):
        part: dict[str, Any]
        part = event.get("contentBlockStart") or event.get("contentBlockDelta") or {}
        block = blocks.setdefault(part.get("contentBlockIndex", -1), OwnBlock())
        start: dict[str, Any] = part.get("start", {})
        delta: dict[str, Any] = part.get("delta", {})
        if start and start.get("toolUse", {"type": SERVER_TOOL}).get("type") == SERVER_TOOL:
            block.starts.append(start)
        if block.starts:
            block.server_input += delta.get("toolUse", {}).get("input", "")
        block.results += delta.get("toolResult", [])
        block.citations += [delta["citation"]] if "citation" in delta else []
        image: dict[str, Any] = delta.get("image", {})
        block.image += image.get("source", {}).get("bytes", b"")
        block.errors += [image["error"]] if "error" in image else []
    return [block for _, block in sorted(blocks.items()) if block != OwnBlock()]
