"""Scripted Chat Completions server of the comparison of agent loops, in a process of its own.

In: requests of the loops.  Out: streams in the form that OpenAI sends, one SSE event per chunk.

Laws: an answer depends on the messages of its request only, so that concurrent runs do not disturb
each other. A request without `stream_options.include_usage` gets no usage. The path selects the
pause between two events: `/<milliseconds>/v1`.

    python benches/loops/loop_server.py  # prints its base URL, serves until its standard input ends
"""

import json
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any

from deltafold.testing import Recording, ReplayServer
from deltafold.testing.playlist import Request

TURNS = 20
CALLS = 2
TURN_DELTAS = 60
FINAL_DELTAS = 200
MODEL = "gpt-4.1-2025-04-14"

Choice = dict[str, object]


def words(count: int) -> list[str]:
    """Return texts of the size of a token."""
    some = ["The", " tide", " rises", " at", " Brest", ",", " slowly", " and", " evenly", "."]
    return [some[index % len(some)] for index in range(count)]


FINAL_TEXT = "".join(words(FINAL_DELTAS))


def event(members: dict[str, object]) -> bytes:
    """Write one event with the members that OpenAI repeats in each."""
    common: dict[str, object] = {
        "id": "chatcmpl-CfR0eXq9mUu1vKz5b2nT7aLwYs3Hd",
        "object": "chat.completion.chunk",
        "created": 1763928000,
        "model": MODEL,
        "service_tier": "default",
        "system_fingerprint": "fp_b3f1157249",
        **members,
    }
    return b"data: %b\n\n" % json.dumps(common, separators=(",", ":")).encode()


def choice(delta: dict[str, object], finish: str | None = None) -> Choice:
    """Return the only choice of an event."""
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}


def choices(turn: int) -> Iterator[Choice]:
    """Yield the choices of an answer; the last turn has text only."""
    last = turn == TURNS
    yield choice({"role": "assistant", "content": "", "refusal": None})
    for word in words(FINAL_DELTAS if last else TURN_DELTAS):
        yield choice({"content": word})
    for index in range(0 if last else CALLS):
        yield from call_choices(index, f"call_{turn:02}_{index}", '{"place":"Brest","days":3}')
    yield choice({}, "stop" if last else "tool_calls")


def call_choices(index: int, call_id: str, arguments: str, name: str = "tide") -> Iterator[Choice]:
    """Yield the choices of one call: its name, then its arguments in pieces of four characters."""
    function: dict[str, object] = {"name": name, "arguments": ""}
    call = {"index": index, "id": call_id, "type": "function", "function": function}
    yield choice({"tool_calls": [call]})
    for at in range(0, len(arguments), 4):
        piece = {"index": index, "function": {"arguments": arguments[at : at + 4]}}
        yield choice({"tool_calls": [piece]})


def stream_of(told: Iterator[Choice], *, usage: bool) -> bytes:
    """Write the whole stream of an answer."""
    unknown: dict[str, object] = {"usage": None} if usage else {}
    body = b"".join(event({"choices": [one], **unknown}) for one in told)
    if usage:
        details = {"cached_tokens": 0, "audio_tokens": 0}
        counts = {"prompt_tokens": 80, "completion_tokens": 60, "total_tokens": 140}
        body += event({"choices": [], "usage": {**counts, "prompt_tokens_details": details}})
    return body + b"data: [DONE]\n\n"


@cache
def answer(turn: int, milliseconds: int, *, usage: bool) -> Recording:
    """Return the recorded answer of a turn."""
    return Recording.of_events(stream_of(choices(turn), usage=usage), delay=milliseconds / 1000)


class LoopServer(ReplayServer):
    """A server that chooses the answer by the number of tool results in the request."""

    def answer_to(self, request: Request) -> Recording:
        """Choose the answer to a request."""
        body: Any = request.json()
        results = sum(message["role"] == "tool" for message in body["messages"])
        usage = bool((body.get("stream_options") or {}).get("include_usage"))
        milliseconds = int(request.path.split("/")[1])
        return answer(min(results // CALLS + 1, TURNS), milliseconds, usage=usage)


def main() -> int:
    """Serve until the standard input ends."""
    with LoopServer() as server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        sys.stdin.read()
    return 0


if __name__ == "__main__":
    sys.exit(main())
