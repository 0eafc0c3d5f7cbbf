"""Log probabilities: arrays without objects, in any server's shape, the same in every chunking."""

import json
import math
import pickle
from typing import Any, Final

import pytest
from pydantic import BaseModel, ValidationError

import deltafold
import reference
from deltafold import Logprobs, Message, MessageDelta, _core
from deltafold.contract.exceptions import ContractError
from wire_deltas import Assembler, Wire, assert_same, consume, done, start, text, thinking

DIALECT: Final = "openai-chat"
ASSEMBLERS: list[type[Assembler]] = [_core.MessageAssembler, reference.MessageAssembler]


def entry(token: object, logprob: object, **members: object) -> Wire:
    return {"token": token, "logprob": logprob, "bytes": [1, 2], "top_logprobs": [], **members}


def chunk(content: str | None, logprobs: object = None, **choice: object) -> bytes:
    """Write a chunk; members of the choice may be replaced."""
    chosen: Wire = {"index": 0, "delta": {"content": content}, "logprobs": logprobs, **choice}
    wire = {"id": "chatcmpl-1", "model": "m", "choices": [chosen]}
    return b"data: " + json.dumps(wire).encode() + b"\n\n"


def stream(*chunks: bytes) -> bytes:
    return b"".join(chunks) + chunk(None, delta={}, finish_reason="stop") + b"data: [DONE]\n\n"


def folded(body: bytes) -> Logprobs:
    """Fold a body in every way; all say the same."""
    logprobs = deltafold.fold(body, DIALECT, logprobs=True).meta.logprobs
    assert logprobs is not None
    for size in range(1, 18):
        decoder = deltafold.Decoder(DIALECT, logprobs=True)
        both: list[Assembler] = [made() for made in ASSEMBLERS]
        pieces = [body[at : at + size] for at in range(0, len(body), size)]
        for batch in (*(decoder.feed(piece) for piece in pieces), decoder.close()):
            for assembler in both:
                assembler.consume(batch)
        for assembler in both:
            assert assembler.snapshot().meta.logprobs == logprobs
        assert_same(*both)
    return logprobs


def wire_of(body: bytes) -> dict[str, object]:
    return folded(body).to_dict()


def test_tokens_of_all_chunks_stand_side_by_side() -> None:
    body = stream(
        chunk("Hel", {"content": [entry("Hel", -0.5)], "refusal": None}),
        chunk("lo\n!", {"content": [entry("lo\n", -1e-300), entry("!", -2)]}),
    )
    logprobs = folded(body)
    assert logprobs.tokens == ["Hel", "lo\n", "!"]
    assert logprobs.logprobs.tolist() == [-0.5, -1e-300, -2.0]
    assert (logprobs.token_ids, logprobs.top_tokens) == (None, None)
    assert (logprobs.top_logprobs, logprobs.top_offsets) == (None, None)
    assert len(logprobs) == 3
    assert repr(logprobs) == "<Logprobs of 3 tokens>"


def test_a_whole_body_says_what_its_stream_says() -> None:
    entries = [entry("Hel", -0.5), entry("lo", -1.5)]
    message = {"role": "assistant", "content": "Hello"}
    choice = {"index": 0, "message": message, "logprobs": {"content": entries}}
    whole = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "m",
        "choices": [{**choice, "finish_reason": "stop"}],
    }
    assert folded(json.dumps(whole).encode()) == folded(
        stream(*(chunk(each["token"], {"content": [each]}) for each in entries))  # type: ignore[arg-type]
    )


def test_nobody_asked_or_nothing_came() -> None:
    body = stream(chunk("Hi", {"content": [entry("Hi", -0.5)]}, token_ids=[7]))
    assert deltafold.fold(body, DIALECT).meta.logprobs is None
    nothings: list[object] = [None, {}, [], "x", {"content": None, "refusal": []}, {"content": {}}]
    for nothing in nothings:
        message = deltafold.fold(stream(chunk("Hi", nothing)), DIALECT, logprobs=True)
        assert message.meta.logprobs is None
        assert message.text == "Hi"


def test_a_refusal_has_log_probabilities_too() -> None:
    body = stream(
        chunk(None, {"content": None, "refusal": []}, delta={"refusal": ""}),
        chunk(None, {"content": None, "refusal": [entry("I'm", -0.1)]}, delta={"refusal": "I'm"}),
    )
    assert wire_of(body) == {"tokens": ["I'm"], "logprobs": [-0.1]}


