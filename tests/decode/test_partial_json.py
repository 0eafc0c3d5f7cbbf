"""`PartialJson`: the value of a text that is being written, what changed in it, and whose it is.

Whatever the cut: snapshots only grow, changes replayed are the value, and the end is what
`json.loads` reads.
"""

import gc
import json
import threading
from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

import deltafold
import reference
from deltafold import InternalError, MessageAssembler, MisuseError, PartialJson
from deltafold.contract.kinds import json_array, json_object
from wire_deltas import Assembler, args, call, consume, done, end, start

Path: TypeAlias = tuple[str | int, ...]
Change: TypeAlias = tuple[Path, Literal["set", "append"], object]

ASSEMBLERS = pytest.mark.parametrize(
    "assembler_class",
    [MessageAssembler, reference.MessageAssembler],
    ids=["extension", "reference"],
)


def read(*pieces: str | bytes, early_numbers: bool = False) -> PartialJson:
    reader = PartialJson(early_numbers=early_numbers)
    for piece in pieces:
        reader.feed(piece)
    return reader


def replay(value: object, changes: Iterable[Change]) -> object:
    """Apply changes in order, as a user interface would."""
    for path, operation, new in changes:
        if not path:
            value = new if operation == "set" else cast("str", value) + cast("str", new)
            continue
        holder = value
        for place in path[:-1]:
            holder = cast("dict[str | int, object]", holder)[place]
        last = path[-1]
        if isinstance(last, int):
            items = cast("list[object]", holder)
            if last == len(items):
                assert operation == "set"
                items.append(new)
                continue
        members = cast("dict[str | int, object]", holder)
        if operation == "append":
            members[last] = cast("str", members[last]) + cast("str", new)
        else:
            members[last] = new
    return value


def grew(earlier: object, later: object) -> bool:
    """Return whether `later` extends `earlier`."""
    if earlier is None:
        return True
    if isinstance(earlier, str):
        return isinstance(later, str) and later.startswith(earlier)
    members, more_members = json_object(earlier), json_object(later)
    if members is not None:
        return more_members is not None and all(
            key in more_members and grew(value, more_members[key]) for key, value in members.items()
        )
    if isinstance(earlier, list):
        items, more = json_array(cast("object", earlier)), json_array(later)
        return len(items) <= len(more) and all(map(grew, items, more))
    return type(earlier) is type(later) and earlier == later


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=20,
)


def cut(data: st.DataObject, whole: bytes) -> Iterator[bytes]:
    rest = whole
    while rest:
        size = data.draw(st.integers(1, max(1, min(len(rest), 12))))
        yield rest[:size]
        rest = rest[size:]


@given(VALUES, st.booleans(), st.data())
def test_any_value_in_any_pieces_grows_into_what_json_reads(
    value: object, ascii_only: bool, data: st.DataObject
) -> None:
    reader = PartialJson()
    snapshot: object = None
    replayed: object = None
    for piece in cut(data, json.dumps(value, ensure_ascii=ascii_only).encode()):
        reader.feed(piece)
        later = reader.value()
        assert grew(snapshot, later)
        snapshot = later
        if data.draw(st.booleans()):
            replayed = replay(replayed, reader.changes())
            assert replayed == later
    reader.close()
    assert (reader.complete, reader.error, reader.path) == (True, None, ())
    assert reader.value() == value
    assert repr(reader.value()) == repr(value)
    assert replay(replayed, reader.changes()) == value
    assert reader.changes() == []


@given(VALUES, st.data())
def test_changes_alone_and_early_numbers_replay_to_the_value(
    value: object, data: st.DataObject
) -> None:
    alone, both = PartialJson(), PartialJson(early_numbers=True)
    replayed: object = None
    replayed_early: object = None
    for piece in cut(data, json.dumps(value).encode()):
        alone.feed(piece)
        both.feed(piece)
        replayed = replay(replayed, alone.changes())
        replayed_early = replay(replayed_early, both.changes())
        assert replayed_early == both.value()
    alone.close()
    assert replay(replayed, alone.changes()) == value


@given(st.text(st.sampled_from('{}[]",:\\u09d8eE+-.tfnlaurs \n'), max_size=40), st.data())
def test_texts_that_are_no_json_end_as_json_loads_does(text: str, data: st.DataObject) -> None:
    reader = PartialJson()
    for piece in cut(data, text.encode()):
        reader.feed(piece)
    whole = read(text)
    reader.close()
    whole.close()
    assert (reader.error, reader.value()) == (whole.error, whole.value())
    try:
        value: object = json.loads(text)
    except ValueError:
        assert reader.error is not None
        assert not reader.complete
    else:
        if reader.error is not None:  # json.loads lets an overflowing number be infinite
            assert "out of range" in reader.error.message
        else:
            assert reader.value() == replaced(value)


