"""The checks of llm-comply on what the encoders write.

In: every recording and fixture that does not fail (`judging`), as the streams and whole bodies of
three providers.  Out: the findings of llm-comply.

Laws: a check of counts is asked only where the source has counts, and a check of the model only
where the source names one. The JSON Schemas of Messages and of Responses are not asked: they
require members of the request, which an encoder does not know, and Responses as OpenAI sends them
do not conform to them either.
"""

import importlib.metadata
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import llm_comply
from llm_comply import validators
from llm_comply._vendor.sse import EventSource
from llm_comply.schema import TERMINAL_EVENTS, SpecLoader
from llm_comply.test_case import ValidatorContext

import deltafold
import judging

Check = Callable[[Any, ValidatorContext], list[str]]
CHECKS: dict[str, tuple[Check, ...]] = {
    "openai-chat": (
        validators.streaming_has_events,
        validators.chat_id_has_prefix("chatcmpl-"),
        validators.chat_streaming_all_have_finish_reason,
        validators.chat_streaming_has_done,
        validators.chat_streaming_has_finish,
        validators.chat_streaming_has_usage,
    ),
    "openai-responses": (
        validators.streaming_has_events,
        validators.has_response_id,
        validators.streaming_has_terminal,
        validators.streaming_has_usage,
        validators.streaming_lifecycle_order,
        validators.streaming_sequence_numbers,
    ),
    "anthropic-messages": (
        validators.streaming_has_events,
        validators.anth_streaming_has_usage,
        validators.anth_streaming_lifecycle,
    ),
    "gemini": (
        validators.streaming_has_events,
        validators.google_streaming_has_finish,
        validators.google_streaming_has_model_version,
        validators.google_streaming_has_response_id,
        validators.google_streaming_has_usage,
    ),
}
COUNTS = frozenset(
    {
        validators.chat_streaming_has_usage,
        validators.streaming_has_usage,
        validators.anth_streaming_has_usage,
        validators.google_streaming_has_usage,
    }
)


def events_of(body: bytes) -> tuple[Any, list[dict[str, Any]]]:
    """Return the final response and the events of a body, as llm-comply's own client does."""
    final: Any = None
    events: list[dict[str, Any]] = []
    for event in EventSource(iter(body.decode().split("\n"))):
        if event.data == "[DONE]":
            events.append({"type": "[DONE]", "data": "[DONE]"})
            continue
        data = json.loads(event.data)
        name = data.get("type", event.event)
        events.append({"type": name, "data": data})
        if name in TERMINAL_EVENTS:
            final = data["response"]
    return final, events


def applies(check: Check, source: judging.Source) -> bool:
    """Return whether the source has what a check asks for."""
    meta = source.message.meta
    if check in COUNTS:
        usage = meta.usage
        return bool(usage and None not in {usage.input_tokens, usage.output_tokens})
    if check is validators.google_streaming_has_model_version:
        return bool(meta.model_id)
    return True


def stream_findings(source: judging.Source, target: str) -> Iterator[str]:
    """Yield what the checks of a target find in a stream."""
    final, events = events_of(judging.written(source, target).body)
    context = ValidatorContext(streaming=True, sse_events=events)
    for check in CHECKS[target]:
        if applies(check, source):
            yield from check(final, context)


def body_findings(source: judging.Source, spec: SpecLoader) -> Iterator[str]:
    """Yield what the schema of a Chat completion finds in a whole body."""
    # Its schema has calls of functions only.
    if all(call.input_format == "json" for call in source.message.tool_calls):
        body = json.loads(deltafold.encode_message(source.message, "openai-chat").body)
        yield from spec.validate(body, "CreateChatCompletionResponse")


def section(results: dict[str, tuple[int, list[judging.Verdict]]]) -> str:
    """Return the section of docs/judges.md."""
    rows = (
        f"| {target} | {streams} | {len(CHECKS[target])} | {len(found)} |"
        for target, (streams, found) in results.items()
    )
    return (
        f"\n## llm-comply {importlib.metadata.version('llm-comply')}\n\n"
        "Its checks of a provider's answers, on the streams without a failure; for Chat also its\n"
        "JSON Schema, on whole bodies. Its schemas of Messages and of Responses are left out:\n"
        "they require members of the request, which OpenAI's own streams lack too.\n\n"
        "| target | streams | checks | findings |\n|---|---:|---:|---:|\n" + "\n".join(rows) + "\n"
    )


def findings(target: str) -> tuple[int, list[judging.Verdict]]:
    """Return the number of streams of a target and everything that llm-comply finds in them."""
    spec = SpecLoader(str(Path(llm_comply.__file__).parent / "specs/openai_chat.json"))
    found: list[judging.Verdict] = []
    answers = [source for source in judging.everything() if not judging.must_raise(source)]
    for source in answers:
        messages = list(stream_findings(source, target))
        if target == "openai-chat":
            messages.extend(body_findings(source, spec))
        found.extend(
            judging.Verdict(source.name, source.dialect, "llm-comply", "no finding", message)
            for message in messages
        )
    return len(answers), found