def test_reasoning_is_not_broken_apart_and_its_tokens_come_first() -> None:
    body = stream(
        *(chunk(None, {"content": [entry(t, -1)]}, delta={"reasoning": t}) for t in "abc"),
        chunk("x", {"content": [entry("x", -2)]}),
    )
    message = deltafold.fold(body, DIALECT, logprobs=True)
    assert [(part.kind) for part in message.parts] == ["thinking", "text"]
    assert (message.thinking, message.text) == ("abc", "x")
    assert folded(body).tokens == ["a", "b", "c", "x"]


def test_halves_of_a_surrogate_pair_meet_across_log_probabilities() -> None:
    body = stream(chunk("X", {"content": [entry("a", -1)]}), chunk("Y"))
    body = body.replace(b'"X"', rb'"\ud83d"').replace(b'"Y"', rb'"\ude00"')
    message = deltafold.fold(body, DIALECT, logprobs=True)
    assert message.text == "\N{GRINNING FACE}"
    assert message.meta.warnings == []


def test_what_was_not_sent_is_nan() -> None:
    sent: list[object] = [
        entry(None, None),
        {"token": "b"},
        entry("c", "-Infinity"),
        None,
        entry("e", -1),
    ]
    body = stream(chunk("abc", {"content": sent})).replace(b'"-Infinity"', b"-1e999")
    logprobs = folded(body)
    assert logprobs.tokens == ["", "b", "c", "", "e"]
    assert [math.isnan(each) for each in logprobs.logprobs] == [True, True, True, True, False]
    assert logprobs.to_dict()["logprobs"] == [None, None, None, None, -1.0]
    assert logprobs == Logprobs.from_dict(logprobs.to_dict())


def test_alternatives_are_flat() -> None:
    top = [{"token": "b", "logprob": -3, "bytes": None}, {"token": "c", "logprob": None}]
    body = stream(
        chunk("x", {"content": [entry("x", -1)]}),
        chunk("ab", {"content": [entry("a", -1, top_logprobs=top), entry("b", -2)]}),
        chunk("c", {"content": [entry("c", -1, top_logprobs=top[:1])]}),
        chunk("d", {"content": [entry("d", -1, top_logprobs=None)]}),
    )
    logprobs = folded(body)
    assert logprobs.top_tokens == ["b", "c", "b"]
    assert logprobs.top_logprobs is not None
    assert logprobs.top_offsets is not None
    assert logprobs.top_offsets.tolist() == [0, 0, 2, 2, 3, 3]
    assert logprobs.to_dict()["top"] == [
        [],
        [{"token": "b", "logprob": -3.0}, {"token": "c", "logprob": None}],
        [],
        [{"token": "b", "logprob": -3.0}],
        [],
    ]
    assert logprobs == Logprobs.from_dict(logprobs.to_dict())


@pytest.mark.parametrize(
    "said",
    [
        chunk("ab", {"content": [entry("a", -1), entry("b", -2)]}, token_ids=[5, 6]),
        chunk("ab", {"content": [entry("a", -1, token_id=5), entry("b", -2, token_id=6)]}),
        chunk("ab", {"content": [entry("a", -1, id=5), entry("b", -2, id=6)]}),
        chunk(
            "ab",
            {"tokens": ["a", "b"], "token_logprobs": [-1, -2], "token_ids": [5, 6]},
        ),
    ],
    ids=["ids of the choice", "ids of entries", "short ids of entries", "parallel lists"],
)
def test_servers_that_send_token_ids(said: bytes) -> None:
    logprobs = folded(stream(said))
    assert logprobs.token_ids is not None
    assert logprobs.token_ids.tolist() == [5, 6]
    assert logprobs.tokens == ["a", "b"]
    assert logprobs.logprobs.tolist() == [-1.0, -2.0]


def test_tokens_that_are_written_as_their_ids() -> None:
    entries = [entry("token_id:15", -1), entry("token_id:x", -2)]
    assert wire_of(stream(chunk("ab", {"content": entries}))) == {
        "tokens": ["token_id:15", "token_id:x"],
        "logprobs": [-1.0, -2.0],
        "tokenIds": [15, None],
    }


def test_ids_without_log_probabilities_and_the_other_way_round() -> None:
    body = stream(
        chunk("a", {"content": [entry("a", -1)]}),
        chunk("b", None, token_ids=[7, 8]),
        chunk("c", {"content": [entry("c", -3)]}, token_ids=[9, 10]),
    )
    assert wire_of(body) == {
        "tokens": ["a", "", "", "c", ""],
        "logprobs": [-1.0, None, None, -3.0, None],
        "tokenIds": [None, 7, 8, 9, 10],
    }


