"""Comparison of deltafold with the official clients and with the golden cases of llm-babel.

In: the recordings (../shared/corpus or DELTAFOLD_CORPUS), each answered by a loopback server to the
client of its own protocol; and the golden cases of llm-babel (`golden_cases`).  Out: docs/sdks.md:
how many are equal in text, calls and usage, and every difference by stream, field and rule.

Run by `make check NAME=sdks`, in an environment of its own; the clients' versions stand in the
report.
"""

import collections
import importlib.metadata
import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import golden_cases

import deltafold
from deltafold.testing import Recording, ReplayServer

CORPUS = Path(os.environ.get("DELTAFOLD_CORPUS", "../shared/corpus"))
# Characters of a value that the report shows.
CELL = 60
MESSAGES: list[Any] = [{"role": "user", "content": "?"}]


@dataclass
class Answer:
    """What a reader accumulated: text, calls as (name, arguments text or object), counts."""

    text: str = ""
    calls: list[tuple[str, object]] = field(default_factory=list[tuple[str, object]])
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    provider_parts: list[str] = field(default_factory=list[str])
    incomplete: bool = False
    warnings: list[str] = field(default_factory=list[str])


def parsed(arguments: object) -> object:
    """Return arguments as the object that they are, or the text where they are none."""
    if isinstance(arguments, str):
        try:
            return json.loads(arguments) if arguments else {}
        except ValueError:
            return arguments
    return arguments if arguments is not None else {}


def ours(dialect: str, body: bytes) -> Answer:
    """Fold the body."""
    fold = deltafold.Fold(dialect)
    fold.feed(body)
    fold.close()
    message = fold.snapshot()
    usage = message.meta.usage
    return Answer(
        message.text,
        [(call.tool_name, parsed(call.raw_args_text)) for call in message.tool_calls],
        usage.input_tokens if usage else None,
        usage.output_tokens if usage else None,
        (usage.cache_read_tokens or 0) if usage else 0,
        (usage.reasoning_tokens or 0) if usage else 0,
        [str(p.block.get("type")) for p in message.parts if p.kind == "provider"],
        any(call.incomplete for call in message.tool_calls),
        [str(warning["code"]) for warning in message.meta.warnings],
    )


def openai_chat(url: str) -> Answer:
    """`chat.completions.create(stream=True)`, choice 0 accumulated as its documentation shows."""
    import openai

    client = openai.OpenAI(base_url=url, api_key="key", max_retries=0)
    answer, calls = Answer(), dict[int, list[str]]()
    for chunk in client.chat.completions.create(model="m", messages=MESSAGES, stream=True):
        for choice in (c for c in chunk.choices or () if c.index == 0):
            delta = choice.delta
            answer.text += (delta.content or "") if isinstance(delta.content, str) else ""
            answer.text += delta.refusal or ""
            for call in delta.tool_calls or ():
                entry = calls.setdefault(call.index, ["", ""])
                if call.function:
                    entry[0] = entry[0] or call.function.name or ""
                    entry[1] += call.function.arguments or ""
        if chunk.usage:
            answer.input_tokens = chunk.usage.prompt_tokens
            answer.output_tokens = chunk.usage.completion_tokens
    answer.calls = [(name, parsed(arguments)) for _, (name, arguments) in sorted(calls.items())]
    return answer


def openai_responses(url: str) -> Answer:
    """`responses.stream()`, its final response."""
    import openai

    client = openai.OpenAI(base_url=url, api_key="key", max_retries=0)
    with client.responses.stream(model="m", input="?") as stream:
        response = stream.get_final_response()
    calls: list[tuple[str, object]] = [
        (item.name, parsed(item.arguments if item.type == "function_call" else item.input))
        for item in response.output
        if item.type in ("function_call", "custom_tool_call")
    ]
    text = "".join(
        part.text if part.type == "output_text" else part.refusal
        for item in response.output
        if item.type == "message"
        for part in item.content
    )
    usage = response.usage
    return Answer(
        text, calls, usage.input_tokens if usage else None, usage.output_tokens if usage else None
    )


def anthropic_messages(url: str) -> Answer:
    """`messages.stream()`, its final message."""
    import anthropic

    client = anthropic.Anthropic(base_url=url, api_key="key", max_retries=0)
    with client.messages.stream(model="m", max_tokens=1, messages=MESSAGES) as stream:
        message = stream.get_final_message()
    usage = message.usage
    cached = (usage.cache_read_input_tokens or 0) + (usage.cache_creation_input_tokens or 0)
    return Answer(
        "".join(block.text for block in message.content if block.type == "text"),
        [(block.name, block.input) for block in message.content if block.type == "tool_use"],
        usage.input_tokens + cached,
        usage.output_tokens,
    )