def replaced(value: object) -> object:
    """Put U+FFFD in the place of lone surrogates, which `json.loads` keeps."""
    text = json.dumps(value, ensure_ascii=False)
    return json.loads(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))


def test_a_value_as_it_is_written() -> None:
    text = '{"a": [1, {"b": "x\\n\\u00e9"}], "c": tru'
    shown: list[object] = []
    reader = PartialJson()
    for character in text:
        reader.feed(character)
        if not shown or shown[-1] != reader.value():
            shown.append(reader.value())
    assert shown == [
        {},
        {"a": []},
        {"a": [1]},
        {"a": [1, {}]},
        {"a": [1, {"b": ""}]},
        {"a": [1, {"b": "x"}]},
        {"a": [1, {"b": "x\n"}]},
        {"a": [1, {"b": "x\né"}]},
    ]
    assert reader.path == ("c",)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("", ()),
        ("[", ()),
        ("[1", (0,)),
        ("[1,", ()),
        ('[1,{"a', (1,)),
        ('[1,{"a":', (1,)),
        ('[1,{"a":"', (1, "a")),
        ('[1,{"a":"x"', (1,)),
        ('[1,{"a":[[', (1, "a", 0)),
        ('[1,{"a":[]}]', ()),
        ('"x', ()),
    ],
)
def test_the_path_leads_to_the_value_that_is_being_written(text: str, path: Path) -> None:
    assert read(text).path == path


def test_changes_say_where_and_what() -> None:
    reader = read('{"path": "a.py", "text": "li')
    assert reader.changes() == [
        ((), "set", {}),
        (("path",), "set", "a.py"),
        (("text",), "set", "li"),
    ]
    reader.feed('ne\\nnext"')
    assert reader.changes() == [(("text",), "append", "ne\nnext")]
    reader.feed(', "lines": [1, [')
    assert reader.changes() == [
        (("lines",), "set", []),
        (("lines", 0), "set", 1),
        (("lines", 1), "set", []),
    ]
    assert reader.changes() == []
    reader.feed("null]]}")
    assert reader.changes() == [(("lines", 1, 0), "set", None)]


def test_the_first_changes_tell_all_there_is() -> None:
    reader = PartialJson()
    for piece in ('{"a": {"b": [1, "x", {}]}, "c": [tr', 'ue, "gro', "wn"):
        reader.feed(piece)
        reader.value()
    changes = reader.changes()
    assert changes[-1] == (("c", 1), "set", "grown")
    assert replay(None, changes) == reader.value()
    reader.feed('!"]}')
    assert reader.changes() == [(("c", 1), "append", "!")]
    assert replay(None, read("[[1]]").changes()) == [[1]]
    assert read("[1, 2").changes()[1:] == [((0,), "set", 1)]


def test_a_key_that_repeats_is_replaced_also_in_the_changes() -> None:
    reader = read('{"a": [1], "b": 2')
    replayed = replay(None, reader.changes())
    reader.feed(', "a": "x')
    assert reader.value() == {"a": "x", "b": 2}
    replayed = replay(replayed, reader.changes())
    assert replayed == {"a": "x", "b": 2}
    reader.feed('"}')
    assert reader.value() == {"a": "x", "b": 2}


def test_early_numbers_are_shown_as_far_as_they_are_numbers() -> None:
    reader = PartialJson(early_numbers=True)
    shown: list[object] = []
    for character in "[-12.5e-1,3":
        reader.feed(character)
        if not shown or shown[-1] != reader.value():
            shown.append(reader.value())
    assert shown == [[], [-1], [-12], [-12.5], [-1.25], [-1.25, 3]]
    late = read("[-12.5e-1,3")
    assert late.value() == [-1.25]


def test_integers_are_exact_up_to_the_bound_of_the_language() -> None:
    for number in (2**53 + 1, -(2**64), 10**4299, -(10**18), 10**36 + 7):
        assert read(f"[{number}]").value() == [number]
    too_long = read(f"[1, 1{'0' * 4300}]")
    assert too_long.value() == [1]
    assert too_long.error is not None
    assert too_long.error.offset == 4


def test_surrogates_wait_for_each_other_and_alone_are_replaced() -> None:
    reader = PartialJson()
    for piece, shown in [('"\\ud83d', ""), ("\\ude", ""), ("00", "😀"), ("\\ud83d", "😀")]:
        reader.feed(piece)
        assert reader.value() == shown
    reader.feed('."')
    assert reader.value() == "😀\ufffd."
    assert read('"\\ude00\\ud83d"').value() == "\ufffd\ufffd"


