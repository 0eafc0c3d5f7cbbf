"""Outputs: the value of an answer, the partial value while it streams, and the errors."""

import asyncio
import copy
import gzip
import json
import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, cast

import pytest
from pydantic import Field

import deltafold
from any_name import AnyName
from corpus import CORPUS, needs_corpus
from deltafold import Message, MisuseError, ModelError, Output, OutputError, PartialJson
from deltafold.streams.output_streams import AsyncOutputStream, Expected, OutputStream
from deltafold.testing import Recording, ReplayTransport
from output_bodies import anthropic, chat
from protocol_bodies import CHAT, DONE, call_chunk, chunk, finish, said
from recipes import City, Dish, Place, Price, Recipe, Step
from splits import SIZES, halves, sized

TEXT: Final = (
    '{"title": "Süp\\u0070e \\ud83e\\udd63\\n\\"x\\"", "steps": [{"text": "a"}, {"text": "b"}]}'
)


def spoken(text: str, size: int = 5, reason: str = "stop") -> bytes:
    """Return an answer of Chat that says a text in pieces."""
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    return said(*pieces) + finish(reason) + DONE


def opened(body: bytes | Iterator[bytes], output: object, tool: str | None = None) -> Any:  # noqa: ANN401 - of any output
    """Return the stream of a body."""
    expected = Expected[Any, Any](Output.of(output), tool)
    events = body.split(b"\n\n") if isinstance(body, bytes) else []
    chunks = iter([event + b"\n\n" for event in events]) if events else cast("Any", body)
    return OutputStream(expected, chunks, CHAT)


def output_of(body: bytes, output: object) -> Any:  # noqa: ANN401 - of any output
    with opened(body, output) as stream:
        return stream.final_output()


def failure(body: bytes, output: object = Dish) -> OutputError:
    with pytest.raises(OutputError) as caught:
        output_of(body, output)
    return caught.value


def is_prefix(small: object, large: object) -> bool:
    """Return whether a partial value can grow into another."""
    if isinstance(small, dict):
        assert isinstance(large, dict)
        grown = cast("dict[str, object]", large)
        return all(
            key in grown and is_prefix(value, grown[key])
            for key, value in cast("dict[str, object]", small).items()
        )
    if isinstance(small, list):
        items, more = cast("list[object]", small), cast("list[object]", large)
        return len(items) <= len(more) and all(map(is_prefix, items, more))
    return (
        large.startswith(small)
        if isinstance(small, str) and isinstance(large, str)
        else small == large
    )


@dataclass
class Item:
    """Item of a list."""

    name: str
    count: int = 1


ITEMS: Final = [Item("a"), Item("b", 2)]


@pytest.mark.parametrize(
    ("output", "text", "value"),
    [
        (Dish, '{"title": "T"}', Dish(title="T")),
        (Place, '{"name": "N", "tags": ["a"]}', Place("N", ["a"])),
        (City, '{"city": "P", "country": "F"}', {"city": "P", "country": "F"}),
        (
            list[Item],
            '{"value": [{"name": "a"}, {"name": "b", "count": 2}]}',
            [Item("a"), Item("b", 2)],
        ),
        (str, '{"value": "text"}', "text"),
        (int | str, '{"value": 3}', 3),
        (dict[str, int], '{"a": 1}', {"a": 1}),
        (Annotated[list[int], Field(min_length=1)], '{"value": [1]}', [1]),
        (Price, '{"amount-in-€": 2}', Price.model_validate({"amount-in-€": 2.0})),
        ({"type": "object"}, '{"a": [1, null]}', {"a": [1, None]}),
        ({"type": "array", "items": {}}, '{"value": [1]}', [1]),
        ({"anyOf": [{"type": "null"}]}, '{"value": null}', None),
    ],
)
def test_the_output_has_its_type(output: object, text: str, value: object) -> None:
    found = output_of(spoken(text), output)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize("text", [f"```json\n{TEXT}\n```", f" \n```\n{TEXT}```\n", f"\n{TEXT}  "])