def gemini(url: str) -> Answer:
    """`models.generate_content_stream`, chunks accumulated."""
    from google import genai

    client = genai.Client(api_key="key", http_options=genai.types.HttpOptions(base_url=url))
    answer = Answer()
    thoughts = candidates = prompt = tools = None
    for chunk in client.models.generate_content_stream(model="m", contents="?"):
        for candidate in chunk.candidates or ():
            for part in (candidate.content.parts if candidate.content else None) or ():
                if part.text and not part.thought:
                    answer.text += part.text
                if part.function_call:
                    call = part.function_call
                    answer.calls.append((call.name or "", call.args or {}))
        if usage := chunk.usage_metadata:
            prompt = usage.prompt_token_count or prompt
            tools = usage.tool_use_prompt_token_count or tools
            candidates = usage.candidates_token_count or candidates
            thoughts = usage.thoughts_token_count or thoughts
    if prompt is not None:
        answer.input_tokens = prompt + (tools or 0)
    if candidates is not None or thoughts is not None:
        answer.output_tokens = (candidates or 0) + (thoughts or 0)
    return answer


def ollama(url: str) -> Answer:
    """`Client.chat(stream=True)`, lines accumulated."""
    import ollama as sdk

    answer = Answer()
    for line in sdk.Client(host=url).chat(model="m", messages=MESSAGES, stream=True):
        answer.text += line.message.content or ""
        for call in line.message.tool_calls or ():
            answer.calls.append((call.function.name, dict(call.function.arguments)))
        answer.input_tokens = line.prompt_eval_count or answer.input_tokens
        answer.output_tokens = line.eval_count or answer.output_tokens
    return answer


def cohere_chat(url: str) -> Answer:
    """`ClientV2.chat_stream`, events accumulated."""
    import cohere

    answer, calls = Answer(), dict[int, list[str]]()
    client = cohere.ClientV2(api_key="key", base_url=url)
    for event in client.chat_stream(model="m", messages=MESSAGES):
        if event.type in ("content-start", "content-delta"):
            answer.text += event.delta.message.content.text or ""
        elif event.type == "tool-call-start":
            function = event.delta.message.tool_calls.function
            calls[event.index] = [function.name, function.arguments or ""]
        elif event.type == "tool-call-delta":
            calls[event.index][1] += event.delta.message.tool_calls.function.arguments or ""
        elif event.type == "message-end" and event.delta.usage and event.delta.usage.tokens:
            tokens = event.delta.usage.tokens
            answer.input_tokens = int(tokens.input_tokens or 0)
            answer.output_tokens = int(tokens.output_tokens or 0)
    answer.calls = [(name, parsed(arguments)) for _, (name, arguments) in sorted(calls.items())]
    return answer


def mistral(url: str) -> Answer:
    """`chat.stream`, events accumulated."""
    from mistralai.client import Mistral

    answer = Answer()
    client = Mistral(api_key="key", server_url=url)
    for event in client.chat.stream(model="m", messages=MESSAGES):
        for choice in event.data.choices:
            content = choice.delta.content
            if isinstance(content, str):
                answer.text += content
            else:
                answer.text += "".join(p.text for p in content or () if p.type == "text")
            for call in choice.delta.tool_calls or ():
                answer.calls.append((call.function.name, parsed(call.function.arguments)))
        if event.data.usage:
            answer.input_tokens = event.data.usage.prompt_tokens
            answer.output_tokens = event.data.usage.completion_tokens
    return answer


def bedrock_converse(url: str) -> Answer:
    """`converse_stream`, events accumulated."""
    import botocore.config
    import botocore.session

    client = botocore.session.get_session().create_client(
        "bedrock-runtime",
        region_name="us-east-1",
        endpoint_url=url,
        aws_access_key_id="key",
        aws_secret_access_key="secret",
        config=botocore.config.Config(retries={"max_attempts": 0}),
    )
    answer, calls = Answer(), dict[int, list[str]]()
    response = client.converse_stream(
        modelId="m", messages=[{"role": "user", "content": [{"text": "?"}]}]
    )
    for event in response["stream"]:
        if start := event.get("contentBlockStart", {}).get("start", {}).get("toolUse"):
            calls[event["contentBlockStart"]["contentBlockIndex"]] = [start["name"], ""]
        delta = event.get("contentBlockDelta", {}).get("delta", {})
        answer.text += delta.get("text", "")
        if "toolUse" in delta:
            calls[event["contentBlockDelta"]["contentBlockIndex"]][1] += delta["toolUse"]["input"]
        if usage := event.get("metadata", {}).get("usage"):
            cached = usage.get("cacheReadInputTokens", 0) + usage.get("cacheWriteInputTokens", 0)
            answer.input_tokens = usage["inputTokens"] + cached
            answer.output_tokens = usage["outputTokens"]
    answer.calls = [(name, parsed(arguments)) for _, (name, arguments) in sorted(calls.items())]
    return answer


CLIENTS: dict[str, tuple[str, Callable[[str], Answer], str]] = {
    "openai-chat": ("openai", openai_chat, "text/event-stream"),
    "openai-responses": ("openai", openai_responses, "text/event-stream"),
    "anthropic-messages": ("anthropic", anthropic_messages, "text/event-stream"),
    "gemini": ("google-genai", gemini, "text/event-stream"),
    "ollama": ("ollama", ollama, "application/x-ndjson"),
    "bedrock-converse": ("botocore", bedrock_converse, "application/vnd.amazon.eventstream"),
    "cohere-chat": ("cohere", cohere_chat, "text/event-stream"),
    "mistral": ("mistralai", mistral, "text/event-stream"),
}