def test_bytes_may_be_cut_inside_a_character() -> None:
    text = '["grüße ☃ 😀"]'
    reader = PartialJson()
    for byte in text.encode():
        reader.feed(bytes([byte]))
    assert reader.value() == ["grüße ☃ 😀"]
    assert read(b'"\xe2\x82x"').value() == "\ufffdx"
    for data in (bytearray(b"[1]"), memoryview(b"[1]")):
        other = PartialJson()
        other.feed(data)
        assert other.value() == [1]


@pytest.mark.parametrize(
    ("text", "offset", "value"),
    [
        ('{"a": "kept", "b": nope}', 20, {"a": "kept"}),
        ('{"a": "C:\\users"}', 11, {"a": "C:"}),
        ("[1, 02]", 5, [1]),
        ("[NaN]", 1, []),
        ("[1e999]", 1, []),
        ('["a\nb"]', 3, ["a"]),
        ("[1] 2", 4, [1]),
        ("[é]", 1, []),
    ],
)
def test_an_error_says_where_and_keeps_the_value(text: str, offset: int, value: object) -> None:
    reader = read(text)
    defect = reader.error
    assert defect is not None
    assert defect.offset == offset
    assert defect.message == str(defect)
    assert str(offset) in defect.message
    assert not reader.complete
    reader.feed('"later"]}')
    reader.close()
    assert (reader.error, reader.value()) == (defect, value)
    assert hash(reader.error) == hash(defect)
    assert "failed" in repr(reader)


def test_the_end_completes_a_number_and_breaks_what_is_open() -> None:
    for text, value in [("12", 12), ("-1.5", -1.5)]:
        reader = read(text)
        assert (reader.value(), reader.complete) == (None, False)
        reader.close()
        reader.close()
        assert (reader.value(), reader.complete) == (value, True)
    reader = read('{"a": "x')
    reader.close()
    assert reader.error is not None
    assert reader.error.offset == 8
    assert reader.value() == {"a": "x"}


def test_nesting_is_bounded() -> None:
    assert read("[" * 128 + "]" * 128).complete
    deep = read("[" * 129)
    assert deep.error is not None
    assert deep.error.offset == 128
    small = PartialJson(max_depth=1)
    small.feed("[[")
    assert small.error is not None
    deepest = PartialJson(max_depth=1000)
    deepest.feed("[" * 1000 + "]" * 1000)
    assert deepest.complete
    assert replay(None, deepest.changes()[:3]) == [[[]]]
    deepest.value()
    for wrong in (0, 1001):
        with pytest.raises(ValueError, match="max_depth"):
            PartialJson(max_depth=wrong)


def test_wrong_arguments_are_refused_and_change_nothing() -> None:
    reader = read("[1,")
    for wrong in (1, None, ["[1]"]):
        with pytest.raises(TypeError):
            reader.feed(wrong)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    with pytest.raises(UnicodeEncodeError):
        reader.feed('"\ud800"')
    reader.feed("2]")
    assert reader.value() == [1, 2]


def member(value: object, *path: str | int) -> object:
    for place in path:
        value = cast("dict[str | int, object]", value)[place]
    return value


def test_snapshots_share_what_is_finished_and_keep_what_was_open() -> None:
    reader = read('{"done": {"x": [1]}, "open": [{"y": 2}, {"z": "gr')
    first = reader.value()
    reader.feed("ow")
    second = reader.value()
    for path in [("done",), ("done", "x"), ("open", 0)]:
        assert member(first, *path) is member(second, *path)
    for path in [(), ("open",), ("open", 1)]:
        assert member(first, *path) is not member(second, *path)
    assert first == {"done": {"x": [1]}, "open": [{"y": 2}, {"z": "gr"}]}
    assert second == {"done": {"x": [1]}, "open": [{"y": 2}, {"z": "grow"}]}


def test_the_final_value_is_the_callers_own() -> None:
    reader = read('{"a": [{"b": 1}]')
    shared = reader.value()
    reader.feed("}")
    final, again = reader.value(), reader.value()
    for path in [(), ("a",), ("a", 0)]:
        assert member(final, *path) is not member(again, *path)
    assert member(final, "a", 0) is not member(shared, "a", 0)
    cast("list[object]", member(final, "a")).clear()
    assert reader.value() == again == {"a": [{"b": 1}]}
    cast("dict[str, object]", reader.changes()[0][2])["mine"] = 1
    assert reader.value() == again


# The arguments of a tool call that is being streamed.


