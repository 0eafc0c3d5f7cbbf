"""Golden cases of llm-babel, compared with deltafold.

In: the cases in the wheel of llm-babel: requests, responses, streams and errors, each with the
expected neutral form or the expected request.  Out: a section of docs/sdks.md: how many are equal,
and every difference with the rule that decides it.

Laws: the cases are read from the installed package and are not copied. Both requests of a
comparison are read by the decoder of llm-babel, not by ours. A difference has the rule of the first
row of `golden_rules.RULES` that fits. A row without a rule is a fault of deltafold.
"""

import collections
import contextlib
import importlib.metadata
import importlib.resources
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from golden_rules import RULES, Difference

import deltafold
from deltafold.dialects import dialect_of

NAMES = {"deepseek": "openai-chat", "cohere": "cohere-chat"}
# Kinds of cases about functions that deltafold does not have.
OTHER_KINDS = {
    "stream_encode": "writes streams",
    "reconcile": "fits a request to a table of capabilities",
    "betas": "derives beta headers",
}
FINISH_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "malformed_tool_use": "error",
    "content_filter": "content_filter",
    "refusal": "refusal",
}
ERROR_CODES = {"rate_limit": "rate_limited", "other": "server_error"}
COUNTS = (
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
)


TEMPLATE = """
## The golden cases of llm-babel

llm-babel {version} ships golden cases: requests, responses, streams and errors. Requests are
parsed, rendered for the target and read by the decoder of llm-babel. Settings of another dialect
migrate. Responses, streams and errors are compared with the
expected neutral form in content, finish reason and usage. The other kinds of cases are about
functions that deltafold does not have: {others}.

| kind | cases | equal | decided by a rule | open |
|---|---:|---:|---:|---:|
{table}

### Every disagreement

Ours first, then the case's. A row without a rule is a fault of deltafold.

| kind | case | what | ours | golden | rule |
|---|---|---|---|---|---|
{rows}
"""

# Member, our value, their value, and the notes of a rendered request.
Found = tuple[str, object, object] | tuple[str, object, object, tuple[str, ...]]


@dataclass
class Answer:
    """Comparable content of an answer."""

    content: list[tuple[str, ...]]
    finish_reason: str
    usage: dict[str, int]


def cases() -> Iterator[dict[str, Any]]:
    """Yield the cases of the installed package, by name."""
    folder = importlib.resources.files("llm_transform.corpus") / "cases"
    for path in sorted(folder.iterdir(), key=lambda path: path.name):
        if path.name.endswith(".json"):
            yield json.loads(path.read_text(encoding="utf-8"))


def name_of(dialect: str) -> str:
    """Return our name of one of their formats."""
    return NAMES.get(dialect, dialect)


