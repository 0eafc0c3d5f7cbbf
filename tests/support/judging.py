"""Comparison of the answer that a client reads from a transcoded stream with the source's message.

In: a recording (../shared/corpus) or a fixture, written as a target's stream, and the `Answer` that
the target's own client accumulated from it.  Out: the fields that differ.

Laws: text, thinking, complete calls, finish reason and both token counts are equal, except where a
note of the encoder names a loss of the target. A failure of the source makes the client
raise with its message. Provider parts that source and target share are not
compared.
Source of the words: docs/protocols/encoding.md#finish-reasons.
"""

import functools
import json
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias, cast

import deltafold
from any_name import AnyName
from corpus import CORPUS, FIXTURES
from deltafold.message.fallbacks import calls_before_fallback, last_boundary

Call: TypeAlias = tuple[str | None, str, object]

# Ids that a recording lacks are made from the id of the run.
RUN = "judged"
# Targets whose calls wait for what follows them, or that can say which model made them.
HELD_CALLS = {"anthropic-messages", "gemini", "ollama"}
# The word of each target for a finish reason of the contract.
WORDS: dict[str, dict[str, str]] = {
    "openai-chat": {
        "stop": "stop",
        "length": "length",
        "tool_calls": "tool_calls",
        "content_filter": "content_filter",
        "refusal": "stop",
        "pause": "length",
        "other": "stop",
    },
    "anthropic-messages": {
        "stop": "end_turn",
        "length": "max_tokens",
        "tool_calls": "tool_use",
        "content_filter": "refusal",
        "refusal": "refusal",
        "pause": "pause_turn",
        "other": "end_turn",
    },
    "openai-responses": {
        "stop": "completed",
        "length": "max_output_tokens",
        "tool_calls": "completed",
        "content_filter": "content_filter",
        "refusal": "completed",
        "pause": "max_messages",
        "other": "completed",
    },
    "gemini": {
        "stop": "STOP",
        "length": "MAX_TOKENS",
        "tool_calls": "STOP",
        "content_filter": "SAFETY",
        "refusal": "SAFETY",
        "pause": "OTHER",
        "other": "OTHER",
    },
    "ollama": {
        "stop": "stop",
        "length": "length",
        "tool_calls": "stop",
        "content_filter": "stop",
        "refusal": "stop",
        "pause": "length",
        "other": "stop",
    },
    "bedrock-converse": {
        "stop": "end_turn",
        "length": "max_tokens",
        "tool_calls": "tool_use",
        "content_filter": "content_filtered",
        "refusal": "content_filtered",
        "pause": "max_tokens",
        "other": "end_turn",
    },
    "ai-sdk": {
        "stop": "stop",
        "length": "length",
        "tool_calls": "tool-calls",
        "content_filter": "content-filter",
        "refusal": "content-filter",
        "pause": "other",
        "other": "other",
    },
}
# Words that a target has beside those: they are written where the source said the same word.
OWN_WORDS: dict[str, frozenset[str]] = {
    "anthropic-messages": frozenset(
        {"compaction", "stop_sequence", "model_context_window_exceeded"}
    ),
    "bedrock-converse": frozenset(
        {"stop_sequence", "guardrail_intervened", "model_context_window_exceeded"}
    ),
    "gemini": frozenset(
        {
            "BLOCKLIST",
            "CONTINUATION",
            "IMAGE_SAFETY",
            "LANGUAGE",
            "MALFORMED_FUNCTION_CALL",
            "MODEL_ARMOR",
            "NO_IMAGE",
            "PROHIBITED_CONTENT",
            "RECITATION",
            "SPII",
            "TOO_MANY_TOOL_CALLS",
            "UNEXPECTED_TOOL_CALL",
        }
    ),
    "ollama": frozenset({"load", "unload"}),
}
# Words of a target for an answer that went wrong: its client does not raise.
FAILED_WORDS: dict[str, frozenset[str]] = {
    "ag-ui": frozenset({"cancelled"}),
    "ai-sdk": frozenset({"error"}),
    "bedrock-converse": frozenset({"malformed_model_output", "malformed_tool_use"}),
    "gemini": frozenset({"MALFORMED_FUNCTION_CALL", "OTHER", "SAFETY"}),
}
# The AG-UI writer writes the word of the contract, or an outcome that stands for it.
WORDS["ag-ui"] = {word: word for word in WORDS["ai-sdk"]}
# Targets whose free-text calls carry the text itself: others carry an object with the text.
FREE_TEXT = frozenset({"ag-ui", "ai-sdk"})
# Targets whose calls carry an object: others carry the text, be it JSON or not.
OBJECTS = frozenset({"anthropic-messages (whole)", "gemini", "ollama"})
# A whole message has objects where its stream carries the text.
WORDS["anthropic-messages (whole)"] = WORDS["anthropic-messages"]
OWN_WORDS["anthropic-messages (whole)"] = OWN_WORDS["anthropic-messages"]
# Targets that mark arguments other than an object. Such a call cannot be run.
REFUSING = frozenset({"ai-sdk"})
# Targets whose clients keep no ids of calls.
WITHOUT_IDS = frozenset({"ollama"})