def test_a_fence_is_left_out(text: str) -> None:
    with opened(spoken(text, 1), Dish) as stream:
        last: object = None
        for _ in stream:
            last = copy.deepcopy(stream.partial)
        assert last == json.loads(TEXT)
        assert stream.final_output().steps == [Step(text="a"), Step(text="b")]


@pytest.mark.parametrize("tool", [None, "Dish"])
def test_every_chunking_gives_the_same_partials_and_output(tool: str | None) -> None:
    body = chat([TEXT[at : at + 3] for at in range(0, len(TEXT), 3)], tool)
    expected = json.loads(TEXT)
    cuts = [*(sized(body, size) for size in SIZES), *list(halves(body))[::7]]
    for pieces in cuts:
        with opened(iter(pieces), Dish, tool) as stream:
            before: object = {}
            changed: list[Any] = []
            for _ in stream:
                now = copy.deepcopy(stream.partial)
                assert is_prefix(before, now)
                before = now
                changed += stream.changes()
            assert before == expected
            assert stream.partial == expected
            assert stream.final_output() == Dish.model_validate(expected)
            assert applied(changed) == expected


def applied(changes: list[tuple[tuple[str | int, ...], str, Any]]) -> object:
    """Return the value that changes build."""
    top: Any = [None]
    for path, sign, value in changes:
        holder: Any = top
        for key in (0, *path)[:-1]:
            holder = holder[key]
        last: Any = path[-1] if path else 0
        if sign == "append":
            holder[last] += value
        elif type(last) is int and last == len(holder):
            holder.append(value)
        else:
            holder[last] = value
    return cast("list[object]", top)[0]


def test_an_awaited_stream_is_the_same() -> None:
    transport = ReplayTransport([Recording.of_events(spoken(TEXT))] * 2)
    model = deltafold.OpenAIChatModel({"model_id": "m"}, client=transport, api_key="k")

    async def main() -> None:
        async with model.stream("A dish.", output=list[Item]) as listed:
            assert cast("object", listed.partial) == []
        async with model.stream("A dish.", output=Dish) as stream:
            assert isinstance(stream, AsyncOutputStream)
            titles = [stream.partial.get("title") async for _ in stream]
            assert (titles[0], titles[-1]) == (None, 'Süppe 🥣\n"x"')
            assert (await stream.final_output()).title == 'Süppe 🥣\n"x"'
            assert await stream.final_output() is await stream.final_output()

    asyncio.run(main())


def test_partials_of_a_list_and_of_a_text() -> None:
    with opened(spoken('{"value": ["ab", "c"]}', 1), list[str]) as stream:
        seen = [copy.deepcopy(stream.partial) for _ in stream]
        assert stream.changes()[0] == ((), "set", [])
    assert (seen[0], seen[-1]) == ([], ["ab", "c"])
    assert ["a"] in seen
    with opened(spoken('{"value": "abc"}', 1), str) as stream:
        seen = [stream.partial for _ in stream]
    assert "ab" in seen
    assert (seen[0], seen[-1]) == ("", "abc")


def test_one_object_grows_and_the_value_of_the_caller_does_not() -> None:
    with opened(spoken('{"title": "abcdef", "tags": ["x"]}', 1), {"type": "object"}) as stream:
        first: Any = None
        kept: list[str] = []
        for _ in stream:
            partial = stream.partial
            if "title" in partial:
                first = first or partial
                assert partial is first
                kept.append(partial["title"])
    assert kept[:7] == ["", "a", "ab", "abc", "abcd", "abcde", "abcdef"]


def test_following_reads_each_character_once() -> None:
    """The reader counts the bytes it parsed, so that no clock is needed."""
    text = json.dumps({"title": "x" * 20_000, "steps": [{"text": "y"}] * 500})
    with opened(spoken(text, 50), Dish) as stream:
        assembler = stream._core.assembler
        reader: PartialJson = assembler.follow_json()
        for _ in stream:
            reader.live()
        assert repr(reader) == f"<PartialJson complete, {len(text)} bytes>"


def test_a_reader_has_one_kind_of_value() -> None:
    reader = PartialJson()
    reader.feed('{"a": "b')
    assert reader.live() == {"a": "b"}
    for request in (reader.value, reader.changes, lambda: reader.path):
        with pytest.raises(MisuseError, match="live"):
            request()
    other = PartialJson()
    other.feed("[1, ")
    other.value()
    with pytest.raises(MisuseError, match="live"):
        other.live()


