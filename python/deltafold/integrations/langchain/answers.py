"""Answers as chunks, messages and content-block events of langchain-core.

In: batches of deltas, and the message that they fold to.  Out: event dicts, `ChatGenerationChunk`s,
an `AIMessage`.

Laws: the encoder of the target `langchain` writes the events, and chunks and messages are made of
them. Text is a string as long as an answer has only text and calls; from the first other block on,
the content is a list of standard blocks with indexes. The end has the counts, the finish reason and
the outline of the parts, the provider's id of the answer, and log probabilities in the form of
langchain-openai. The id of a message is that of the framework's run, because LangGraph replaces a
message by a later one with its id, and some servers repeat their ids. Whether a call may run is
known at the end of the answer: blocks finish then, from the first call on, and a call that may not
run is an `invalid_tool_call` with the reason. This takes back the calls before a fallback too, so
that the encoder keeps them.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeAlias, cast

from langchain_core.language_models.chat_model_stream import ChatModelStream
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGenerationChunk

from deltafold._core import DeltaBatch, Encoder, MessageDelta
from deltafold.integrations.carried import MEMBER
from deltafold.integrations.outlines import is_plain, outline_of
from deltafold.integrations.token_logprobs import entries_of
from deltafold.message.messages import Message

Event: TypeAlias = dict[str, Any]

_END: Final = "message-finish"
_FINISH: Final = "content-block-finish"

_NOT_RUNNABLE: Final = '"}]"}] not run: '
"""Text behind the arguments of a call that may not run, before the reason.

