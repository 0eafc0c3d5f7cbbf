"""Bodies that are too large, too deep or too many: the bound that is named, and bounded memory."""

import copy
import pickle
import tracemalloc

import pytest

from any_name import AnyName
from deltafold import (
    Decoder,
    ErrorCode,
    Fold,
    Limits,
)
from protocol_bodies import (
    ANTHROPIC,
    CHAT,
    DONE,
    ENDINGS,
    OPENINGS,
    TEXT_EVENTS,
    Wire,
    anthropic,
    block,
    call_chunk,
    chunk,
    finish,
    message_end,
    message_start,
    said,
    saying,
    text_block,
)
from splits import decode, everywhere, failure_of, sized

BOTH = pytest.mark.parametrize("dialect", [ANTHROPIC, CHAT])


# Size: long lines, deep nesting, very many events.


def test_a_line_of_64_mib_reaches_the_bound_that_is_named_and_memory_stays_bounded() -> None:
    piece = b"x" * 65_536
    decoder = Decoder(CHAT, run_id="run")
    before = list(decoder.feed(said("kept")))
    tracemalloc.start()
    deltas = list(decoder.feed(b'data: {"choices":[{"delta":{"content":"'))
    fed = 0
    while not decoder.finished and fed < 64 << 20:
        deltas += decoder.feed(piece)
        fed += len(piece)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    found = failure_of(before + deltas)
    assert found.error_code is ErrorCode.PROTOCOL_ERROR
    assert found.error_message == f"limit reached: event_bytes ({32 << 20})"
    assert fed <= (32 << 20) + len(piece)
    assert peak < 10 << 20  # of Python; the core holds one line, at most the bound


@BOTH
def test_a_line_of_64_mib_at_once_is_refused_like_one_in_pieces(dialect: str) -> None:
    body = b"data: " + b"x" * (64 << 20)
    for pieces in ([body], [body, b"\n\n"], sized(body, 16 << 20)):
        found = failure_of(decode(dialect, pieces)[0])
        assert found.error_message == f"limit reached: event_bytes ({32 << 20})"


@BOTH
def test_an_event_within_the_bound_passes(dialect: str) -> None:
    body = saying(dialect, b"y" * (20 << 20))
    _, assembler = decode(dialect, sized(body, 1 << 20))
    assert len(assembler.text) == 20 << 20


@pytest.mark.parametrize("extra", range(-12, 13))
def test_the_bound_of_an_event_counts_the_same_wherever_the_bytes_are_cut(extra: int) -> None:
    limits = Limits(event_bytes=100)
    bodies = [
        TEXT_EVENTS[CHAT] % (b"x" * (60 + extra)) + DONE,
        b": " + b"c" * (98 + extra) + b"\n\n" + DONE,
        b"data: {\ndata: " + b" " * (80 + extra) + b"}\n\n" + DONE,
        b"event: " + b"n" * (93 + extra) + b"\n\n" + DONE,
        b'{"choices":[],\n"a":"' + b"x" * (76 + extra) + b'"}\n',
    ]
    for body in bodies:
        everywhere(CHAT, body, limits=limits)


@BOTH
@pytest.mark.parametrize("bomb", [b"[" * 200, b'{"a":' * 200, b"[" * 1_000_000])
def test_a_nesting_bomb_reaches_the_bound_that_is_named(dialect: str, bomb: bytes) -> None:
    before = OPENINGS[dialect] + TEXT_EVENTS[dialect] % b"kept"
    body = before + b'data: {"type":"message","x":' + bomb + b"}\n\n"
    deltas, assembler = decode(dialect, sized(body, 100_000))
    found = failure_of(deltas)
    assert found.error_code is ErrorCode.PROTOCOL_ERROR
    assert "limit reached: depth (128)" in (found.error_message or "")
    assert assembler.text == "kept"


@BOTH
def test_a_bare_nesting_bomb_ends_in_one_error(dialect: str) -> None:
    opened, closed = b"[" * 1_000_000, b"]" * 1_000_000
    # An event that never ends is treated as a cut body.
    found = failure_of(decode(dialect, sized(opened, 65_536))[0])
    assert found.error_code is ErrorCode.CONNECTION_LOST
    found = failure_of(decode(dialect, sized(opened + closed, 65_536))[0])
    assert found.error_code is ErrorCode.PROTOCOL_ERROR
    assert "limit reached: depth (128)" in (found.error_message or "")


def test_nesting_in_arguments_is_not_the_decoders_and_raises_nothing() -> None:
    deep = "[" * 100_000 + "]" * 100_000
    body = call_chunk('{"x":' + deep + "}", name="f", index=0, id="a") + finish("tool_calls") + DONE
    _, assembler = decode(CHAT, [body])
    [found] = assembler.build_final_message().tool_calls
    assert found.arguments is None
    assert found.parse_error


@BOTH
def test_a_million_tiny_events_are_read_in_bounded_memory(dialect: AnyName) -> None:
    tiny = {
        CHAT: b'data: {"choices":[{"delta":{"content":"x"}}]}\n\n',
        ANTHROPIC: b'data: {"type":"content_block_delta","index":0,'
        b'"delta":{"type":"text_delta","text":"x"}}\n\n',
    }[dialect]
    feed = tiny * 1_000
    fold = Fold(dialect)
    fold.feed(OPENINGS[dialect])
    tracemalloc.start()
    for _ in range(1_000):
        fold.feed(feed)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    fold.feed(ENDINGS[dialect])
    assert len(fold.message.text) == 1_000_000
    assert peak < 1 << 20


