"""A provider of the Messages API that refuses reasoning which is bound to another conversation.

In: requests over HTTP, and what the model says in its answers.  Out: streams with signed thinking,
or the refusals that Anthropic documents. `ScriptedServer` is the part that all protocols share
(binding_elsewhere.py).

Laws: a signature is bound to `system`, `tools`, all earlier messages without cache marks, and the
thinking before it. A leading run of thinking may be left out, one between others may not: then each
later block fails. `drop_block` needs the beta header and adaptive thinking, and holds for one
request.
Source: Anthropic's pages "Preserved thinking", "Prefix checks on thinking blocks" and
"Troubleshooting thinking" (read 2026-11).
"""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeAlias, cast

from deltafold.testing import Recording, ReplayServer
from deltafold.testing.playlist import Request

BETA: Final = "thinking-binding-controls-2026-08-01"

Block: TypeAlias = dict[str, Any]
_THINKING: Final = frozenset({"thinking", "redacted_thinking"})


class Spot(NamedTuple):
    """Place of a content block: its message, and its index there."""

    message: int
    block: int


class Bond(NamedTuple):
    """What a signature is bound to: a digest of the conversation, and the thinking before it."""

    conversation: str
    thinking: tuple[str, ...]


class ScriptedServer(ReplayServer, ABC):
    """Answers with a script, and refuses what breaks the rules of its protocol.

    Args:
        script: the content blocks of each answer as the Messages API writes them, thinking without
            a signature; the last answer is given again when the script is at its end.
        reported: the model that answers name, None for the one of the request.

    Attributes:
        has_text_state: whether the state of texts must come back; the Messages API has no place for
            it, and that of Responses none for that of another provider.
        bodies: the bodies of the accepted requests.
        refusals: the messages of the refusals.
        made: marks of the state in all answers, such as signatures.
        known: how many marks were made before each accepted request.
    """

    def __init__(self, script: Sequence[Sequence[Block]], *, reported: str | None = None) -> None:
        super().__init__()
        self.script = list(script)
        self.has_text_state = True
        self.reported = reported
        self.bodies: list[Block] = []
        self.refusals: list[str] = []
        self.made: list[str] = []
        self.known: list[int] = []

    def answer_to(self, request: Request) -> Recording:
        """Answer a request, or refuse it."""
        self.requests.append(request)
        body: Block = dict(cast("Block", request.json()))
        refusal = self.refusal_of(body, request)
        if refusal is not None:
            self.refusals.append(refusal)
            return Recording.error(400, self.error_of(refusal))
        blocks = self.script[min(len(self.bodies), len(self.script) - 1)]
        self.bodies.append(body)
        self.known.append(len(self.made))
        return Recording.of_events(self.stream_of(body, blocks))

    @abstractmethod
    def refusal_of(self, body: Block, request: Request) -> str | None:
        """Return what the provider refuses, None if it answers."""

    @abstractmethod
    def error_of(self, message: str) -> Block:
        """Return the body of a refusal."""

    @abstractmethod
    def stream_of(self, body: Block, blocks: Sequence[Block]) -> bytes:
        """Return the body of an answer."""

    @abstractmethod
    def replayed(self, body: Block) -> list[str]:
        """Return the marks in a request, as in `made`."""