@ASSEMBLERS
def test_the_arguments_of_a_call_are_read_as_they_come(
    assembler_class: type[Assembler],
) -> None:
    assembler = assembler_class()
    consume(assembler, start(), call("c"), args('{"city": "Par'))
    reader = assembler.tool_args("c")
    assert reader.value() == {"city": "Par"}
    assert reader.changes() == [((), "set", {}), (("city",), "set", "Par")]
    consume(assembler, call("d"), args('is", "days": 3', "c"), args("[1", "d"))
    assert assembler.tool_args("c") is reader
    assert reader.changes() == [(("city",), "append", "is")]
    assert assembler.tool_args("d").value() == []
    consume(assembler, args("}", "c"), end("c"), end("d", incomplete=True), done())
    assert assembler.tool_args("c").complete
    assert reader.value() == {"city": "Paris", "days": 3}
    broken = assembler.tool_args("d")
    assert (broken.complete, broken.error is None) == (False, False)
    with pytest.raises(KeyError, match="nobody"):
        assembler.tool_args("nobody")


@ASSEMBLERS
def test_calls_without_arguments_and_with_text_are_read_by_the_contract(
    assembler_class: type[Assembler],
) -> None:
    assembler = assembler_class()
    consume(assembler, start(), call("none"), call("text", inputFormat="text"))
    none, text = assembler.tool_args("none"), assembler.tool_args("text")
    assert (none.value(), text.value()) == (None, {"input": ""})
    consume(assembler, args('print("é")\n', "text"))
    text = assembler.tool_args("text")
    assert (text.value(), text.complete) == ({"input": 'print("é")\n'}, False)
    consume(assembler, end("none"), end("text"), done())
    none, text = assembler.tool_args("none"), assembler.tool_args("text")
    assert (none.value(), none.error, none.complete) == (None, None, False)
    assert (text.value(), text.complete) == ({"input": 'print("é")\n'}, True)


def test_a_reader_of_a_call_follows_by_itself_and_is_not_fed() -> None:
    assembler = MessageAssembler()
    consume(assembler, start(), call("c"), args('{"a'))
    reader = assembler.tool_args("c")
    consume(assembler, args('": "x'))
    assert (reader.path, reader.complete, reader.error) == (("a",), False, None)
    assert "open, 8 bytes" in repr(reader)
    with pytest.raises(MisuseError, match="follows"):
        reader.feed("1")
    with pytest.raises(MisuseError, match="follows"):
        reader.close()
    assembler.reset()
    assert reader.value() == {"a": "x"}
    with pytest.raises(KeyError):
        assembler.tool_args("c")
    consume(assembler, start(), call("c"), args("[1,"))
    assert assembler.tool_args("c") is not reader
    assert assembler.tool_args("c").value() == [1]
    assert reader.value() == {"a": "x"}
    del assembler
    assert reader.value() == {"a": "x"}


# Threads, and Python code that runs in the middle of a call.


def test_threads_on_one_reader_succeed_or_are_told() -> None:
    reader = PartialJson()
    reader.feed("[")
    outcomes: list[bool] = []
    barrier = threading.Barrier(4)

    def work() -> None:
        barrier.wait()
        for _ in range(300):
            try:
                reader.feed('{"a": "b"},')
            except MisuseError:
                outcomes.append(False)
            else:
                outcomes.append(True)
            try:
                assert all(item == {"a": "b"} for item in json_array(reader.value()))
                reader.changes()
            except MisuseError:
                pass

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == 1200
    reader.feed("0]")
    assert len(json_array(reader.value())) == sum(outcomes) + 1


def test_a_finalizer_that_looks_at_the_reader_is_told_and_harms_nothing() -> None:
    reader = read('{"a": [')
    seen: list[object] = []

    class Nosy:
        """Runs when the garbage collector finds it, perhaps in the middle of `value()`."""

        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            try:
                seen.append(reader.value())
            except (MisuseError, InternalError) as error:
                seen.append(error)

    before = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for _ in range(50):
            Nosy()
            reader.feed('{"b": [1, {}]},')
            reader.value()
    finally:
        gc.set_threshold(*before)
    gc.collect()
    assert len(seen) == 50
    assert not any(isinstance(found, InternalError) for found in seen)
    assert reader.value() == {"a": [{"b": [1, {}]}] * 50}


def test_the_public_names_are_there() -> None:
    assert deltafold.PartialJson is PartialJson
    assert "open, 0 bytes" in repr(PartialJson())
    assert "complete, 2 bytes" in repr(read("{}"))
    assert isinstance(read("x").error, deltafold.JsonDefect)
    assert repr(read("x").error) == "<JsonDefect: unexpected byte in JSON at byte 0>"