@BOTH
def test_a_million_events_that_say_nothing_leave_nothing(dialect: AnyName) -> None:
    decoder = Decoder(dialect)
    for _ in range(100):
        assert len(decoder.feed(b": ping\n\ndata:\n\nevent: ping\n\n\n" * 10_000)) == 0


# Every bound.

NUMBERS: Wire = {"type": "input_json_delta", "partial_json": "[" + "1," * 50}

LIMITED: dict[str, tuple[str, bytes, Limits]] = {
    "event_bytes": (CHAT, said("x" * 300), Limits(event_bytes=200)),
    "depth": (CHAT, b'data: {"choices":[[[[[[]]]]]]}\n\n', Limits(depth=5)),
    "message_bytes of text": (CHAT, said("x" * 60, "y" * 60), Limits(message_bytes=100)),
    "message_bytes of thinking": (
        CHAT,
        chunk({"reasoning": "x" * 60}) + chunk({"reasoning": "x" * 60}),
        Limits(message_bytes=100),
    ),
    "message_bytes of arguments": (
        CHAT,
        call_chunk('{"x":"' + "x" * 60, name="f", index=0, id="a") + call_chunk("x" * 60, index=0),
        Limits(message_bytes=100),
    ),
    "parts": (
        ANTHROPIC,
        message_start() + b"".join(text_block(n, "x") for n in range(4)),
        Limits(parts=3),
    ),
    "parts by change of kind": (
        CHAT,
        (said("x") + chunk({"reasoning": "y"})) * 3,
        Limits(parts=4),
    ),
    "tool_calls": (
        CHAT,
        b"".join(call_chunk("{}", name="f", index=n, id=str(n)) for n in range(4)),
        Limits(tool_calls=3),
    ),
    "tool_calls in one event": (
        CHAT,
        chunk(
            {
                "tool_calls": [
                    {"index": n, "id": str(n), "function": {"name": "f"}} for n in range(9)
                ]
            }
        ),
        Limits(tool_calls=3),
    ),
    "warnings": (
        ANTHROPIC,
        message_start() + b"".join(anthropic(f"unknown_{n}") for n in range(4)),
        Limits(warnings=3),
    ),
    "provider_state_bytes of a block": (
        ANTHROPIC,
        message_start() + block(0, {"type": "future", "data": "x" * 300}),
        Limits(provider_state_bytes=200),
    ),
    "provider_state_bytes of deltas": (
        ANTHROPIC,
        message_start()
        + block(
            0,
            {"type": "server_tool_use", "id": "s", "name": "n", "input": {}},
            *[NUMBERS] * 5,
        ),
        Limits(provider_state_bytes=200),
    ),
    "provider_state_bytes of signatures": (
        ANTHROPIC,
        message_start()
        + block(0, {"type": "thinking"}, {"type": "signature_delta", "signature": "x" * 300}),
        Limits(provider_state_bytes=200),
    ),
    "provider_state_bytes of reasoning": (
        CHAT,
        chunk({"reasoning_details": [{"type": "reasoning.encrypted", "data": "x" * 100}]}) * 3,
        Limits(provider_state_bytes=200),
    ),
    "provider_state_bytes of audio": (
        CHAT,
        chunk({"audio": {"id": "a", "data": "x" * 100}}) * 3,
        Limits(provider_state_bytes=200),
    ),
}


@pytest.mark.parametrize(("dialect", "body", "limits"), LIMITED.values(), ids=LIMITED)
def test_a_bound_that_is_reached_is_one_protocol_error_that_names_it(
    dialect: str, body: bytes, limits: Limits, request: pytest.FixtureRequest
) -> None:
    ending = {CHAT: finish("stop") + DONE, ANTHROPIC: message_end()}[dialect]
    deltas, message = everywhere(dialect, body + ending, limits=limits)
    found = failure_of(deltas)
    assert (found.error_code, found.retryable) == (ErrorCode.PROTOCOL_ERROR, False)
    name = str(request.node.callspec.id).split()[0]  # pyright: ignore[reportUnknownMemberType]
    assert (found.error_message or "").startswith(
        f"limit reached: {name} ({getattr(limits, name)})"
    )
    assert all(one.raw_args_text == "{}" or one.incomplete for one in message.tool_calls)
    # The same body passes the default bounds.
    assert decode(dialect, [body + ending])[0][-1].kind == "done"


def test_what_came_before_a_bound_is_kept() -> None:
    limits = Limits(message_bytes=100)
    _, message = everywhere(CHAT, said("x" * 60, "y" * 60) + DONE, limits=limits)
    assert message.text == "x" * 60


BOUNDS = (
    "event_bytes",
    "depth",
    "message_bytes",
    "parts",
    "tool_calls",
    "warnings",
    "provider_state_bytes",
    "identifier_bytes",
    "choices",
)


def test_the_table_has_every_bound() -> None:
    found = {name for name in dir(Limits) if isinstance(getattr(Limits(), name), int)}
    assert found == set(BOUNDS)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_bounds_survive_pickling_and_copying(protocol: int) -> None:
    limits = Limits(**{name: place for place, name in enumerate(BOUNDS, 1)})
    copies = [
        pickle.loads(pickle.dumps(limits, protocol)),  # noqa: S301 - our own
        copy.copy(limits),
        copy.deepcopy({"limits": limits})["limits"],
    ]
    assert copies == [limits] * 3
    assert [getattr(copies[0], name) for name in BOUNDS] == list(range(1, len(BOUNDS) + 1))