def test_older_servers_name_alternatives_by_their_token() -> None:
    shape = {"tokens": ["a"], "token_logprobs": [None], "top_logprobs": [{"b": -1, "c": -2}]}
    assert wire_of(stream(chunk("a", shape))) == {
        "tokens": ["a"],
        "logprobs": [None],
        "top": [[{"token": "b", "logprob": -1.0}, {"token": "c", "logprob": -2.0}]],
    }


FULL: Wire = {
    "tokens": ["a", 'é"\n', ""],
    "logprobs": [-0.1, None, -1e-17],
    "tokenIds": [1, None, 2**62],
    "top": [[{"token": "b", "logprob": -0.5}], [], [{"token": "", "logprob": None}]],
}


def test_the_wire_form_pickles_and_json_change_nothing() -> None:
    logprobs = Logprobs.from_dict(FULL)
    assert logprobs.to_dict() == FULL
    assert json.loads(logprobs.to_json()) == FULL
    for same in (
        Logprobs.from_json(logprobs.to_json()),
        Logprobs.from_json(logprobs.to_json().encode()),
        pickle.loads(pickle.dumps(logprobs)),  # noqa: S301 - our own
    ):
        assert same == logprobs
        assert hash(same) == hash(logprobs)
        assert same.logprobs.tobytes() == logprobs.logprobs.tobytes()
    assert logprobs != Logprobs.from_dict({**FULL, "tokenIds": [1, 2, 3]})
    assert logprobs != FULL


def test_views_are_flat_read_only_and_outlive_their_owner() -> None:
    logprobs = Logprobs.from_dict(FULL)
    view, ids = logprobs.logprobs, logprobs.token_ids
    assert ids is not None
    assert (view.format, view.itemsize, view.contiguous, view.readonly) == ("d", 8, True, True)
    assert (ids.format, ids.tolist()) == ("q", [1, -1, 2**62])
    logprobs.logprobs.release()
    assert logprobs.logprobs.obj is view.obj
    del logprobs
    assert view[0] == -0.1


def test_numpy_copies_nothing() -> None:
    numpy = pytest.importorskip("numpy")
    logprobs = Logprobs.from_dict(FULL)
    one, two = numpy.asarray(logprobs.logprobs), numpy.asarray(logprobs.logprobs)
    assert one.dtype == numpy.float64
    assert numpy.asarray(logprobs.token_ids).dtype == numpy.int64
    assert numpy.shares_memory(one, two)


def test_a_message_carries_them_through_json() -> None:
    body = stream(chunk("Hi", {"content": [entry("Hi", -0.1, token_id=3)]}))
    message = deltafold.fold(body, DIALECT, logprobs=True)
    wire = message.to_dict()
    assert wire["meta"]["logprobs"] == {  # type: ignore[index]
        "tokens": ["Hi"],
        "logprobs": [-0.1],
        "tokenIds": [3],
    }
    assert Message.from_json(message.to_json()) == message
    assert message.model_dump()["meta"]["logprobs"] is message.meta.logprobs
    assert pickle.loads(pickle.dumps(message)) == message  # noqa: S301 - our own
    with pytest.raises(ValidationError, match=r"tokens\[0\]"):
        Message.model_validate({**wire, "meta": {"logprobs": {"tokens": [1]}}})


def test_a_field_of_a_model() -> None:
    class Rollout(BaseModel):
        logprobs: Logprobs

    rollout = Rollout(logprobs=Logprobs.from_dict(FULL))
    assert Rollout.model_validate_json(rollout.model_dump_json()) == rollout
    assert "tokenIds" in Rollout.model_json_schema()["properties"]["logprobs"]["properties"]


@pytest.mark.parametrize("made", ASSEMBLERS)
def test_deltas_by_hand_are_the_same_arrays(made: type[Assembler]) -> None:
    assembler = made()
    consume(
        assembler,
        start(),
        thinking("a", logprobs={"tokens": ["a"]}),
        text("b", logprobs={"tokens": ["b"], "logprobs": [-1], "tokenIds": [4]}),
        text("", logprobs={}),
        text("c", logprobs={"tokens": ["c"], "top": [[{"token": "d", "logprob": -2}]]}),
    )
    early = assembler.snapshot().meta.logprobs
    consume(assembler, text("d", logprobs={"tokens": ["d"], "logprobs": [-3]}), done())
    assert early is not None
    assert early.tokens == ["a", "b", "c"]
    logprobs = assembler.build_final_message().meta.logprobs
    assert logprobs is not None
    assert logprobs.to_dict() == {
        "tokens": ["a", "b", "c", "d"],
        "logprobs": [None, -1.0, None, -3.0],
        "tokenIds": [None, 4, None, None],
        "top": [[], [], [{"token": "d", "logprob": -2.0}], []],
    }


