"""The JSON of a lazy message, written from its fold, is the text that pydantic writes.

The recordings lie beside the project, at `../shared/corpus` or where `DELTAFOLD_CORPUS` says.
"""

import json
from datetime import UTC, datetime
from typing import Any, Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from any_name import AnyName
from corpus import CORPUS, needs_corpus
from deltafold import Decoder, Message, MessageAssembler, dialect_names
from deltafold._core import folded_json
from deltafold.message.messages import Meta, TextPart
from fixture_bodies import CASES
from wire_deltas import (
    Wire,
    args,
    call,
    consume,
    done,
    end,
    error,
    part,
    start,
    text,
    thinking,
    usage,
)


def folded(dialect: AnyName, body: bytes) -> MessageAssembler:
    decoder = Decoder(dialect, run_id="run", logprobs=True)
    assembler = MessageAssembler("run")
    for batch in (decoder.feed(body), decoder.close()):
        assembler.consume(batch)
    return assembler


def hold_equal(assembler: MessageAssembler) -> bool:
    """Hold the text against that of pydantic, and return whether it was written from the fold."""
    wanted = assembler.snapshot().model_dump_json()
    assert assembler.snapshot().to_json() == wanted
    with_meta = assembler.snapshot()
    assert with_meta.meta.usage == assembler.usage
    assert with_meta.to_json() == wanted
    written = folded_json(assembler.snapshot())
    assert written in {None, wanted}
    return written is not None


def test_the_fixtures_give_the_text_of_pydantic() -> None:
    written = 0
    for case in CASES:
        [wire] = case.glob("wire.*")
        written += hold_equal(folded(case.parent.name, wire.read_bytes()))
    assert written > 0.95 * len(CASES)


@needs_corpus
def test_the_recordings_give_the_text_of_pydantic() -> None:
    lines = (CORPUS / "manifest.jsonl").read_text(encoding="utf-8").splitlines()
    rows: list[dict[str, Any]] = [json.loads(line) for line in lines]
    known = [row for row in rows if row["dialect"] in dialect_names()]
    written = 0
    for row in known:
        body = (CORPUS / row["file"]).read_bytes()
        written += hold_equal(folded(row["dialect"], body))
    assert written > 0.98 * len(known)


FLOATS: Final = [0.0, -0.0, 1e-5, 9.99e-6, 1e-7, 5e-324, 1e15, 9.9e15, 1e16, 1.5e300, -0.1, 12.0]
SCALARS: Final = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(10**40), 10**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(FLOATS)
    | st.text(max_size=8)
    | st.sampled_from(["\0\b\f\x1f\x7f", '"\\/\n\r\t', "\u2028😀é", "<>&'"])
)
VALUES: Final = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=12,
)
OBJECTS: Final = st.dictionaries(st.text(max_size=4), VALUES, max_size=5)
SEPARATORS: Final = st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", "\t: ")])


def written(value: object, ascii_only: bool, separators: tuple[str, str]) -> str:
    return json.dumps(value, ensure_ascii=ascii_only, separators=separators)


TEXTS: Final = (
    st.builds(written, OBJECTS | VALUES, st.booleans(), SEPARATORS)
    | st.text(alphabet='{}[]":,\\u0123456789deE.-+ ntrf', max_size=30)
    | st.sampled_from(
        [
            '{"a":1,"b":2,"a":3}',
            '{"a":1,"\\u0061":2}',
            '{"a":-0,"b":-0.0,"c":1E3,"d":1e400,"e":0.10}',
            '{"a":"\\ud83d\\ude00","b":"\\ud83d","\\udc00":1}',
            '{"a":"\\/\\b\\f\\u0008\\u000c\\u001F\\u007f"}',
            '{"a":99999999999999999999,"b":9223372036854775807,"c":-9223372036854775808}',
            '{"a":NaN}',
            "[" * 150 + "]" * 150,
            '{"a":' * 99 + "1" + "}" * 99,
            '{"a":' * 120 + "1" + "}" * 120,
            '"{}"',
            "null",
            " {} ",
            "{} x",
        ]
    )
)


def hold(*deltas: tuple[str, Wire]) -> None:
    assembler = MessageAssembler("run")
    consume(assembler, start(), *deltas)
    hold_equal(assembler)


@settings(max_examples=400, deadline=None)
@given(TEXTS, st.booleans(), st.sampled_from(["json", "text"]))
def test_any_arguments(raw: str, incomplete: bool, input_format: str) -> None:
    pieces = [args(raw, "a")] if raw else []
    ending = end("a", incomplete=True) if incomplete else end("a")
    hold(call("a", inputFormat=input_format), *pieces)
    hold(call("a", inputFormat=input_format), *pieces, ending, done("tool_calls"))


