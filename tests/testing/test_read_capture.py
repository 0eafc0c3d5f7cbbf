"""`read_capture`: every body is the same in every form, and a body is never taken for a form."""

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import deltafold
from any_name import AnyName
from capture_forms import (
    EXACT,
    LINES,
    SECRET,
    URL,
    below_head,
    har_entry,
    har_of,
    in_trace,
)
from corpus import FIXTURES
from deltafold import Captured, MisuseError, read_capture
from deltafold.testing import Recording, answer
from protocol_bodies import ANTHROPIC, CHAT, DONE, said


def name_of(path: Path) -> str:
    return f"{path.parent.parent.name}/{path.parent.name}"


BODY = answer(CHAT, "Hello ", "world.").body
WIRES = [
    (path, body, dialect)
    for path in sorted(FIXTURES.glob("*/*/wire.*"))
    for body in [path.read_bytes()]
    for dialect in [deltafold.detect(body).dialect]
    if dialect is not None
]
NOISY = {"ollama/noise-lines"}
"""Bodies whose first line is none of an event: inside of JSON they could be any text."""
ON_LINES = {"ollama/bom"}
"""Bodies whose first event no prefix can stand before."""
TELL_TOGETHER = {
    path
    for path, body, _ in WIRES
    if body.lstrip().startswith((b"{\n", b"[")) or name_of(path).endswith("type-only-in-event-name")
}
"""Bodies no line of which tells the protocol alone."""