BAD: dict[str, tuple[object, str]] = {
    "a list": ([], "mapping"),
    "tokens a string": ({"tokens": "a"}, "tokens must be a list"),
    "a token a number": ({"tokens": ["a", 1]}, r"tokens\[1\] must be a string"),
    "a number a string": ({"logprobs": ["-1"]}, r"logprobs\[0\] must be a finite number"),
    "a number too big": ({"logprobs": [10**400]}, r"logprobs\[0\] must be a finite number"),
    "no JSON": ({"logprobs": [math.nan]}, "no JSON"),
    "an id a float": ({"tokenIds": [1.5]}, r"tokenIds\[0\] must be an integer"),
    "an id negative": ({"tokenIds": [-1]}, r"tokenIds\[0\] must be an integer"),
    "top no lists": ({"top": [{}]}, r"top\[0\] must be a list"),
    "an alternative a string": ({"top": [["a"]]}, r"top\[0\]\[0\] must be an object"),
    "its token a number": ({"top": [[{"token": 1}]]}, r"top\[0\]\[0\].token must be a string"),
    "lengths": ({"tokens": ["a"], "logprobs": []}, "logprobs must be as long as tokens"),
}


@pytest.mark.parametrize(("bad", "message"), BAD.values(), ids=BAD)
def test_what_is_wrong_is_named(bad: Wire, message: str) -> None:
    with pytest.raises(ContractError, match=message) as caught:
        Logprobs.from_dict(bad)
    assert caught.value.field == "logprobs"
    with pytest.raises(ContractError, match=message) as caught:
        MessageDelta("run", 3, "text", {"textDelta": "a", "logprobs": bad})
    assert (caught.value.field, caught.value.seq) == ("logprobs", 3)


def test_json_that_is_none() -> None:
    for text_of_nothing in ("", "{", "[]", '{"tokens": ["a"]} x', b"\xff"):
        with pytest.raises(ContractError):
            Logprobs.from_json(text_of_nothing)
    with pytest.raises(TypeError, match="int"):
        Logprobs.from_json(1)  # type: ignore[arg-type]


def spelled(token: str, octets: list[int] | None) -> Wire:
    return entry(token, -0.5, bytes=octets)


# A wave, whose bytes two tokens share, under the texts that servers write for such tokens.
HALVES = [
    spelled("bytes:\\xf0\\x9f\\x8c", [240, 159, 140]),
    spelled("\ufffd", [138]),
    spelled("<0x0A>", [10]),
    spelled("", [226]),
    spelled("é", [195, 169]),
    spelled("plain", None),
]


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_a_token_that_ends_inside_a_character_keeps_its_bytes(separators: tuple[str, str]) -> None:
    other = {"token": "\ufffd", "logprob": -1.0, "bytes": [139]}
    top = {**spelled("\ufffd", [138]), "top_logprobs": [other]}
    choice = {"index": 0, "delta": {"content": "x"}, "logprobs": {"content": [*HALVES, top]}}
    event = {"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [choice]}
    text = json.dumps(event, separators=separators, ensure_ascii=False)
    done = json.dumps({**event, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    body = f"data: {text}\n\ndata: {done}\n\ndata: [DONE]\n\n".encode()
    message = deltafold.fold(body, "openai-chat", logprobs=True)
    logprobs = message.meta.logprobs
    assert logprobs is not None
    octets = [b"\xf0\x9f\x8c", b"\x8a", b"\n", b"\xe2", "é".encode(), b"plain", b"\x8a"]
    assert logprobs.token_bytes == octets
    assert logprobs.to_dict()["bytes"] == [
        [240, 159, 140], [138], [10], [226], None, None, [138]
    ]  # fmt: skip
    assert Logprobs.from_json(logprobs.to_json()) == logprobs
    written: Any = deltafold.encode_message(message, "openai-chat").json
    content = written["choices"][0]["logprobs"]["content"]
    assert [bytes(one["bytes"]) for one in content] == octets
    assert content[-1]["top_logprobs"][0]["bytes"] == [139]


def test_the_bytes_of_a_wire_form_are_checked() -> None:
    wire = {"tokens": ["a"], "logprobs": [-1.0], "bytes": [[256]]}
    with pytest.raises(ContractError, match=r"bytes\[0\]"):
        Logprobs.from_dict(wire)