@settings(max_examples=400, deadline=None)
@given(OBJECTS, st.lists(VALUES, max_size=3), st.text(max_size=8))
@example({}, [], "")
@example({"a": [], "b": {}, "c": None}, [[], {}], "\0")
def test_any_values(members: Wire, items: list[object], words: str) -> None:
    hold(
        thinking(words, partIndex=0, providerState=members),
        text(words, partIndex=1, annotations=items),
        text("", partIndex=1, annotations=[members]),
        text("no", partIndex=1, refusal=True),
        part(2, {"kind": "provider", "payload": {"dialect": words, "block": members}}),
        usage(details=members, cacheReadTokens=1, reasoningTokens=2),
        done(
            rawFinishReason=words,
            details=members,
            warnings=[{"code": words, "message": words, "more": items}],
        ),
    )


WHOLE: Final[list[Wire]] = [
    {"kind": "image", "payload": {"data": "AA==", "mimeType": "image/png"}},
    {"kind": "image", "payload": {"mimeType": "image/png", "url": "u", "data": None}},
    {"kind": "file_ref", "payload": {"size": 5, "path": "p"}, "providerState": {"a": 1}},
    {"providerState": None, "payload": {"path": "p", "mimeType": None}, "kind": "file_ref"},
    {"kind": "provider", "payload": {"block": {"type": "x"}, "dialect": "d"}},
    {"kind": "provider", "dialect": "d", "block": {"type": "x"}},
    {"kind": "image", "payload": {"mime_type": "image/png", "url": "u"}},
]


@pytest.mark.parametrize("whole", WHOLE)
def test_any_whole_part(whole: Wire) -> None:
    hold(part(0, whole), done())


@pytest.mark.parametrize("cost", [*FLOATS[:1], *(value for value in FLOATS if value > 0)])
def test_any_cost(cost: float) -> None:
    hold(usage(cost=cost), done())


@pytest.mark.parametrize(
    "deltas",
    [
        [],
        [text("x")],
        [error("timeout", message="m", warnings=[{"code": "noise", "message": "m"}])],
        [text("x", logprobs={"tokens": ["x", None], "logprobs": [-1e-7, None]}), done()],
        [call("a"), args("{", "a"), text("x")],
        [usage(inputTokens=None, outputTokens=None, totalTokens=None), done(warnings=[])],
    ],
)
def test_any_state(deltas: list[tuple[str, Wire]]) -> None:
    hold(*deltas)


def test_an_idle_assembler_gives_the_text_of_pydantic() -> None:
    message = MessageAssembler().snapshot()
    written = folded_json(message)
    assert written == message.model_dump_json()


INSTANTS: Final = [
    datetime(1970, 1, 1, tzinfo=UTC),
    datetime(1999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC),
    datetime(2000, 2, 29, 1, 2, 3, 4_000, tzinfo=UTC),
    datetime(2100, 3, 1, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC),
]


@settings(max_examples=300, deadline=None)
@given(st.datetimes(min_value=datetime(1970, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001
@example(INSTANTS[0])
@example(INSTANTS[1])
@example(INSTANTS[2])
@example(INSTANTS[3])
@example(INSTANTS[4])
def test_any_time(instant: datetime) -> None:
    decoder = Decoder("openai-chat", run_id="run", clock=lambda: instant)
    assembler = MessageAssembler("run")
    batch = decoder.close()
    assembler.consume(batch)
    assert hold_equal(assembler)
    assert (
        json.loads(batch[0].to_json())["timestamp"]
        == json.loads(assembler.snapshot().to_json())["timestamp"]
    )


def test_a_change_is_written() -> None:
    assembler = MessageAssembler("run")
    consume(assembler, start(), text("x"), usage(), done(warnings=[{"code": "a", "message": "b"}]))

    def changed(name: str) -> Message:
        message = assembler.snapshot()
        match name:
            case "warnings":
                message.meta.warnings.append({"code": "more"})
            case "cost":
                message.meta.cost_usd = 0.5
            case "extra":
                message.meta.__setattr__("mine", [1])
            case "meta":
                message.meta = Meta(duration_ms=1.0)
            case "no meta":
                message.meta = Meta()
            case "parts":
                message.parts.append(TextPart(text="y"))
            case _:
                message.parts = [TextPart(text="z")]
        return message

    texts = {
        name: changed(name).to_json()
        for name in ("warnings", "cost", "extra", "meta", "no meta", "parts", "all parts")
    }
    for name, written in texts.items():
        assert written == changed(name).model_dump_json(), name
    assert len({*texts.values(), assembler.snapshot().to_json()}) == len(texts) + 1