@dataclass
class Answer:
    """Content that a client accumulated; a call is its id, name and arguments."""

    text: str = ""
    thinking: str = ""
    calls: list[Call] = field(default_factory=list[Call])
    finish: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None


class Stream(NamedTuple):
    """A recording, and its bytes in a target's protocol."""

    name: str
    source: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    notes: frozenset[str]
    target: str
    whole: bool = False


class Source(NamedTuple):
    """A recording, its protocol, its body and the message that it decodes to."""

    name: str
    dialect: AnyName
    body: bytes
    message: deltafold.Message
    failed: bool


def source_of(name: str, dialect: AnyName, body: bytes) -> Source:
    """Return a body with the message that it decodes to."""
    fold = deltafold.Fold(dialect, run_id=RUN)
    fold.feed(body)
    fold.close()
    return Source(name, dialect, body, fold.snapshot(), fold.status == "error")


@functools.cache
def recordings() -> tuple[Source, ...]:
    """Return all recordings of known dialects."""
    known = frozenset(deltafold.dialect_names())
    files: dict[str, str] = {}
    with (CORPUS / "manifest.jsonl").open(encoding="utf-8") as lines:
        for line in map(json.loads, lines):
            files[line["id"]] = line["file"]
    found: list[Source] = []
    with (CORPUS / "expected.jsonl").open(encoding="utf-8") as lines:
        for line in map(json.loads, lines):
            readers = (line["dialect"], line.get("reader"))
            dialect = next((name for name in readers if name in known), None)
            if dialect is not None and line["terminal"] != "unsupported":
                body = (CORPUS / files[line["id"]]).read_bytes()
                found.append(source_of(line["id"], dialect, body))
    return tuple(found)


@functools.cache
def fixtures() -> tuple[Source, ...]:
    """Return all fixtures: the odd and the broken streams that are rare among recordings."""
    return tuple(
        source_of(
            f"{wire.parent.parent.name}/{wire.parent.name}", wire.parents[1].name, wire.read_bytes()
        )
        for wire in sorted(FIXTURES.glob("*/*/wire.*"))
    )


