"""A message of a fold makes its fields at the first read, without a visible difference.

Each observation is made on a fresh message of each fixture, and on two twins that were made
eagerly: one with every field read before, and one that was read from the wire form.
"""

import copy
import gc
import inspect
import pickle
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, cast

import pytest
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from deltafold import Decoder, Fold, Message, MessageAssembler
from deltafold.contract.usage import Usage
from deltafold.message.messages import Meta, TextPart, ToolCallPart
from deltafold.message.parts import MessagePart
from fixture_bodies import CASES
from wire_deltas import args, call, consume, done, end, error, start, text, thinking, usage

FIELDS: Final = tuple(Message.model_fields)


class Turn(BaseModel):
    """A message as a field of another model."""

    message: Message
    others: list[Message] = []


class View(BaseModel):
    """A model that is read from the attributes of a message."""

    model_config = ConfigDict(from_attributes=True)

    parts: list[MessagePart]
    meta: Meta


class Own(Message):
    """A message class of the caller."""


MESSAGES: Final[TypeAdapter[list[Message]]] = TypeAdapter(list[Message])


def outcome(action: Callable[[Message], object], message: Message) -> object:
    try:
        return action(message)
    except Exception as caught:  # noqa: BLE001 - whatever the one raises, the other must raise
        return type(caught), str(caught)


def again(message: Message, protocol: int) -> object:
    return pickle.loads(pickle.dumps(message, protocol))  # noqa: S301


def inside(message: Message) -> list[object]:
    """Return what pydantic keeps of a message beyond its fields."""
    return [
        message.__pydantic_extra__,
        message.__pydantic_private__,
        message.model_extra,
        message.meta.model_extra,
    ]


def of_parts(message: Message) -> list[object]:
    return [[part.model_dump(), list(part), repr(part)] for part in message.parts]


OBSERVATIONS: Final[dict[str, Callable[[Message], object]]] = {
    **{f"message.{name}": attrgetter(name) for name in FIELDS},
    **{f"meta.{name}": attrgetter(f"meta.{name}") for name in Meta.model_fields},
    **{f"usage.{name}": attrgetter(f"meta.usage.{name}") for name in Usage.model_fields},
    "usage": lambda message: repr(message.meta.usage),
    "usage, hashed": lambda message: hash(message.meta.usage),
    "usage, changed": lambda message: setattr(message.meta.usage, "cost", 1.0),
    "usage, copied": lambda message: [
        copy.copy(message.meta.usage),
        list(message.meta.usage or ()),
    ],
    "usage, pickled": lambda message: pickle.loads(pickle.dumps(message.meta.usage)),  # noqa: S301
    "usage, dumped": lambda message: message.meta.usage and message.meta.usage.model_dump_json(),
    "text": lambda message: message.text,
    "thinking": lambda message: message.thinking,
    "text after parts": lambda message: (message.parts, message.text, message.thinking),
    "calls": lambda message: message.tool_calls,
    "arguments": lambda message: [call.arguments for call in message.tool_calls],
    "runnable": lambda message: message.runnable_tool_calls,
    "client actions": lambda message: message.client_actions,
    "no attribute": lambda message: message.nothing,  # type: ignore[attr-defined]
    "no attribute of meta": lambda message: message.meta.nothing,  # type: ignore[attr-defined]
    "repr": repr,
    "str": str,
    "repr of meta": lambda message: repr(message.meta),
    "repr args": lambda message: list(message.__repr_args__()),
    "rich repr": lambda message: list(cast("Any", message).__rich_repr__()),
    "dump": lambda message: message.model_dump(),
    "dump in order": lambda message: repr(message.model_dump()),
    "dump for JSON": lambda message: message.model_dump(mode="json"),
    "dump some": lambda message: message.model_dump(include={"parts", "run_id", "runId"}),
    "dump others": lambda message: message.model_dump(exclude={"parts": {0}, "meta": True}),
    "dump by name": lambda message: message.model_dump(by_alias=False, exclude_none=True),
    "dump unset": lambda message: message.model_dump(exclude_unset=True, exclude_defaults=True),
    "JSON": lambda message: message.model_dump_json(),
    "JSON, indented": lambda message: message.model_dump_json(indent=2, by_alias=True),
    "JSON of some": lambda message: message.model_dump_json(include={"meta"}, round_trip=True),
    "to_dict": lambda message: repr(message.to_dict()),
    "to_json": lambda message: message.to_json(),
    "iteration": list,
    "iteration of meta": lambda message: list(message.meta),
    "vars": lambda message: list(vars(message).items()),
    "vars of meta": lambda message: list(vars(message.meta).items()),
    "dir": lambda message: [dir(message), dir(message.meta)],
    "inside": inside,
    "copy": lambda message: [copy.copy(message), list(copy.copy(message))],
    "deep copy": lambda message: [copy.deepcopy(message), list(copy.deepcopy(message))],
    "copy of meta": lambda message: [copy.copy(message.meta), copy.deepcopy(message.meta)],
    "model_copy": lambda message: message.model_copy(),
    "deep model_copy": lambda message: message.model_copy(deep=True),
    "changed copy": lambda message: message.model_copy(update={"run_id": "other"}),
    "changed deep copy": lambda message: message.model_copy(update={"parts": []}, deep=True),
    **{
        f"pickle {protocol}": partial(again, protocol=protocol)
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1)
    },
    "pickle of meta": lambda message: pickle.loads(pickle.dumps(message.meta)),  # noqa: S301
    "hash": hash,
    "hash of meta": lambda message: hash(message.meta),
    "validated": lambda message: Message.model_validate(message) is message,
    "not of a subclass": lambda message: Own.model_validate(message).parts,
    "of a subclass": lambda message: Own.model_validate(dict(message)).model_dump(),
    "in a model": lambda message: Turn(message=message, others=[message]),
    "dump in a model": lambda message: Turn(message=message, others=[message]).model_dump(),
    "JSON in a model": lambda message: Turn(message=message).model_dump_json(),
    "in a list": lambda message: MESSAGES.validate_python([message, message]),
    "dump in a list": lambda message: MESSAGES.dump_python([message], mode="json"),
    "JSON in a list": lambda message: MESSAGES.dump_json([message]),
    "attributes": View.model_validate,
    "classes": lambda message: [type(message), message.__class__, type(message.meta)],
    "static": lambda message: inspect.getattr_static(message, "model_config"),
    "parts": of_parts,
    "same content": lambda message: message.same_content(Message.from_dict(message.to_dict())),
}
"""Observations that give the same on every twin."""