def canonical(value: object) -> str:
    """Return a value as JSON text that is equal for equal values."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def folded(dialect: str, body: bytes) -> tuple[Any, Any]:
    """Fold a body; return the message and the last delta."""
    batch = deltafold.decode_response(body, name_of(dialect))
    assembler = deltafold.MessageAssembler()
    assembler.consume(batch)
    return assembler.snapshot(), list(batch)[-1]


def add(content: list[tuple[str, ...]], kind: str, *values: str) -> None:
    """Add a part; neighbouring texts of one kind are one."""
    if kind in {"text", "reasoning"} and content and content[-1][0] == kind:
        content[-1] = (kind, content[-1][1] + values[0])
    elif values != ("",):
        content.append((kind, *values))


def our_answer(dialect: str, body: bytes) -> Answer:
    """Return what deltafold reads."""
    message, _ = folded(dialect, body)
    content: list[tuple[str, ...]] = []
    given = body.decode()
    for part in message.parts:
        if part.kind == "text":
            add(content, "text", part.text)
        elif part.kind == "thinking":
            add(content, "reasoning", part.text)
        elif part.kind == "tool_call":
            call_id = part.tool_call_id if part.tool_call_id in given else ""
            arguments = part.arguments if part.arguments is not None else part.raw_args_text
            add(content, "call", call_id, part.tool_name, canonical(arguments))
    usage = message.meta.usage
    counts = {name: getattr(usage, name) for name in COUNTS} if usage else {}
    reason = message.meta.finish_reason
    return Answer(
        content, str(reason) if reason else "none", {k: v for k, v in counts.items() if v}
    )


def their_answer(
    parts: list[dict[str, Any]], stop: str | None, usage: Mapping[str, Any] | None, given: str
) -> Answer:
    """Return what the case expects."""
    content: list[tuple[str, ...]] = []
    for part in parts:
        kind = part["kind"]
        if kind == "text":
            add(content, "text", part["text"])
        elif kind == "reasoning":
            # Redacted reasoning has no text; the case has its data there.
            add(content, "reasoning", "" if part.get("redacted") else part.get("text", ""))
        elif kind == "tool_call" and not part.get("provider_executed"):
            call_id = part.get("id") or ""
            arguments = canonical(part["input"])
            add(content, "call", call_id if call_id in given else "", part["name"], arguments)
    counts = {name: int((usage or {}).get(name) or 0) for name in COUNTS}
    reason = FINISH_REASONS.get(stop or "", "other" if stop else "none")
    return Answer(content, reason, {name: count for name, count in counts.items() if count})


def differing(ours: Answer, theirs: Answer) -> Iterator[Found]:
    """Yield the members that differ."""
    if ours.content != theirs.content:
        yield "content", ours.content, theirs.content
    # `other` is every reason without a name of its own in the case's list.
    if ours.finish_reason != theirs.finish_reason and not (
        theirs.finish_reason == "other" and ours.finish_reason in {"pause", "other"}
    ):
        yield "finish reason", ours.finish_reason, theirs.finish_reason
    if theirs.usage and ours.usage != theirs.usage:
        yield "usage", ours.usage, theirs.usage


def response(case: dict[str, Any]) -> Iterator[Found]:
    """Compare a whole response."""
    body = json.dumps(case["input_wire"])
    expected = case["expected_ir"]
    first = (expected["candidates"] or [{"content": [], "stop_reason": None}])[0]
    theirs = their_answer(first["content"], first.get("stop_reason"), expected.get("usage"), body)
    return differing(our_answer(case["source"], body.encode()), theirs)


def stream(case: dict[str, Any]) -> Iterator[Found]:
    """Compare a stream; its events arrive as SSE."""
    lines: list[str] = []
    for event in case["input_events"]:
        if case["source"] == "bedrock-converse":
            ((name, value),) = event.items()
            lines.append(f"event: {name}\ndata: {json.dumps(value)}\n\n")
        else:
            lines.append(f"data: {json.dumps(event)}\n\n")
    body = "".join(lines)
    parts: list[dict[str, Any]] = []
    stop = usage = None
    for emit in case["expected_emits"]:
        if emit["kind"] in {"meta", "usage"}:
            stop = emit.get("stop_reason", stop)
            usage = emit.get("usage", emit if emit["kind"] == "usage" else usage)
        elif emit["kind"] != "tool_call_start":
            parts.append(emit)
    theirs = their_answer(parts, stop, usage, body)
    ours = our_answer(case["source"], body.encode())
    if stop is None:
        theirs.finish_reason = ours.finish_reason
    return differing(ours, theirs)


def error(case: dict[str, Any]) -> Iterator[Found]:
    """Compare the body of a refusal."""
    body = json.dumps(case["input_wire"]).encode()
    expected = case["expected_ir"]
    _, last = folded(case["source"], body)
    if last.kind != "error":
        yield "kind", str(last.kind), "error"
        return
    payload = last.payload
    code = ERROR_CODES.get(expected["kind"], expected["kind"])
    for what, ours, theirs in (
        ("code", str(payload["errorCode"]), code),
        ("message", payload.get("message"), expected.get("message")),
        ("provider code", payload.get("providerCode"), expected.get("provider_code")),
    ):
        if ours != theirs:
            yield what, ours, theirs


def rendered(case: dict[str, Any]) -> tuple[dict[str, object], list[str]]:
    """Parse the case's request and render it for the target; return the body and its notes."""
    source, target = name_of(case["source"]), name_of(case["target"])
    wire = case["input_wire"]
    model = case.get("model") or wire.get("model") or wire.get("modelId") or "m"
    parsed = deltafold.parse_request(
        {name: value for name, value in wire.items() if name != "modelId"}, source, model_id=model
    )
    config, changes = deltafold.migrate_config(parsed, target, model_id=model)
    result = dialect_of(target).render(
        parsed.messages, parsed.tools, config, stream=bool(parsed.stream)
    )
    notes = [*parsed.notes, *changes, *result.notes]
    return dict(result.body), [str(note["code"]) for note in notes]


def request(case: dict[str, Any]) -> Iterator[Found]:
    """Compare a rendered request with the expected one, both read by llm-babel."""
    from llm_transform.registry import decode

    try:
        body, notes = rendered(case)
    except (deltafold.MisuseError, ValueError) as refusal:
        yield "refused", " ".join(str(refusal).split()), case["expected_out_wire"]
        return
    golden = case["expected_out_wire"]
    ours, theirs = (
        neutral(decode(case["target"], readable(wire, case["target"]))) for wire in (body, golden)
    )
    for member in sorted({*ours, *theirs}):
        if canonical(ours.get(member)) != canonical(theirs.get(member)):
            yield member, ours.get(member), theirs.get(member), tuple(notes)


