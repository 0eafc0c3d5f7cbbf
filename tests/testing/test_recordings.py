"""Recordings: loading returns the saved calls, and an error names the invalid member."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltafold.testing import Ending, RecordedRequest, Recording

WHOLE = Recording.of(b"0123456789", piece_bytes=3)

seconds = st.floats(0, 1e6)
texts = st.text(st.characters(codec="utf-8"), max_size=20)
recordings = st.builds(
    Recording,
    pieces=st.lists(st.tuples(seconds, st.binary() | texts.map(str.encode))).map(tuple),
    status=st.integers(100, 599),
    headers=st.dictionaries(texts, texts),
    ending=st.sampled_from(["end", "cut", "reset", "stall"]),
    stop_after=st.none() | st.integers(0, 100),
    before_headers=st.booleans(),
    headers_after=seconds,
    request=st.none()
    | st.builds(
        RecordedRequest,
        texts,
        texts,
        st.dictionaries(texts, texts),
        st.dictionaries(texts, texts),
        st.none() | st.binary(),
    ),
)


@given(recording=recordings)
def test_what_is_saved_and_loaded_is_equal(
    recording: Recording, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "saved.jsonl"
    recording.save(path)
    assert Recording.load(path) == recording


def test_the_file_is_the_one_that_the_documentation_shows(tmp_path: Path) -> None:
    recording = Recording(
        ((0.0, b"event: message_start\n"), (0.031, b"\x00\x00\x00\x84")),
        headers={"content-type": "text/event-stream"},
        headers_after=0.412,
        request=RecordedRequest("POST", "/v1/messages"),
    )
    recording.save(tmp_path / "one.jsonl")
    assert (tmp_path / "one.jsonl").read_text() == (
        '{"recording": 1, "request": {"method": "POST", "path": "/v1/messages"}, "after": 0.412, '
        '"status": 200, "headers": {"content-type": "text/event-stream"}}\n'
        '{"after": 0.0, "text": "event: message_start\\n"}\n'
        '{"after": 0.031, "base64": "AAAAhA=="}\n'
        '{"ending": "end"}\n'
    )


HEAD = '{"recording": 1, "status": 200}'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not a recording of version 1"),
        ("[]", "line 1: not a JSON object"),
        ("data: {}\n\n", "line 1: not valid JSON"),
        (f"{HEAD}\n{{", "line 2: not valid JSON"),
        ('{"recording": 2, "status": 200}', "not a recording of version 1"),
        ('{"recording": 1}', "status"),
        ('{"recording": 1, "status": "fine"}', "fine"),
        (f'{HEAD}\n{{"after": 1}}', "base64"),
        (f'{HEAD}\n{{"base64": "?"}}', "not a recording"),
        (f'{HEAD}\n{{"after": "soon", "text": ""}}', "soon"),
        (f'{HEAD}\n{{"ending": "boom"}}', "unknown ending 'boom'"),
        ('{"recording": 1, "status": 200, "request": {"method": "GET"}}', "path"),
    ],
)
def test_what_is_no_recording_is_refused_by_name(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "broken.jsonl"
    path.write_text(text)
    with pytest.raises(ValueError, match=rf"broken\.jsonl.*{said}"):
        Recording.load(path)


def test_a_body_in_place_of_its_pieces_is_refused() -> None:
    body: Any = b"data: 1\n\n"
    with pytest.raises(TypeError, match=r"not bytes: use Recording\.of\(body\)"):
        Recording(body)


def test_members_of_a_later_version_are_ignored(tmp_path: Path) -> None:
    path = tmp_path / "later.jsonl"
    path.write_text(f'{HEAD}\n{{"text": "a", "mood": "fine"}}\n\n{{"ending": "end", "x": 1}}\n')
    assert Recording.load(path).body == b"a"


def test_a_file_without_its_last_line_is_a_body_that_was_cut(tmp_path: Path) -> None:
    path = tmp_path / "cut.jsonl"
    path.write_text(f'{HEAD}\n{{"text": "a"}}\n')
    assert (Recording.load(path).ending, Recording.load(path).body) == ("cut", b"a")


def test_a_folder_is_loaded_in_the_order_of_its_names(tmp_path: Path) -> None:
    for number in (2, 10, 1):
        Recording.of(b"%d" % number).save(tmp_path / f"{number:04}-messages.jsonl")
    (tmp_path / "README.md").write_text("no recording")
    assert [one.body for one in Recording.load_all(tmp_path)] == [b"1", b"2", b"10"]


@pytest.mark.parametrize(
    ("ending", "after", "sent"),
    [
        ("end", None, [b"012", b"345", b"678", b"9"]),
        ("cut", 4, [b"012", b"3"]),
        ("reset", 6, [b"012", b"345"]),
        ("stall", 0, []),
        ("end", 99, [b"012", b"345", b"678", b"9"]),
    ],
)
def test_a_body_goes_out_as_far_as_it_goes(
    ending: Ending, after: int | None, sent: list[bytes]
) -> None:
    recording = WHOLE.stopping(ending, after)
    assert [piece for _, piece in recording.pieces_sent()] == sent
    assert recording.body == b"".join(sent)
    assert WHOLE.stopping(ending, after, before_headers=True).body == b""


def test_garbage_alters_the_bytes_and_not_the_pieces() -> None:
    garbled = WHOLE.garbled(2, 2)
    assert [piece for _, piece in garbled.pieces] == [b"01\xcd", b"\xcc45", b"678", b"9"]
    assert WHOLE.garbled(99) == WHOLE


def test_a_secret_is_starred_out_also_where_pieces_meet() -> None:
    recording = Recording.of(b"key=hunter2 and hunter2", piece_bytes=7)
    starred = recording.starred(b"hunter2")
    assert starred.body == b"key=******* and *******"
    assert [len(piece) for _, piece in starred.pieces] == [7, 7, 7, 2]


def test_a_recording_is_made_of_a_body_in_pieces_or_in_events() -> None:
    assert Recording.of(b"").pieces == ()
    assert Recording.of(b"ab", content_type="application/x").headers == {
        "content-type": "application/x"
    }
    assert Recording.of_events(b"a\n\nb\n\nc", delay=1).pieces == (
        (1, b"a\n\n"),
        (1, b"b\n\n"),
        (1, b"c"),
    )