langchain-core completes the arguments of merged chunks, and would run half a call and a refused
one. It gives up on a bracket that closes nothing: behind these characters there is one, whether the
arguments end in a string, an array or an object, or are whole.
Source: `parse_partial_json` of langchain-core 1.7.
"""
_CALLS: Final = frozenset({"tool_call", "invalid_tool_call"})
_PIECES: Final = frozenset(
    {"message-start", "content-block-start", "content-block-delta", "content-block-finish"}
)


class Events:
    """The content-block events of one answer.

    Args:
        message_id: the id of the message; "" lets the framework choose it.
    """

    def __init__(self, message_id: str = "") -> None:
        self._message_id = message_id
        self._encoder = Encoder("langchain", as_bytes=False, declined_calls="keep")
        self._has_started = False
        self._last: Event | None = None
        self._finished: list[Event] = []

    def feed(self, deltas: DeltaBatch | MessageDelta) -> list[Event]:
        """Return the events of deltas; the last event of a whole answer is held back."""
        events: list[Event] = self._encoder.feed(deltas)
        if self._encoder.finished:
            events = self._without_end(events)
        if self._finished or any(_finishes_call(event) for event in events):
            events = self._without_finishes(events)
        if events and not self._has_started:
            self._has_started = True
            events[0]["id"] = self._message_id
        return events

    def _without_end(self, events: list[Event]) -> list[Event]:
        if self._encoder.failed:
            # A failure raises, and an end by an error is said by the last event.
            return [event for event in events if event.get("event") in _PIECES]
        if events and events[-1]["event"] == _END:
            self._last = events.pop()
        return events

    def _without_finishes(self, events: list[Event]) -> list[Event]:
        """Hold back the ends of blocks from the first call on; the order of the ends is kept."""
        others: list[Event] = []
        for event in events:
            held = self._finished or _finishes_call(event)
            (self._finished if held and event["event"] == _FINISH else others).append(event)
        return others

    def end(self, message: Message) -> list[Event]:
        """Return the last events: ends of blocks, and the end with the facts of the message."""
        reasons = message.not_runnable
        texts = {call.tool_call_id: call.raw_args_text for call in message.tool_calls}
        for event in self._finished:
            block = event["content"]
            reason = reasons.get(block.get("id")) if block["type"] in _CALLS else None
            if reason is not None:
                invalid = {"type": "invalid_tool_call", "args": texts[block["id"]]}
                event["content"] = {**block, **invalid, "error": reason}
        return [*self._finished, *self._ended(message)]

    def _ended(self, message: Message) -> list[Event]:
        last = self._last or {"event": _END, "metadata": _finish(message)}
        metadata: dict[str, Any] = last.setdefault("metadata", {})
        metadata |= facts_of(message)
        return [last] if self._has_started else [self._start(message), last]

    def _start(self, message: Message) -> Event:
        """Return the first event of an answer that an error ended before any content."""
        metadata = {"provider": MEMBER, "model": message.meta.model_id or ""}
        return {
            "event": "message-start",
            "role": "ai",
            "id": self._message_id,
            "metadata": metadata,
        }


def _finishes_call(event: Event) -> bool:
    return event["event"] == _FINISH and event["content"]["type"] in _CALLS


def _finish(message: Message) -> dict[str, Any]:
    reason = message.meta.finish_reason
    return {} if reason is None else {"finish_reason": reason.value}


def facts_of(message: Message) -> dict[str, Any]:
    """Return the response metadata of an answer, beside its finish reason and its model."""
    meta = message.meta
    facts: dict[str, Any] = {**(meta.details or {})}
    if meta.raw_finish_reason is not None:
        facts["raw_finish_reason"] = meta.raw_finish_reason
    if meta.response_id:
        facts["id"] = meta.response_id
    if meta.warnings:
        facts["warnings"] = meta.warnings
    logprobs = entries_of(message)
    if logprobs:
        facts["logprobs"] = {"content": logprobs}
    outline = outline_of(message)
    if not is_plain(outline):
        facts[MEMBER] = outline
    return facts


def message_of(events: Iterable[Event]) -> AIMessage:
    """Return the message of all events of an answer.

    The content of an answer of text and calls alone is a string, as in the framework's own models.
    """
    stream = ChatModelStream()
    for event in events:
        stream.dispatch(cast("Any", event))
    message = stream.output
    blocks = cast("list[dict[str, Any]]", message.content or [])
    others = [block for block in blocks if block["type"] not in _CALLS]
    if all(block["type"] == "text" for block in others):
        message.content = "".join(block["text"] for block in others)
        del message.response_metadata["output_version"]
    else:
        message.content = cast("Any", others)
        message.response_metadata.pop("output_version", None)
    return message


class Chunks:
    """The chunks of one answer."""

    def __init__(self) -> None:
        self._lists = False
        self._kinds: dict[int, str] = {}
        self._head: dict[str, Any] = {}

    def of(self, events: Iterable[Event]) -> Iterator[ChatGenerationChunk]:
        """Yield the chunks of events."""
        for event in events:
            match event["event"]:
                case "content-block-delta":
                    chunk = self._delta(event["index"], event["delta"])
                case "content-block-start":
                    chunk = self._start(event["index"], event["content"])
                case "content-block-finish":
                    chunk = self._finish(event["index"], event["content"])
                case "message-start":
                    self._head = _start_facts(event)
                    continue
                case _:
                    chunk = _end(event)
            if chunk is not None:
                if self._head:
                    chunk = self._with_head(chunk)
                yield generation(chunk)

    def _with_head(self, chunk: AIMessageChunk) -> AIMessageChunk:
        """Return the first chunk, which has the model of the answer.

        A chunk of its own would have text for its content, and begin a list with that text.
        """
        facts = {**self._head, **chunk.response_metadata}
        self._head = {}
        return chunk.model_copy(update={"response_metadata": facts})

    def _delta(self, index: int, delta: Event) -> AIMessageChunk | None:
        if delta["type"] == "text-delta":
            text = delta["text"]
            return _plain(text if not self._lists else [_text(text, index)])
        if delta["type"] == "reasoning-delta":
            block = {"type": "reasoning", "reasoning": delta["reasoning"], "index": index}
            return _plain([block])
        return _call_chunk(index, None, None, delta["args"])

    def _start(self, index: int, block: Event) -> AIMessageChunk | None:
        self._kinds[index] = block["type"]
        if block["type"] == "tool_call_chunk":
            return _call_chunk(index, block["id"], block["name"], "")
        if block["type"] != "text":
            self._lists = True
        return None

    def _finish(self, index: int, block: Event) -> AIMessageChunk | None:
        kind = self._kinds.get(index)
        if block["type"] == "invalid_tool_call":
            return _call_chunk(index, None, None, f"{_NOT_RUNNABLE}{block['error']}")
        if kind == "tool_call_chunk" or not self._lists:
            return None
        if kind not in {"text", "reasoning"}:
            return AIMessageChunk(content=[{**block, "index": index}])
        more = {name: block[name] for name in ("annotations", "extras") if name in block}
        if not more:
            return None
        empty = {"type": kind, kind: "", "index": index}
        return AIMessageChunk(content=[{**empty, **more}])


def sent_arguments(args: str) -> str:
    """Return the arguments of an invalid call as the provider sent them."""
    return args.partition(_NOT_RUNNABLE)[0]


def generation(chunk: AIMessageChunk) -> ChatGenerationChunk:
    """Return a chunk as the framework's generation, without another validation of the chunk."""
    text = chunk.content if isinstance(chunk.content, str) else chunk.text
    return ChatGenerationChunk.model_construct(
        message=chunk, text=str(text), generation_info=None, type="ChatGenerationChunk"
    )


def _text(text: str, index: int) -> dict[str, Any]:
    return {"type": "text", "text": text, "index": index}


def _call_chunk(index: int, call_id: str | None, name: str | None, args: str) -> AIMessageChunk:
    piece = tool_call_chunk(name=name, args=args, id=call_id, index=index)
    return AIMessageChunk(content="", tool_call_chunks=[piece])


def _plain(content: Any) -> AIMessageChunk:
    """Make a chunk that has content alone; the framework's validators have nothing to do on it."""
    return AIMessageChunk.model_construct(
        _PLAIN_FIELDS,
        content=content,
        additional_kwargs={},
        response_metadata={},
        type="AIMessageChunk",
        name=None,
        id=None,
        tool_calls=[],
        invalid_tool_calls=[],
        tool_call_chunks=[],
        usage_metadata=None,
        chunk_position=None,
    )


_PLAIN_FIELDS: Final = {"content"}


def _start_facts(event: Event) -> dict[str, Any]:
    metadata: Event = event.get("metadata") or {}
    facts = {"model_name": metadata.get("model"), "model_provider": metadata.get("provider")}
    return {name: value for name, value in facts.items() if value}


def _end(event: Event) -> AIMessageChunk:
    return AIMessageChunk(
        content="",
        usage_metadata=event.get("usage"),
        response_metadata=event.get("metadata") or {},
        chunk_position="last",
    )