def readable(body: Mapping[str, Any], dialect: str) -> dict[str, Any]:
    """Return a request in the forms that the decoder of llm-babel reads, where the API has two."""
    body = json.loads(json.dumps(body, default=str), parse_float=number)
    if dialect == "openai-responses" and isinstance(body["input"], list):
        for item in body["input"]:
            if isinstance(item.get("content"), str):
                kind = "output_text" if item.get("role") == "assistant" else "input_text"
                item["content"] = [{"type": kind, "text": item["content"]}]
    if dialect == "gemini":
        generation = body.get("generationConfig", {})
        if "responseJsonSchema" in generation:
            generation["responseSchema"] = generation.pop("responseJsonSchema")
        for tool in body.get("tools", ()):
            for function in tool.get("functionDeclarations", ()):
                if "parametersJsonSchema" in function:
                    function["parameters"] = function.pop("parametersJsonSchema")
    return body


def number(text: str) -> float:
    """Return a JSON number; one without a fraction is an integer."""
    value = float(text)
    return int(value) if value.is_integer() else value


def neutral(request: dict[str, Any]) -> dict[str, Any]:
    """Return the compared members of a neutral request."""
    members = json.loads(json.dumps(request, default=str))
    members.pop("stream", None)  # the path or the caller decides
    members.pop("model", None)  # a case may keep the model of its source
    if isinstance(stop := (members.get("params") or {}).get("stop"), str):
        members["params"]["stop"] = [stop]  # one text is a list of one (OpenAI Chat)
    order: dict[str, str] = {}
    for message in members.get("messages", ()):
        for part in message["content"]:
            comparable(part, order)
    return {name: value for name, value in members.items() if value not in ({}, [], None)}


def comparable(part: dict[str, Any], order: dict[str, str]) -> None:
    """Make a part equal to another one that says the same.

    An id only connects a call with its result, and its form is the target's. A result is JSON or
    its text, and a list of one text is that text. A data URL is the medium itself.
    """
    if "id" in part:
        part["id"] = order.setdefault(str(part["id"]), str(len(order)))
        part.get("provider_ext", {}).get("gemini", {}).pop("id", None)
    match part.get("content"):
        case [{"type": "text", "text": str(text), **others}] if not others:
            part["content"] = text
        case _:
            pass
    if isinstance(part.get("content"), str):
        with contextlib.suppress(ValueError):
            part["content"] = json.loads(part["content"])
    head, comma, data = str(part.get("data", "")).partition(";base64,")
    if comma and head.startswith("data:"):
        part.update(data=data, media_type=head.removeprefix("data:"), source="base64")
    if part.get("source") == "url":
        part.pop("media_type", None)
    extra = {name: value for name, value in part.get("provider_ext", {}).items() if value}
    part.pop("provider_ext", None)
    if extra:
        part["provider_ext"] = extra


COMPARED = {
    "request": request,
    "translate": request,
    "response": response,
    "stream": stream,
    "error": error,
}


def is_compared(case: dict[str, Any]) -> bool:
    """Return whether the case is about something that deltafold does."""
    kind = case.get("kind", "request")
    needed = "expected_out_wire" if COMPARED.get(kind) is request else "expected_ir"
    return kind == "stream" or (kind in COMPARED and needed in case)


def short(value: object) -> str:
    """Return a value as a table's cell."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return f"`{text[:110]}{'…' if len(text) > 110 else ''}`".replace("|", "\\|")


def noted(difference: Difference) -> str:
    """Return the notes of a rendered request as they are shown behind the member."""
    codes = ", ".join(f"`{code}`" for code in sorted(set(difference.notes)))
    return f" (noted: {codes})" if codes else ""


def rule_of(difference: Difference) -> str:
    """Return the rule that decides a difference; empty if there is none."""
    return next((words for words, decides in RULES if decides(difference)), "")


def section() -> str:
    """Compare all cases; return the section of the report."""
    tallies: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    rows: list[str] = []
    for case in cases():
        kind = case.get("kind", "request")
        if kind in OTHER_KINDS or not is_compared(case):
            continue
        tally = tallies[kind]
        tally["cases"] += 1
        found = [Difference(kind, case, *members) for members in COMPARED[kind](case)]
        rules = [rule_of(difference) for difference in found]
        tally["equal" if not found else "decided" if all(rules) else "undecided"] += 1
        rows.extend(
            f"| {kind} | {case['name']} | {each.what}{noted(each)} | {short(each.ours)} | "
            f"{short(each.theirs)} | {rule} |"
            for each, rule in zip(found, rules, strict=True)
        )
    version = importlib.metadata.version("llm-babel")
    table = "\n".join(
        f"| {kind} | {tally['cases']} | {tally['equal']} | {tally['decided']} | "
        f"{tally['undecided']} |"
        for kind, tally in sorted(tallies.items())
    )
    others = "; ".join(f"`{kind}` ({what})" for kind, what in OTHER_KINDS.items())
    return TEMPLATE.format(version=version, others=others, table=table, rows="\n".join(rows))