def is_text(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in body


def the_body(capture: bytes) -> bytes:
    (captured,) = read_capture(capture)
    return captured.body


def folded(body: bytes, dialect: AnyName) -> tuple[Any, ...]:
    fold = deltafold.Fold(dialect, run_id="run")
    fold.feed(body)
    fold.close()
    message, error = fold.snapshot(), fold.assembler.get_error()
    return message.parts, message.meta.finish_reason, error and (error.code, error.message)


def test_there_are_bodies() -> None:
    assert len(WIRES) > 500
    assert {dialect for *_, dialect in WIRES} == {*deltafold.dialect_names()}


@pytest.mark.parametrize("form", EXACT)
def test_a_form_keeps_every_byte(form: str) -> None:
    for path, body, _ in WIRES:
        if is_text(body) and name_of(path) not in NOISY:
            assert the_body(EXACT[form](body)) == body, path
    binary = [body for _, body, _ in WIRES if not is_text(body)]
    if form in {"gzip", "two gzips", "har base64", "curl -i"}:
        assert all(the_body(EXACT[form](body)) == body for body in binary)


@pytest.mark.parametrize("form", LINES)
def test_lines_of_a_log_fold_to_the_same_message(form: str) -> None:
    for path, body, dialect in WIRES:
        if form.endswith("json") and path in TELL_TOGETHER:
            continue
        if is_text(body) and name_of(path) not in {*NOISY, *ON_LINES}:
            found = the_body(LINES[form](body))
            assert folded(found, dialect) == folded(body, dialect), path


@pytest.mark.parametrize("form", [*EXACT, *LINES])
def test_a_cut_is_at_the_same_place(form: str) -> None:
    make = (EXACT | LINES)[form]
    for size in range(len(BODY) // 3, len(BODY), 7):
        found = the_body(make(BODY[:size]))
        assert folded(found, CHAT) == folded(BODY[:size], CHAT), size


@pytest.mark.parametrize(("path", "body"), [(path, body) for path, body, _ in WIRES])
def test_a_body_is_no_capture(path: Path, body: bytes) -> None:
    assert the_body(body) == body, path


@pytest.mark.parametrize(
    "body",
    [
        said("\nHTTP/1.1 200 OK\n\n"),
        said(json.dumps(BODY.decode())),
        b": > POST / HTTP/1.1\n: < HTTP/1.1 200 OK\n\n" + BODY,
        b": 2026-11-27T10:00:00Z data: {}\n\n" + BODY,
        b'{"log":{"entries":[{}]},"object":"chat.completion","choices":[{"index":0,"message":{}}]}',
        b'{"type":"message","role":"assistant","content":[],"interactions":[],"body":"data: {}"}',
        b'[{"candidates":[{"content":{"parts":[{"text":"data: {"}]}}]}]',
        b'{"error":{"message":"data: {\\"choices\\":[]}"}}',
        b'{"error":"model not found"}',
        b"no stream at all",
        b"",
    ],
)
def test_what_looks_like_a_capture_is_one_body(body: bytes) -> None:
    (captured,) = read_capture(body)
    assert (captured.body, captured.status, captured.url) == (body, 200, None)


def test_a_har_has_the_answers_of_models_alone() -> None:
    refusal = '{"error":{"message":"slow down"}}'
    found = read_capture(
        har_of(
            har_entry({"text": "<html></html>"}, "https://app.example.com/"),
            har_entry({"text": BODY.decode()}, "https://app.example.com/anything"),
            har_entry({}, status=204, method="OPTIONS"),
            har_entry({"text": '{"error":"x"}'}, "https://app.example.com/api"),
            har_entry({"text": refusal}, status=429),
            har_entry({"size": 5}),
        )
    )
    assert [(one.place, one.status, one.dialect, one.url) for one in found] == [
        ("capture#2", 200, CHAT, "https://app.example.com/anything"),
        ("capture#5", 429, CHAT, URL),
    ]
    assert found[0].headers == {"content-type": "text/event-stream"}
    assert SECRET not in repr(found)


def test_a_har_without_contents_says_so() -> None:
    with pytest.raises(
        MisuseError, match="no content of this response; save it with content"
    ) as it:
        read_capture(har_of(har_entry({"size": 5})))
    assert SECRET not in str(it.value)
    with pytest.raises(MisuseError, match="none of the 1 entries is an answer of a model"):
        read_capture(har_of(har_entry({"text": "<html>"}, "https://app.example.com/")))
    with pytest.raises(ValueError, match="capture#1: the content is not base64"):
        read_capture(har_of(har_entry({"text": "!", "encoding": "base64"})))


def test_a_content_that_is_still_compressed_is_unpacked() -> None:
    packed = base64.b64encode(gzip.compress(BODY)).decode()
    entry = har_entry({"text": packed, "encoding": "base64"})
    entry["response"]["headers"].append({"name": "Content-Encoding", "value": "gzip"})
    assert the_body(har_of(entry)) == BODY
    head = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n"
    assert the_body(head + gzip.compress(BODY)) == BODY


def test_the_status_of_curl_counts() -> None:
    refusal = b'{"error":{"message":"slow down"}}'
    (captured,) = read_capture(
        b"HTTP/1.1 429 Too Many Requests\r\nretry-after: 3\r\n\r\n" + refusal
    )
    assert (captured.status, captured.body) == (429, refusal)
    assert captured.headers == {"retry-after": "3"}
    (captured,) = read_capture(in_trace(refusal).replace(b"HTTP/2 200", b"HTTP/2 500"))
    assert (captured.status, captured.dialect, captured.url) == (500, CHAT, URL)


def test_a_trace_of_two_requests_has_two_answers() -> None:
    refusal = b'{"error":{"message":"slow down"}}'
    note = b"* Connection #0 to host api.example.com left intact\n"
    first = in_trace(refusal).replace(b"HTTP/2 200", b"HTTP/2 429") + note
    found = read_capture(first + in_trace(BODY) + note)
    assert [(one.place, one.status, one.body) for one in found] == [
        ("capture#1", 429, refusal),
        ("capture#2", 200, BODY),
    ]


@pytest.mark.parametrize("form", ["curl -i", "curl -v in a file"])
def test_an_error_of_curl_after_a_cut_is_not_in_the_body(form: str) -> None:
    cut = BODY[: len(BODY) // 2]
    error = b"curl: (18) transfer closed with outstanding read data remaining\n"
    assert the_body(EXACT[form](cut) + error) == cut
    text = said("* Connection #0 to host x left intact") + said("curl: (18) no")
    assert the_body(EXACT[form](text)) == text


def test_a_log_of_two_containers_has_two_bodies() -> None:
    other = answer(ANTHROPIC, "Good ", "bye.").body
    lines: list[bytes] = [b"[pod/web/app] starting {x}\n"]
    mine, yours = BODY.splitlines(), other.splitlines()
    for at in range(max(len(mine), len(yours))):
        for name, body in ((b"a", mine), (b"b", yours)):
            if at < len(body):
                lines.append(b"[pod/web-%s/app] " % name + body[at] + b"\n")
    found = read_capture(b"".join(lines))
    assert [one.dialect for one in found] == [CHAT, ANTHROPIC]
    assert [folded(one.body, one.dialect or "")[0][0].text for one in found] == [
        "Hello world.",
        "Good bye.",
    ]


def test_parts_of_a_long_line_are_joined() -> None:
    lines: list[bytes] = []
    for line in BODY.splitlines():
        half = len(line) // 2
        for mark, part in ((b"P", line[:half]), (b"F", line[half:])):
            lines.append(b"2026-11-27T10:00:00.1Z stdout " + mark + b" " + part + b"\n")
    assert folded(the_body(b"".join(lines)), CHAT) == folded(BODY, CHAT)


def test_the_lines_around_the_events_are_no_body() -> None:
    prefix = b"2026-11-27T10:00:00Z "
    lines = [prefix + line + b"\n" for line in BODY.splitlines()]
    before = [prefix + b'INFO request {"model": "m"}\n', b"no prefix\n"]
    assert the_body(b"".join([*before, *lines, prefix + b"INFO done\n"])) == BODY


def test_a_column_is_found_or_named() -> None:
    row = {"prompt": "q", "answer": BODY.decode(), "other": BODY.decode()}
    with pytest.raises(MisuseError, match="answer, other; name one with --column"):
        read_capture(json.dumps(row).encode())
    rows = "\n".join(json.dumps(each) for each in (row, {"answer": None}, row)).encode()
    found = read_capture(rows, column="answer")
    assert [(one.place, one.body) for one in found] == [("capture#1", BODY), ("capture#3", BODY)]
    with pytest.raises(MisuseError, match="no line has a body in the column 'missing'"):
        read_capture(rows, column="missing")
    with pytest.raises(MisuseError, match="no column 'missing'"):
        read_capture(json.dumps(row).encode(), column="missing")
    nested = json.dumps({"a": [{"b": BODY.decode()}, {"b": BODY.decode()}]}).encode()
    assert [one.place for one in read_capture(nested)] == ["capture#1", "capture#2"]
    assert read_capture(nested) == read_capture(nested, column="a[].b")
    assert len(read_capture(b'{"a.b": "HTTP/1.1 200 OK\\n\\nx"}', column="a.b")) == 1


def test_answers_that_were_parsed_are_bodies() -> None:
    events = [json.loads(line[6:]) for line in BODY.splitlines() if line.startswith(b"data: {")]
    assert folded(the_body(json.dumps({"chunks": events}).encode()), CHAT) == folded(BODY, CHAT)


def test_a_row_may_be_a_capture() -> None:
    row = json.dumps({"response": below_head(BODY).decode()}).encode()
    assert the_body(row) == BODY


def test_a_line_that_was_cut_is_an_error() -> None:
    row = json.dumps({"body": BODY.decode()}).encode()
    with pytest.raises(ValueError, match="capture#2: not valid JSON"):
        read_capture(row + b"\n" + row[:-5])


def test_a_final_text_is_no_stream() -> None:
    export = {"traceId": "t", "observations": [{"type": "GENERATION", "output": "Hello world."}]}
    for content in (json.dumps(export), json.dumps(export) + "\n" + json.dumps(export)):
        with pytest.raises(MisuseError, match="JSON that holds no stream and no answer"):
            read_capture(content.encode())
        assert read_capture(content.encode(), CHAT)[0].body == content.encode()


def test_parquet_has_a_row_for_each_body(tmp_path: Path) -> None:
    pa: Any = pytest.importorskip("pyarrow")
    parquet: Any = pytest.importorskip("pyarrow.parquet")
    file = tmp_path / "bodies.parquet"
    texts = [BODY.decode(), None, BODY.decode()]
    columns = {"id": [1, 2, 3], "prompt": ["data: x", "q", "q"]}
    for kind in (pa.binary(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())):
        bodies = pa.array(texts).cast(kind)
        parquet.write_table(pa.table({**columns, "body": bodies}), file)
        for source in (file, file.read_bytes(), gzip.compress(file.read_bytes())):
            found = read_capture(source)
            assert [one.place.rpartition("#")[2] for one in found] == ["1", "3"]
            assert {one.body for one in found} == {BODY}
    assert [one.body for one in read_capture(file, column="prompt")] == [b"data: x", b"q", b"q"]
    with pytest.raises(MisuseError, match="no column 'id' of text or bytes, only prompt, body"):
        read_capture(file, column="id")
    parquet.write_table(pa.table({"text": ["Hello"]}), file)
    with pytest.raises(MisuseError, match="no column holds the bytes of a stream"):
        read_capture(file)


def test_recordings_keep_their_times() -> None:
    recording = Recording(((0.5, said("a")), (0.25, DONE)))
    captured = Captured(recording.body, "place", CHAT, recording=recording)
    assert captured.as_recording() is recording
    (captured,) = read_capture(below_head(BODY))
    made = captured.as_recording()
    assert (made.body, made.status) == (BODY, 200)
    assert len(made.pieces) == BODY.count(b"\n\n")
    assert str(captured) == "capture 200 openai-chat"