def test_a_value_that_the_caller_changed_does_not_break_the_reader() -> None:
    reader = PartialJson()
    reader.feed('{"a": "b')
    cast("dict[str, object]", reader.live()).clear()
    reader.feed('c", "d": [1, "e')
    value = cast("dict[str, Any]", reader.live())
    assert value["d"] == [1, "e"]
    value["d"].clear()
    reader.feed("f")
    with pytest.raises(IndexError):
        reader.live()


@pytest.mark.parametrize(
    ("body", "defect", "reason"),
    [
        (spoken('{"title": "a'), "no_json", "EOF while parsing a string"),
        (spoken('{"title": "a', reason="length"), "cut", "was cut after 12 characters"),
        (spoken(" "), "empty", "The answer is empty."),
        (finish("stop") + DONE, "empty", "The answer is empty."),
        (spoken('Here it is: {"title": "a"}'), "no_json", 'begins with "Here it is: '),
        (spoken("x", reason="content_filter"), "refused", "A filter of the provider"),
        (chunk({"refusal": "I will not."}) + finish("stop") + DONE, "refused", "I will not."),
        (chat(['{"zone": 1}'], "clock"), "tools_called", "called tools first: clock"),
        (
            call_chunk('{"title": "a', name="Dish", index=0, id="c") + finish("length") + DONE,
            "cut",
            "was cut after 12 characters",
        ),
        (
            spoken('{"title": 3, "steps": [{"text": "a"}, {"text": "", "minutes": -1}]}'),
            "invalid",
            (
                "title: Input should be a valid string (got 3); steps.1.text: String should have "
                'at least 1 character (got ""); steps.1.minutes: Input should be greater than'
            ),
        ),
    ],
)
def test_an_answer_without_the_output_is_an_error(body: bytes, defect: str, reason: str) -> None:
    error = failure(body)
    assert error.defect == defect
    assert reason in error.reason
    assert error.reason == str(error)
    assert isinstance(error.message, Message)
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    assert (again.defect, again.reason, again.text) == (defect, error.reason, error.text)
    assert again.message.same_content(error.message)


def test_places_in_a_wrapped_output_have_no_wrapper() -> None:
    error = failure(spoken('{"value": [1, "x"]}'), list[int])
    assert "follow the schema. 1: Input should be a valid integer" in error.reason


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[1]", "must be an object (got [1])"),
        ('{"a": 1}', "lacks b"),
        ('{"b": "x"}', 'b: must be of type integer (got "x")'),
        ('{"b": true}', "b: must be of type integer (got true)"),
    ],
)
def test_a_schema_checks_types_and_required_members(text: str, reason: str) -> None:
    schema = {"type": "object", "properties": {"b": {"type": "integer"}}, "required": ["b"]}
    assert reason in failure(spoken(text), schema).reason


def test_a_long_list_of_defects_is_cut() -> None:
    steps = json.dumps({"title": "t" * 9, "steps": [{"text": 1}] * 30})
    reason = failure(spoken(steps)).reason
    assert "and 20 more" in reason


def test_a_whole_object_before_the_limit_is_the_output() -> None:
    assert output_of(spoken('{"title": "T"}  ', reason="length"), Dish) == Dish(title="T")


def test_a_failed_stream_raises_its_own_error() -> None:
    with opened(said('{"title"'), Dish) as stream:
        for _ in stream:
            pass
        assert stream.partial == {}
        with pytest.raises(ModelError):
            stream.final_output()


def test_arguments_that_are_a_string_are_decoded() -> None:
    message = deltafold.fold(chat([json.dumps('{"title": "T"}')], "Dish"), CHAT)
    assert Output(Dish).of_message(message) == Dish(title="T")


@pytest.mark.parametrize("wrong", [object(), "Dish", 3])
def test_a_value_is_no_type(wrong: object) -> None:
    with pytest.raises(ValueError, match="no schema for"):
        Output.of(wrong)
    with pytest.raises(ValueError, match="mode must be"):
        Output(Dish, mode=cast("Any", "json"))