class BindingServer(ScriptedServer):
    """A ScriptedServer of the Messages API.

    Args:
        script: the content blocks of each answer.
        reported: the model that answers name.
        binds: whether the signatures are bound, as those of newer models.

    Attributes:
        dropped: the blocks that were dropped, by request.
    """

    def __init__(
        self,
        script: Sequence[Sequence[Block]],
        *,
        reported: str | None = None,
        binds: bool = True,
    ) -> None:
        super().__init__(script, reported=reported)
        self.binds = binds
        self.dropped: list[list[str]] = []
        self._bonds: dict[str, Bond] = {}

    def refusal_of(self, body: Block, request: Request) -> str | None:
        """Refuse thinking that is bound to another conversation, and open calls."""
        failing = list(self._failing(body)) if self.binds else []
        refusal = self._refusal(body, failing, request.headers.get("anthropic-beta", ""))
        if refusal is None:
            self.dropped.append([f"messages.{at.message}.content.{at.block}" for at in failing])
        return refusal

    def error_of(self, message: str) -> Block:
        """Return the body of a refusal."""
        error = {"type": "invalid_request_error", "message": message}
        return {"type": "error", "error": error}

    def stream_of(self, body: Block, blocks: Sequence[Block]) -> bytes:
        """Return an answer whose thinking is bound to the request."""
        seen = _without(body, set(self.dropped[-1]))
        return self._stream(seen, blocks)

    def replayed(self, body: Block) -> list[str]:
        """Return the signatures of a request."""
        return thinking_in(body)

    def _failing(self, body: Block) -> Iterator[Spot]:
        has_failed = False
        for at, block in _blocks(body):
            bond = self._bonds.get(_mark(block)) if block.get("type") in _THINKING else None
            if bond is None:
                continue
            now = _bond(body, at)
            count = len(now.thinking)
            is_suffix = now.thinking == bond.thinking[len(bond.thinking) - count :]
            has_failed = has_failed or now.conversation != bond.conversation or not is_suffix
            if has_failed:
                yield at

    def _refusal(self, body: Block, failing: Sequence[Spot], betas: str) -> str | None:
        thinking: Block = body.get("thinking") or {}
        binding: Block | None = thinking.get("block_binding")
        if binding is not None and BETA not in betas:
            return "thinking.block_binding: Extra inputs are not permitted"
        if binding is not None and thinking.get("type") != "adaptive":
            return "thinking.block_binding: only with adaptive thinking"
        if failing and (binding or {}).get("prefix_mismatch_behavior") != "drop_block":
            at = failing[0]
            return (
                f"messages.{at.message}.content.{at.block}: Invalid `signature` in `thinking` "
                "block. The block is bound to a different conversation. Remove the block, or set "
                '`thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
            )
        for place, message in enumerate(body["messages"]):
            calls = {one["id"] for one in _content(message) if one["type"] == "tool_use"}
            after = body["messages"][place + 1 : place + 2]
            results = [one for message in after for one in _content(message)]
            calls -= {one.get("tool_use_id") for one in results}
            if calls:
                return f"messages.{place}: tool_use ids without tool_result: {calls}"
        return None

    def _stream(self, body: Block, blocks: Sequence[Block]) -> bytes:
        model = self.reported or body["model"]
        message: Block = {"id": f"msg_{len(self.bodies)}", "type": "message", "model": model}
        message |= {"role": "assistant", "content": [], "stop_reason": None}
        message["usage"] = {"input_tokens": 10, "output_tokens": 1}
        if self.dropped[-1]:
            message["input_transformations"] = [
                {"type": "thinking_dropped", "path": path, "reason": "prefix_binding_mismatch"}
                for path in self.dropped[-1]
            ]
        events: list[Block] = [{"type": "message_start", "message": message}]
        said: list[Block] = []
        for index, given in enumerate(blocks):
            block = dict(given)
            if block["type"] == "thinking":
                whole = {
                    **body,
                    "messages": [*body["messages"], {"role": "assistant", "content": said}],
                }
                bond = _bond(whole, Spot(len(body["messages"]), len(said)))
                digest = hashlib.sha256(json.dumps(bond).encode()).hexdigest()
                block["signature"] = f"sig{digest[:24]}"
                self._bonds[block["signature"]] = bond
                self.made.append(block["signature"])
            said.append(block)
            events += _events_of(index, block)
        reason = "tool_use" if any(one["type"] == "tool_use" for one in said) else "end_turn"
        events.append({"type": "message_delta", "delta": {"stop_reason": reason}})
        events[-1]["usage"] = {"output_tokens": 20}
        events.append({"type": "message_stop"})
        wire = (f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
        return "".join(wire).encode()


def thinking_in(body: Block) -> list[str]:
    """Return the signatures of a request."""
    return [_mark(block) for _, block in _blocks(body) if block.get("type") in _THINKING]


def _events_of(index: int, block: Block) -> Iterator[Block]:
    deltas: list[Block] = []
    start = dict(block)
    match block["type"]:
        case "thinking":
            start |= {"thinking": "", "signature": ""}
            deltas = [{"type": "thinking_delta", "thinking": block["thinking"]}]
            deltas = deltas if block["thinking"] else []
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        case "text":
            start["text"] = ""
            deltas = [{"type": "text_delta", "text": block["text"]}]
        case "tool_use":
            start["input"] = {}
            deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
        case _:
            pass
    yield {"type": "content_block_start", "index": index, "content_block": start}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


def _mark(block: Block) -> str:
    return str(block.get("signature") or block.get("data") or "")


def _content(message: Block) -> list[Block]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _blocks(body: Block) -> Iterator[tuple[Spot, Block]]:
    for number, message in enumerate(body["messages"]):
        for index, block in enumerate(_content(message)):
            yield Spot(number, index), block


def _bond(body: Block, at: Spot) -> Bond:
    """Return what a block at a place is bound to."""
    messages: list[object] = []
    for number, message in enumerate(body["messages"][: at.message + 1]):
        content = _content(message)
        content = content[: at.block] if number == at.message else content
        if content or number < at.message:
            kept = [one for one in content if one.get("type") not in _THINKING]
            messages.append([message["role"], kept])
    said = [body.get("system"), body.get("tools"), messages]
    text = json.dumps(_unmarked(said), sort_keys=True)
    before = [_mark(one) for spot, one in _blocks(body) if spot < at and one["type"] in _THINKING]
    return Bond(hashlib.sha256(text.encode()).hexdigest(), tuple(before))


def _unmarked(value: object) -> object:
    """Return a value without cache marks."""
    if isinstance(value, dict):
        members = cast("Block", value)
        return {key: _unmarked(one) for key, one in members.items() if key != "cache_control"}
    if isinstance(value, list):
        return [_unmarked(one) for one in cast("list[object]", value)]
    return value


def _without(body: Block, paths: set[str]) -> Block:
    """Return a request without the blocks that were dropped."""
    if not paths:
        return body
    messages = [
        {
            **message,
            "content": [
                block
                for index, block in enumerate(_content(message))
                if f"messages.{number}.content.{index}" not in paths
            ],
        }
        for number, message in enumerate(body["messages"])
    ]
    return {**body, "messages": messages}