def recordings(dialect: str) -> Iterator[tuple[str, bytes]]:
    """Yield id and body of the recordings of a dialect."""
    with (CORPUS / "manifest.jsonl").open() as lines:
        for stream in map(json.loads, lines):
            if stream["dialect"] == dialect:
                yield stream["id"], (CORPUS / stream["file"]).read_bytes()


def short(value: object) -> str:
    """Return a value as a table's cell."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return f"`{text[:CELL]}{'…' if len(text) > CELL else ''}`".replace("|", "\\|")


def offset_of(have: str, want: str) -> int:
    """Return the character at which two texts part."""
    pairs = zip(have, want, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(have), len(want)))


def rule(what: str, mine: Answer, theirs: Answer) -> str:
    """Return the rule that makes ours what it is."""
    output = (theirs.output_tokens or 0) + mine.reasoning_tokens
    rules = {
        "usage": {
            "usage in a vendor's own member counts": theirs.output_tokens is None,
            "reasoning counts as output, where the total says that it is not in it": (
                mine.output_tokens == output
            ),
            "cached tokens above the prompt's are not in it, and are added": True,
        },
        "calls": {
            "arguments that come in pieces are put together": any(
                not name for name, _ in theirs.calls
            ),
            "half a call has no arguments; the client completes its JSON": mine.incomplete,
            "what the provider ran itself is no call of the caller's": True,
        },
        "text": {
            "what was streamed stands, and a warning says that its end says something else": (
                "final_text_differs" in mine.warnings
            ),
        },
    }
    return next((words for words, holds in rules[what].items() if holds), "")


def differences(mine: Answer, theirs: Answer) -> Iterator[tuple[str, str]]:
    """Yield what differs: the field, and how."""
    if mine.text != theirs.text:
        at = offset_of(mine.text, theirs.text)
        yield "text", f"from character {at}: {short(mine.text[at:])} and {short(theirs.text[at:])}"
    if mine.calls != theirs.calls:
        yield "calls", f"{short(mine.calls)} and {short(theirs.calls)}"
    counts = (mine.input_tokens, mine.output_tokens), (theirs.input_tokens, theirs.output_tokens)
    if counts[0] != counts[1]:
        yield "usage", f"{short(counts[0])} and {short(counts[1])}"


def main() -> int:
    """Compare everything and write the report."""
    if not (CORPUS / "manifest.jsonl").exists():
        sys.stderr.write(f"no recordings at {CORPUS}; set DELTAFOLD_CORPUS\n")
        return 1
    rows, found = list[str](), list[str]()
    for dialect, (package, read, content_type) in CLIENTS.items():
        if dialect not in deltafold.dialect_names():
            continue
        tally = collections.Counter[str]()
        for name, body in recordings(dialect):
            tally["streams"] += 1
            # Compressed as it may be, what the client sees is what we see.
            with ReplayServer() as server:
                piece = Recording(((0.0, body),), headers={"content-type": content_type})
                server.queue(piece)
                try:
                    theirs = read(server.url)
                except Exception as error:  # noqa: BLE001 - whatever it raises is the finding
                    tally["raised"] += 1
                    mine = ours(dialect, body)
                    if mine.text or mine.calls:
                        said = f"{type(error).__name__}: {error}".splitlines()[0][:90]
                        said = said.replace("|", " ")
                        found.append(f"| {name} | raised | {said} | what was received is kept |")
                    continue
            mine = ours(dialect, body)
            differing = list(differences(mine, theirs))
            content = [what for what, _ in differing if what != "usage"]
            tally["content"] += bool(content)
            tally["usage"] += any(what == "usage" for what, _ in differing)
            tally["equal"] += not differing
            found.extend(
                f"| {name} | {what} | {how} | {rule(what, mine, theirs)} |"
                for what, how in differing
            )
        version = importlib.metadata.version(package)
        rows.append(
            f"| {dialect} | {package} {version} | {tally['streams']} | {tally['equal']} | "
            f"{tally['content']} | {tally['usage']} | {tally['raised']} |"
        )
        sys.stderr.write(rows[-1] + "\n")
    report = (
        "# The official clients beside deltafold\n\n"
        "The recorded streams through each protocol's own client, over loopback HTTP, and through\n"
        "`Fold`: equal in text, tool calls and usage, or listed below.\n\n"
        "| dialect | client | streams | equal | content differs | usage differs | client raised |\n"
        "|---|---|---:|---:|---:|---:|---:|\n" + "\n".join(rows) + "\n\n"
        "## Every difference\n\nOurs first, then the client's.\n\n"
        "| stream | what | how | rule |\n|---|---|---|---|\n" + "\n".join(found) + "\n"
    )
    report += golden_cases.section()
    Path("docs/sdks.md").write_text(report, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