ONLY_OF_FOLDS: Final[dict[str, Callable[[Message], object]]] = {
    "fields set": lambda message: message.model_fields_set,
    "fields set of meta": lambda message: message.meta.model_fields_set,
    "fields set of parts": lambda message: [part.model_fields_set for part in message.parts],
}
"""A message that was read from its wire form knows which members were there."""


def folded(case: Path) -> MessageAssembler:
    [wire] = case.glob("wire.*")
    decoder = Decoder(cast("Any", case.parent.name), run_id="run")
    assembler = MessageAssembler("run")
    for batch in (decoder.feed(wire.read_bytes()), decoder.close()):
        assembler.consume(batch)
    return assembler


def read_whole(message: Message) -> Message:
    """Read every field of a message."""
    for name in FIELDS:
        getattr(message, name)
    for name in Meta.model_fields:
        getattr(message.meta, name)
    for part in message.parts:
        repr(part)
    assert vars(message)
    assert vars(message.meta)
    return message


@pytest.mark.one_in(4)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}/{case.name}")
def test_a_lazy_message_looks_like_an_eager_one(case: Path) -> None:
    assembler = folded(case)
    touched = read_whole(assembler.snapshot())
    parsed = Message.from_dict(assembler.snapshot().to_dict())
    assert assembler.snapshot() == touched
    assert touched == assembler.snapshot()
    assert assembler.snapshot() == parsed
    assert parsed == assembler.snapshot()
    assert assembler.snapshot() == assembler.snapshot()
    assert assembler.snapshot().meta == parsed.meta
    assert parsed.meta == assembler.snapshot().meta
    for name, observe in OBSERVATIONS.items():
        seen = outcome(observe, assembler.snapshot())
        assert seen == outcome(observe, touched), name
        assert seen == outcome(observe, parsed), name
    for name, observe in ONLY_OF_FOLDS.items():
        assert observe(assembler.snapshot()) == observe(touched), name


@pytest.fixture
def assembler() -> MessageAssembler:
    assembler = MessageAssembler("run")
    consume(
        assembler,
        start(),
        thinking("let me see", partIndex=0),
        text("It is", partIndex=1),
        call("a", partIndex=2),
        args('{"q": 1}', "a"),
        end("a"),
        call("b", partIndex=3),
        args("[1", "b"),
        end("b"),
        usage(details={"raw": {"n": 1}}),
        done("tool_calls", warnings=[{"code": "noise", "message": "m"}], details={"a": {"b": 1}}),
    )
    return assembler


@pytest.mark.one_in(4)
@pytest.mark.parametrize("first", [*FIELDS, "text", "thinking", "tool_calls"])
@pytest.mark.parametrize("observation", OBSERVATIONS)
def test_what_was_read_first_changes_nothing(
    assembler: MessageAssembler, first: str, observation: str
) -> None:
    observe, message = OBSERVATIONS[observation], assembler.snapshot()
    getattr(message, first)
    assert outcome(observe, message) == outcome(observe, read_whole(assembler.snapshot()))