@functools.cache
def cut_recordings() -> tuple[Source, ...]:
    """Return every tenth recording without its second half: all of them fail."""
    halves = (
        source_of(f"{one.name} (cut)", one.dialect, one.body[: len(one.body) // 2])
        for one in recordings()[::10]
    )
    return tuple(half for half in halves if half.failed)


@functools.cache
def everything() -> tuple[Source, ...]:
    """Return all recordings, all fixtures and the recordings that were cut."""
    return (*recordings(), *fixtures(), *cut_recordings())


def untranscoded(source: Source) -> Stream:
    """Return a recording as it is, for the client of its own protocol."""
    name = f"{source.name} (as it is)"
    return Stream(name, source.dialect, 200, {}, source.body, frozenset(), source.dialect)


def written(source: Source, target: AnyName) -> Stream:
    """Return a recording in a target's protocol."""
    transcoder = deltafold.Transcoder(deltafold.Decoder(source.dialect, run_id=RUN), target)
    body = transcoder.feed(source.body) + transcoder.close()
    notes = frozenset(note["code"] for note in transcoder.notes)
    status = transcoder.status or 200
    headers = transcoder.headers or {}
    return Stream(source.name, source.dialect, status, headers, body, notes, target)


def written_whole(source: Source, target: AnyName) -> Stream:
    """Return the answer of a recording without streaming, in a target's protocol."""
    decoder = deltafold.Decoder(source.dialect, run_id=RUN)
    answer = deltafold.transcode_response(source.body, decoder, target)
    notes = frozenset(note["code"] for note in answer.notes)
    facts = (answer.status, answer.headers, answer.body, notes)
    return Stream(source.name, source.dialect, *facts, target, whole=True)


def parsed(arguments: str) -> object:
    """Return arguments as JSON, or as the text that they are."""
    try:
        return json.loads(arguments) if arguments.strip() else {}
    except ValueError:
        return arguments


def plain(text: str) -> str:
    """Return a text without white space: parts of thinking are joined in different ways."""
    return "".join(text.split())


def wanted_calls(source: Source, target: str) -> list[Call]:
    """Return the complete calls of a message as a client of the target reads them."""
    calls: list[Call] = []
    for call in source.message.tool_calls:
        # No target can carry a call without a name.
        if call.incomplete or not call.tool_name:
            continue
        arguments: object = call.arguments
        if call.input_format == "text":
            text = call.raw_args_text
            arguments = parsed(text) if target in FREE_TEXT else {"input": text}
        elif arguments is None:
            if target in OBJECTS:
                continue
            arguments = parsed(call.raw_args_text)
        call_id = None if target in WITHOUT_IDS else call.tool_call_id
        calls.append((call_id, call.tool_name, arguments))
    return calls


def object_of(arguments: object) -> object:
    """Return arguments by the contract: nothing and null are `{}`, a string may hold the object."""
    if arguments is None:
        return {}
    if isinstance(arguments, str):
        inner: object = parsed(arguments)
        if isinstance(inner, dict):
            return cast("object", inner)
    return arguments


def wanted_thinking(source: Source, stream: Stream) -> str:
    """Return the thinking of a message as a client of the target reads it."""
    parts = source.message.parts
    boundary = last_boundary(parts)
    if boundary is not None and stream.whole and stream.target != boundary.dialect:
        # A whole answer has the thinking of the model that served it.
        parts = parts[boundary.index :]
    return "".join(part.text for part in parts if part.kind == "thinking")


def filters_calls(source: Source, target: str, *, whole: bool) -> bool:
    """Return whether a call of a model that declined was written, so that a filter ends the answer.

    A whole answer leaves such a call out.
    """
    if whole or target in HELD_CALLS:
        return False
    return bool(calls_before_fallback(source.message.parts))


def wanted_finishes(source: Source, target: str, stream: Stream) -> set[str]:
    """Return the words that a client of the target may read for the finish reason."""
    if not filters_calls(source, stream.target, whole=stream.whole):
        return words_of_end(source, target)
    return {WORDS.get(target, {}).get("content_filter", "content_filter")}


def words_of_end(source: Source, target: str) -> set[str]:
    """Return the words of the target for the finish reason of the message."""
    meta = source.message.meta
    reason = meta.finish_reason.value if meta.finish_reason else "stop"
    if target == "langchain":
        raw = {meta.raw_finish_reason} if meta.raw_finish_reason else set[str]()
        return {reason, *raw, *({"stop"} if reason == "tool_calls" else ())}
    words = WORDS[target]
    calls = bool(wanted_calls(source, target))
    if target in REFUSING:
        named = (call for call in source.message.tool_calls if call.tool_name)
        calls = any(call.arguments is not None for call in named)
    found = {words[reason]} if reason in words else set[str]()
    if reason == "tool_calls" and not calls:
        # A part of the provider that waits for the client counts only in its own protocol.
        found = {words["stop"]}
        if any(part.kind == "provider" for part in source.message.parts):
            found.add(words["tool_calls"])
    if reason == "stop" and calls:
        found.add(words["tool_calls"])
    if target == "openai-responses" and meta.raw_finish_reason == "completed":
        # A request for approval among the items pauses an answer that completed.
        found = {"completed"}
    if meta.raw_finish_reason in OWN_WORDS.get(target, frozenset()):
        found.add(meta.raw_finish_reason)
    if target == "gemini" and any(
        call.arguments is None and call.input_format == "json" for call in source.message.tool_calls
    ):
        found.add("MALFORMED_FUNCTION_CALL")
    return found


def failure_of(source: Source) -> str:
    """Return the message of a source's failure; a finish reason has none."""
    decoder = deltafold.Decoder(source.dialect, run_id=RUN)
    deltas = [*decoder.feed(source.body), *decoder.close()]
    return next((one.error_message or "" for one in deltas if one.kind == "error"), "")


def says(said: str, reason: str) -> bool:
    """Return whether an exception tells the reason, as text or inside of JSON."""
    return reason in said or json.dumps(reason, ensure_ascii=False)[1:-1] in said


def must_raise(source: Source) -> bool:
    """Return whether a client must raise: failures, and reasons without an answer."""
    reason = source.message.meta.finish_reason
    if source.failed or reason is None:
        return source.failed
    return reason.value == "error" or (reason.value == "other" and not source.message.parts)


def may_raise(source: Source, target: str, *, whole: bool) -> bool:
    """Return whether a client raises: AG-UI has no word for an answer that a filter ended."""
    filtered = target == "ag-ui" and filters_calls(source, target, whole=whole)
    return filtered or must_raise(source)


def may_end(target: str, answer: Answer) -> bool:
    """Return whether the target has a finish reason for what went wrong."""
    return answer.finish in FAILED_WORDS.get(target, frozenset())


def differences(
    source: Source, target: str, stream: Stream, answer: Answer
) -> Iterator[tuple[str, object, object]]:
    """Yield field, wanted and given value of everything that differs."""
    message = source.message
    if must_raise(source) and not may_end(target, answer):
        yield "terminal", "error", answer.finish
        return
    if answer.text != message.text:
        yield "text", message.text, answer.text
    thinking = wanted_thinking(source, stream)
    if plain(answer.thinking) != plain(thinking):
        yield "thinking", plain(thinking), plain(answer.thinking)
    cut = {call.tool_call_id for call in message.tool_calls if call.incomplete}
    parts = (part.block for part in message.parts if part.kind == "provider")
    cut |= {str(block[key]) for block in parts for key in ("id", "call_id") if key in block}
    given = [(*call[:2], object_of(call[2])) for call in answer.calls if call[0] not in cut]
    calls = wanted_calls(source, target)
    if given != calls:
        yield "calls", calls, given
    if must_raise(source):
        return
    finishes = wanted_finishes(source, target, stream)
    if answer.finish not in finishes:
        yield "finish", sorted(finishes), answer.finish
    usage = message.meta.usage
    for name in ("input_tokens", "output_tokens"):
        want = getattr(usage, name) if usage else None
        have = getattr(answer, name)
        # An unknown count is written as 0, or both are left out; either has a note.
        unknown = usage is None or usage.input_tokens is None or usage.output_tokens is None
        if want != have and not (unknown and (have in {0, None} or "usage" in stream.notes)):
            yield name, want, have


class Verdict(NamedTuple):
    """A recording on which a client and deltafold disagree, by field."""

    name: str
    source: str
    field: str
    wanted: object
    given: object


def verdicts(
    target: str,
    read: Callable[[Stream], Answer],
    limits: Container[str] = (),
    *,
    whole: bool = False,
    every: int = 1,
) -> tuple[int, list[Verdict]]:
    """Let a client read every recording and fixture; return their number and the disagreements.

    Args:
        target: the protocol that the client reads.
        read: the client.
        limits: streams that the client must refuse although they are what the target says.
        whole: let it read whole answers instead of streams.
        every: read each so-manieth of them.
    """
    write = written_whole if whole else written
    form = f"{target} (whole)" if whole and f"{target} (whole)" in WORDS else target
    found: list[Verdict] = []
    sources = everything()[::every]
    for source in sources:
        stream = write(source, target)
        try:
            answer = read(stream)
        except Exception as error:  # noqa: BLE001 - whatever a client raises is its answer
            said = f"{type(error).__name__}: {error}"
            if may_raise(source, target, whole=whole):
                if not says(said, reason := failure_of(source)):
                    found.append(Verdict(source.name, source.dialect, "message", reason, said))
            elif not (source.name in limits or (not whole and refused(source, target, read))):
                found.append(Verdict(source.name, source.dialect, "terminal", "an answer", said))
        else:
            found.extend(
                Verdict(source.name, source.dialect, *difference)
                for difference in differences(source, form, stream, answer)
            )
            if source.name in limits:
                found.append(Verdict(source.name, source.dialect, "limit", "a refusal", answer))
    return len(sources), found


def refused(source: Source, target: str, read: Callable[[Stream], Answer]) -> bool:
    """Return whether the client refuses the source itself: a part of it that is passed on."""
    if source.dialect != target:
        return False
    try:
        read(untranscoded(source))
    except Exception:  # noqa: BLE001 - whatever a client raises is its answer
        return True
    return False


def shown(found: list[Verdict]) -> str:
    """Return disagreements as text, at most 40."""
    lines = [
        f"{one.name} ({one.field}): want {str(one.wanted)[:150]}, client {str(one.given)[:150]}"
        for one in found[:40]
    ]
    return "\n".join([f"{len(found)} disagreements", *lines])
