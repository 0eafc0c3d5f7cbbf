"""Assemblers of two more protocols in the style of `hand_written.py`: what a good engineer writes.

In: chunks of a body.  Out: one delta tuple a content delta, and the final message as a dict in
`message`.  They handle none of the hard cases, as the baseline does not either.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import orjson

Delta = tuple[str, int, str]


def _events(loads: Callable[[bytes], Any], chunks: Iterable[bytes]) -> Iterator[Any]:
    buffered = b""
    for chunk in chunks:
        lines = (buffered + chunk if buffered else chunk).split(b"\n")
        buffered = lines.pop()
        for line in lines:
            if line.startswith(b"data:") and not line.startswith(b"data: [DONE]"):
                yield loads(line[5:])


class OpenAIResponses:
    """Text, calls and usage of a Responses stream."""

    def __init__(self, loads: Callable[[bytes], Any] = orjson.loads) -> None:
        self.loads = loads
        self.message: dict[str, Any] = {}

    def run(self, chunks: Iterable[bytes]) -> Iterator[Delta]:
        """Yield the deltas; the message is there at the end."""
        text: list[str] = []
        calls: dict[int, dict[str, Any]] = {}
        response: dict[str, Any] = {}
        for event in _events(self.loads, chunks):
            kind = event["type"]
            if kind == "response.output_text.delta":
                text.append(event["delta"])
                yield ("text", event["output_index"], event["delta"])
            elif kind == "response.function_call_arguments.delta":
                calls[event["output_index"]]["args"].append(event["delta"])
                yield ("tool_args", event["output_index"], event["delta"])
            elif kind == "response.output_item.added":
                item = event["item"]
                if item["type"] == "function_call":
                    known: dict[str, Any] = {"id": item["call_id"], "name": item["name"]}
                    known["args"] = []
                    calls[event["output_index"]] = known
            elif kind in ("response.completed", "response.incomplete"):
                response = event["response"]
            elif kind in ("error", "response.failed"):
                raise RuntimeError(event)
        tool_calls = [
            {**call, "input": self.loads("".join(call["args"]).encode() or b"{}")}
            for _, call in sorted(calls.items())
        ]
        self.message = {
            "id": response["id"],
            "model": response["model"],
            "text": "".join(text),
            "tool_calls": tool_calls,
            "stop": response["status"],
            "usage": response["usage"],
        }


class Gemini:
    """Text, calls and usage of a Gemini stream."""

    def __init__(self, loads: Callable[[bytes], Any] = orjson.loads) -> None:
        self.loads = loads
        self.message: dict[str, Any] = {}

    def run(self, chunks: Iterable[bytes]) -> Iterator[Delta]:
        """Yield the deltas; the message is there at the end."""
        text: list[str] = []
        tool_calls: list[dict[str, Any]] = []
        last: dict[str, Any] = {}
        stop = usage = None
        for chunk in _events(self.loads, chunks):
            if chunk.get("error"):
                raise RuntimeError(chunk["error"])
            last = chunk
            usage = chunk.get("usageMetadata") or usage
            for candidate in chunk.get("candidates") or ():
                for part in candidate.get("content", {}).get("parts") or ():
                    if part.get("text") and not part.get("thought"):
                        text.append(part["text"])
                        yield ("text", 0, part["text"])
                    if part.get("functionCall"):
                        tool_calls.append(part["functionCall"])
                stop = candidate.get("finishReason") or stop
        self.message = {
            "id": last.get("responseId"),
            "model": last.get("modelVersion"),
            "text": "".join(text),
            "tool_calls": tool_calls,
            "stop": stop,
            "usage": usage,
        }
