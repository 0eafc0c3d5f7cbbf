"""The event stream parser of botocore reads every recording and fixture, as ConverseStream."""

import functools
from typing import Any

import botocore.awsrequest
import botocore.config
import botocore.session

from corpus import needs_corpus
from judging import Answer, Stream, parsed, shown, verdicts

pytestmark = needs_corpus


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


def read(stream: Stream) -> Answer:
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
        return accumulated(response["stream"])
    finally:
        bedrock.meta.events.unregister("before-send", unique_id="judge")


def accumulated(events: Any) -> Answer:  # noqa: ANN401 - as above
    answer, calls = Answer(), dict[int, list[str]]()
    for event in events:
        if start := event.get("contentBlockStart", {}).get("start", {}).get("toolUse"):
            index = event["contentBlockStart"]["contentBlockIndex"]
            calls[index] = [start["toolUseId"], start["name"], ""]
        block = event.get("contentBlockDelta", {})
        delta = block.get("delta", {})
        answer.text += delta.get("text", "")
        answer.thinking += delta.get("reasoningContent", {}).get("text", "")
        if "toolUse" in delta:
            calls[block["contentBlockIndex"]][2] += delta["toolUse"]["input"]
        if stop := event.get("messageStop"):
            answer.finish = stop["stopReason"]
        if usage := event.get("metadata", {}).get("usage"):
            cached = usage.get("cacheReadInputTokens", 0) + usage.get("cacheWriteInputTokens", 0)
            answer.input_tokens = usage["inputTokens"] + cached
            answer.output_tokens = usage["outputTokens"]
    answer.calls = [(call, name, parsed(text)) for _, (call, name, text) in sorted(calls.items())]
    return answer


def test_botocore_reads_every_stream_as_its_message() -> None:
    count, found = verdicts("bedrock-converse", read)
    assert count > 1500
    assert not found, shown(found)