def test_names_fit_every_provider() -> None:
    assert Output({"title": "Käse & Brot"}).name == "K_se_Brot"
    assert Output(list[Dish]).name == "output"
    assert Output(Dish, name="x" * 80).name == "x" * 64
    assert Output(Place).description == "Place on a map."
    assert Output(Dish).json_schema is Output(Dish).json_schema


def test_from_pydantic_has_the_schema_of_an_output() -> None:
    schema = deltafold.OutputSchema.from_pydantic(Recipe)
    output = Output(Recipe)
    assert schema.json_schema == output.json_schema
    assert (schema.name, schema.description) == (output.name, output.description)


def is_object(text: str) -> bool:
    """Return whether a text is one JSON object."""
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _recorded_outputs() -> list[tuple[AnyName, str]]:
    """Return the dialect and path of each recording whose text is a JSON object."""
    decoded = set(deltafold.dialect_names())
    found: list[tuple[str, str]] = []
    files: dict[str, str] = {}
    for line in (CORPUS / "manifest.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        files[row["id"]] = row["file"]
    for line in (CORPUS / "expected.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        text = (row.get("text") or "").strip().removeprefix("```json").removesuffix("```").strip()
        if (
            row["dialect"] in decoded
            and row.get("terminal") == "done"
            and not row["tool_calls"]
            and is_object(text)
        ):
            found.append((row["dialect"], files[row["id"]]))
    return found


@needs_corpus
def test_recorded_outputs_are_followed_to_their_value() -> None:
    kept: dict[str, int] = {}
    for dialect, file in _recorded_outputs():
        body = (CORPUS / file).read_bytes()
        expected = Expected[Any, Any](Output.of({"type": "object"}))
        with OutputStream(expected, iter(sized(body, 97)), dialect) as stream:
            before: Mapping[str, object] = {}
            for _ in stream:
                now = copy.deepcopy(stream.partial)
                assert is_prefix(before, now), file
                before = now
            value = stream.final_output()
        assert value == before == stream.partial, file
        kept[dialect] = kept.get(dialect, 0) + 1
    assert sum(kept.values()) >= 20
    assert len(kept) >= 3


@needs_corpus
def test_recorded_schemas_of_requests_become_outputs() -> None:
    """Each recorded schema is sent unchanged to the API that has accepted it."""
    with gzip.open(CORPUS / "requests.jsonl.gz") as lines:
        rows: list[Any] = [json.loads(line) for line in lines]
    forms: list[dict[str, Any]] = [
        row["body"].get("response_format") or {}
        for row in rows
        if row["dialect"] == CHAT and row["status"] == 200
    ]
    given = [form["json_schema"] for form in forms if form.get("type") == "json_schema"]
    transport = ReplayTransport([Recording.of_events(spoken("{}"))] * len(given))
    with deltafold.OpenAIChatModel({"model_id": "m"}, client=transport, api_key="k") as model:
        for schema in given:
            name, strict = schema.get("name"), schema.get("strict")
            output = Output(cast("dict[str, object]", schema["schema"]), strict=strict, name=name)
            with model.stream_sync("x", output=output) as stream:
                stream.final_message()
    sent = [cast("dict[str, Any]", request.json()) for request in transport.requests]
    found = [body["response_format"]["json_schema"] for body in sent]
    assert [form["schema"] for form in found] == [form["schema"] for form in given]
    assert [form.get("strict") for form in found] == [form.get("strict") for form in given]
    assert len(given) > 30


def test_text_before_a_call_of_the_tool_is_not_the_output() -> None:
    body = said("Let me see.") + chat(['{"title": "T"}'], "Dish")
    with opened(body, Dish, "Dish") as stream:
        assert stream.final_output() == Dish(title="T")
        assert stream.partial == {"title": "T"}


def test_an_anthropic_call_is_followed() -> None:
    expected = Expected[Any, Any](Output(Dish), "Dish")
    body = anthropic(['{"tit', 'le": "T"}'], "Dish")
    with OutputStream(expected, iter([body]), "anthropic-messages") as stream:
        assert stream.final_output() == Dish(title="T")
        assert stream.partial == {"title": "T"}