@pytest.mark.parametrize("first", Meta.model_fields)
def test_metadata_is_in_order_whatever_was_read_first(
    assembler: MessageAssembler, first: str
) -> None:
    message = assembler.snapshot()
    getattr(message.meta, first)
    assert list(vars(message.meta)) == list(Meta.model_fields)
    assert message == assembler.snapshot()


def test_a_field_is_made_once(assembler: MessageAssembler) -> None:
    message = assembler.snapshot()
    for name in FIELDS:
        assert getattr(message, name) is getattr(message, name)
    for name in Meta.model_fields:
        assert getattr(message.meta, name) is getattr(message.meta, name)
    parts = message.parts
    vars(message)
    assert message.parts is parts


def changed(assembler: MessageAssembler, change: Callable[[Message], object]) -> list[Message]:
    """Return a lazy message and one that was read, both changed."""
    messages = [assembler.snapshot(), read_whole(assembler.snapshot())]
    for message in messages:
        change(message)
    return messages


def set_all_of_meta(message: Message) -> None:
    for name in Meta.model_fields:
        setattr(message.meta, name, name)


CHANGES: Final[dict[str, Callable[[Message], object]]] = {
    "append": lambda message: message.parts.append(TextPart(text="more")),
    "clear": lambda message: message.parts.clear(),
    "parts": lambda message: setattr(message, "parts", [TextPart(text="other")]),
    "id": lambda message: setattr(message, "id", None),
    "run_id": lambda message: setattr(message, "run_id", "other"),
    "meta": lambda message: setattr(message, "meta", Meta(cost_usd=1.0)),
    "warnings": lambda message: setattr(message.meta, "warnings", []),
    "append warning": lambda message: message.meta.warnings.append({"code": "x"}),
    "append error": lambda message: message.meta.parse_errors.append({"x": 1}),
    "append approval": lambda message: message.meta.approvals.append({"x": 1}),
    "details": lambda message: (message.meta.details or {}).update(more=1),
    "cost": lambda message: setattr(message.meta, "cost_usd", 0.5),
    "all of meta": set_all_of_meta,
    "extra": lambda message: setattr(message.meta, "mine", {"a": 1}),
    "argument": lambda message: (message.tool_calls[0].arguments or {}).update(more=1),
    "vars": lambda message: vars(message).update(run_id="other"),
    "vars of meta": lambda message: vars(message.meta).update(model_id="other"),
    "new vars": lambda message: message.__setattr__("__dict__", {"parts": [], "meta": Meta()}),
    "delete": lambda message: delattr(message, "parts"),
    "unknown": lambda message: outcome(lambda one: setattr(one, "nothing", 1), message),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_seen_by_every_observation(assembler: MessageAssembler, change: str) -> None:
    for name, observe in OBSERVATIONS.items():
        lazy, read = changed(assembler, CHANGES[change])
        assert outcome(observe, lazy) == outcome(observe, read), name
    lazy, read = changed(assembler, CHANGES[change])
    assert lazy.model_fields_set == read.model_fields_set
    assert assembler.snapshot() == read_whole(assembler.snapshot())


def test_a_deleted_field_is_not_made_again(assembler: MessageAssembler) -> None:
    message = assembler.snapshot()
    for model, name in ((message.meta, "usage"), (message, "parts")):
        delattr(model, name)
        with pytest.raises(AttributeError):
            getattr(model, name)
        assert name not in vars(model)


def test_a_snapshot_keeps_its_content_while_the_stream_goes_on() -> None:
    assembler = MessageAssembler("run")
    consume(assembler, start(), text("one"))
    early = assembler.snapshot(), assembler.snapshot()
    assert early[0].text == "one"
    consume(assembler, text(" two"), call("a"), args("{}", "a"), end("a"), usage(), done())
    late = assembler.build_final_message()
    for message in early:
        assert message.text == "one"
        assert message.parts == [TextPart(text="one")]
        assert (message.meta.usage, message.meta.finish_reason) == (None, None)
        assert message.id == late.id
    assert late.text == "one two"
    assembler.reset()
    consume(assembler, start(), text("three"), done())
    assert late.text == "one two"
    assert [call.arguments for call in late.tool_calls] == [{}]
    other = assembler.build_final_message()
    assert (other.text, other.id == late.id) == ("three", False)


def test_the_message_of_an_error_is_lazy_too() -> None:
    assembler = MessageAssembler("run")
    consume(assembler, start(), text("one"), error("timeout", message="m"))
    failure = assembler.error
    assert failure is not None
    assert failure.partial_message is not None
    assert failure.partial_message == read_whole(assembler.snapshot())
    assert failure.partial_message.meta.is_api_error_message is True


def test_threads_share_one_list_of_parts(assembler: MessageAssembler) -> None:
    for _ in range(50):
        message = assembler.snapshot()
        found: list[tuple[list[MessagePart], Meta]] = []
        gate = threading.Barrier(4)

        def read(message: Message = message, gate: threading.Barrier = gate) -> None:
            gate.wait()
            found.append((message.parts, message.meta))  # noqa: B023 - joined in the loop

        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all(parts is message.parts and meta is message.meta for parts, meta in found)
        assert vars(message)["parts"] is message.parts


def test_threads_read_and_dump_the_same_fields(assembler: MessageAssembler) -> None:
    eager = read_whole(assembler.snapshot())
    dumped = eager.model_dump_json()
    for _ in range(50):
        message = assembler.snapshot()
        gate = threading.Barrier(6)

        def read_calls(
            message: Message = message, gate: threading.Barrier = gate
        ) -> Sequence[object]:
            gate.wait()
            asked = message.tool_calls[0]
            return asked, asked.parse_warning, asked.arguments, message.parts, message.meta.usage

        def read_parts(
            message: Message = message, gate: threading.Barrier = gate
        ) -> Sequence[object]:
            gate.wait()
            parts, meta = message.parts, message.meta
            asked = next(part for part in parts if isinstance(part, ToolCallPart))
            return asked, asked.parse_warning, asked.arguments, parts, meta.usage

        def dump(message: Message = message, gate: threading.Barrier = gate) -> Sequence[object]:
            gate.wait()
            written = message.model_dump_json(), message == eager
            return *written, sorted(vars(message)), sorted(vars(message.meta))

        with ThreadPoolExecutor(6) as pool:
            reads = [pool.submit(read) for read in (read_calls, read_parts, read_calls)]
            dumps = [pool.submit(dump) for _ in range(3)]
        mine = read_parts(gate=threading.Barrier(1))
        for one in reads:
            assert [id(field) for field in one.result()] == [id(field) for field in mine]
        fields = sorted(Message.model_fields), sorted(Meta.model_fields)
        for one in dumps:
            assert one.result() == (dumped, True, *fields)


def test_what_a_thread_sets_is_kept_while_others_dump(assembler: MessageAssembler) -> None:
    for _ in range(50):
        meta = assembler.snapshot().meta
        gate = threading.Barrier(4)

        def write(name: str, meta: Meta = meta, gate: threading.Barrier = gate) -> None:
            gate.wait()
            setattr(meta, name, 1.5)

        def dump(meta: Meta = meta, gate: threading.Barrier = gate) -> None:
            gate.wait()
            meta.model_dump_json()

        with ThreadPoolExecutor(4) as pool:
            work = [pool.submit(write, name) for name in ("cost_usd", "mine")]
            work += [pool.submit(dump) for _ in range(2)]
        for one in work:
            one.result()
        assert (meta.cost_usd, meta.model_dump()["mine"]) == (1.5, 1.5)


def test_a_cycle_through_a_lazy_message_is_collected(assembler: MessageAssembler) -> None:
    message = assembler.snapshot()
    arguments = message.tool_calls[0].arguments
    assert arguments is not None
    arguments["self"] = message
    meta = message.meta
    meta.warnings = [{"meta": meta, "message": message}]
    gone = weakref.ref(message)
    del message, arguments, meta
    gc.collect()
    assert gone() is None


def test_a_message_holds_neither_decoder_nor_body() -> None:
    body = (
        b'data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    )

    def clock() -> datetime:
        return datetime.now(UTC)

    fold = Fold("openai-chat", clock=clock)
    fold.feed(body)
    fold.close()
    message = fold.message
    gone = weakref.ref(clock)
    del fold, clock
    gc.collect()
    assert gone() is None
    assert message.text == "Hi"


def test_parts_release_the_fold(assembler: MessageAssembler) -> None:
    message = assembler.snapshot()
    assert message.parts
    assert message.text == "It is"
    [part] = [part for part in message.parts if isinstance(part, TextPart)]
    message.parts.remove(part)
    assert message.text == ""
    assert [one["toolCallId"] for one in message.meta.parse_errors] == ["b"]


def test_the_class_has_no_attributes_for_lazy_fields() -> None:
    for cls, name in ((Message, "parts"), (Meta, "usage"), (ToolCallPart, "arguments")):
        with pytest.raises(AttributeError):
            getattr(cls, name)
    with pytest.raises(TypeError):
        Message.__dict__["__dict__"].__set__(Own, {})


def test_a_subclass_has_the_fields_of_an_ordinary_model() -> None:
    own = Own.assistant("x")
    assert own.text == "x"
    assert vars(own)["parts"] == own.parts
    with pytest.raises(ValidationError):
        Own.model_validate({"role": "assistant"})
    construct: Any = Message.model_construct
    unfinished = construct(role="assistant")
    with pytest.raises(AttributeError, match="'Message' object has no attribute 'parts'"):
        _ = unfinished.parts
