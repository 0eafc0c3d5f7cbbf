"""Cassettes of VCR are recordings: every form of body, bounded, without secrets."""

import base64
import gzip
import json
import sys
import zlib
from pathlib import Path

import httpx2
import pytest

import deltafold
import event_stream
from corpus import ROOT
from deltafold import AnthropicModel, Message
from deltafold.contract.exceptions import MisuseError
from deltafold.testing import (
    Recording,
    ReplayServer,
    ReplayTransport,
    load_cassette,
)
from deltafold.testing.content_encoding import unpacked
from deltafold.testing.safe_yaml import read_yaml

CASSETTES = ROOT / "tests" / "fixtures" / "cassettes"
REQUEST = b'{"model":"claude-demo","max_tokens":10,"messages":[{"role":"user","content":"Hello"}]}'


def text_of(recording: Recording) -> str:
    fold = deltafold.Fold("anthropic-messages")
    for _, piece in recording.pieces_sent():
        fold.feed(piece)
    fold.close()
    return fold.snapshot().text


def cassette(tmp_path: Path, body: object, headers: dict[str, list[str]] | None = None) -> Path:
    path = tmp_path / "one.json"
    interaction = {
        "request": {"method": "GET", "uri": "https://example.com/"},
        "response": {"status": {"code": 200}, "headers": headers or {}, "body": body},
    }
    path.write_text(json.dumps({"interactions": [interaction]}))
    return path


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("vcrpy.yaml", ["Grüße", "Hello"]),
        ("vcrpy.json", ["Grüße"]),
        ("ruby_vcr.yml", ["Grüße", "Hello", "Hello"]),
        ("betamax.json", ["Hello"]),
        ("go_vcr.yaml", ["Hello"]),
        ("test_weather/test_asks.yaml", ["Hello"]),
    ],
)
def test_every_form_is_read(name: str, texts: list[str]) -> None:
    recordings = load_cassette(CASSETTES / name)
    assert [text_of(recording) for recording in recordings[: len(texts)]] == texts
    for recording in recordings[: len(texts)]:
        request = recording.request
        assert request is not None
        assert (request.method, request.path) == ("POST", "/v1/messages")
        assert recording.status == 200


def test_a_stream_has_one_piece_per_event() -> None:
    stream = load_cassette(CASSETTES / "vcrpy.yaml")[0]
    assert len(stream.pieces) == 6
    assert all(after == 0 and piece.endswith(b"\n\n") for after, piece in stream.pieces)


def test_a_request_has_its_body() -> None:
    for name in ("vcrpy.yaml", "ruby_vcr.yml", "go_vcr.yaml", "betamax.json"):
        request = load_cassette(CASSETTES / name)[0].request
        assert request is not None
        assert request.body == REQUEST


def test_several_interactions_keep_their_status_and_headers() -> None:
    stream, whole, refused = load_cassette(CASSETTES / "vcrpy.yaml")
    assert stream.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert whole.headers == {"content-type": "application/json"}
    assert refused.status == 404
    assert refused.request is not None
    assert (refused.request.method, refused.request.body) == ("GET", None)


def test_a_body_whose_encoding_was_undone_stays() -> None:
    refused = load_cassette(CASSETTES / "vcrpy.yaml")[2]
    assert json.loads(refused.body)["error"]["type"] == "not_found_error"


def test_a_body_has_the_bytes_of_its_charset() -> None:
    latin = load_cassette(CASSETTES / "ruby_vcr.yml")[3]
    assert latin.body == b"caf\xe9"


def test_secrets_are_masked_as_in_a_recording(tmp_path: Path) -> None:
    for name in ("vcrpy.yaml", "vcrpy.json", "ruby_vcr.yml", "go_vcr.yaml"):
        for recording in load_cassette(CASSETTES / name):
            recording.save(tmp_path / "saved.jsonl")
            saved = (tmp_path / "saved.jsonl").read_text()
            assert "secret" not in saved
            assert "session=" not in saved
    stream = load_cassette(CASSETTES / "vcrpy.yaml")[0]
    assert stream.headers["x-request"] == "one, *************"
    assert stream.request is not None
    assert stream.request.query == {"beta": "true"}
    assert stream.request.headers["content-type"] == "application/json"


def test_a_secret_in_a_body_is_masked(tmp_path: Path) -> None:
    path = tmp_path / "echo.yaml"
    path.write_text(
        "interactions:\n- request: {method: POST, uri: 'https://e.com/', body: 'k=sk-secret-1',\n"
        "    headers: {Authorization: ['Bearer sk-secret-1']}}\n"
        "  response: {status: {code: 401}, headers: {}, body: {string: 'bad key sk-secret-1'}}\n"
    )
    (recording,) = load_cassette(path)
    assert recording.body == b"bad key ***********"
    assert recording.request is not None
    assert recording.request.body == b"k=***"


def frames() -> bytes:
    """Write an answer of Bedrock whose text repeats the key of the request."""
    return b"".join(
        event_stream.event(name, body)
        for name, body in (
            ("messageStart", {"role": "assistant"}),
            ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "sk-secret-1"}}),
            ("contentBlockStop", {"contentBlockIndex": 0}),
            ("messageStop", {"stopReason": "end_turn"}),
        )
    )


def test_a_binary_body_is_not_masked(tmp_path: Path) -> None:
    path = tmp_path / "bedrock.json"
    packed = {"base64_string": base64.b64encode(frames()).decode()}
    headers = {
        "Authorization": ["Bearer sk-secret-1"],
        "X-Amzn-Bedrock-Accept": ["application/json"],
        "X-Request": ["sk-secret-1"],
    }
    uri = "https://bedrock-runtime.us-east-1.amazonaws.com/model/m/converse-stream"
    request = {"method": "POST", "uri": uri, "headers": headers, "body": packed}
    kind = {"Content-Type": ["application/vnd.amazon.eventstream"], "X-Request": ["sk-secret-1"]}
    response = {"status": {"code": 200}, "headers": kind, "body": packed}
    path.write_text(json.dumps({"interactions": [{"request": request, "response": response}]}))
    (recording,) = load_cassette(path)
    assert recording.body == frames()
    assert recording.headers["x-request"] == "***********"
    assert recording.request is not None
    assert recording.request.body == frames()
    assert deltafold.fold(recording.body, "bedrock-converse").text == "sk-secret-1"


@pytest.mark.parametrize("kind", ["text/event-stream", "application/json; charset=utf-8"])
def test_a_text_with_a_nul_character_is_masked(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "text.json"
    request = {"uri": "https://e.com/", "headers": {"Authorization": ["Bearer sk-secret-1"]}}
    body = {"string": "\0 sk-secret-1"}
    response = {"status": {"code": 200}, "headers": {"Content-Type": [kind]}, "body": body}
    path.write_text(json.dumps({"interactions": [{"request": request, "response": response}]}))
    (recording,) = load_cassette(path)
    assert recording.body == b"\0 ***********"


def test_the_old_form_of_vcrpy_for_httpx_is_read(tmp_path: Path) -> None:
    path = tmp_path / "httpx.yaml"
    path.write_text(
        "interactions:\n- request: {method: POST, uri: 'https://e.com/v1/chat', body: '{}',"
        "\n    headers: {}}\n"
        '  response:\n    content: \'{"id": "x"}\'\n    http_version: HTTP/1.1\n'
        "    headers: {Content-Type: [application/json]}\n    status_code: 429\nversion: 1\n"
    )
    (recording,) = load_cassette(path)
    assert (recording.status, recording.body) == (429, b'{"id": "x"}')
    assert recording.headers == {"content-type": "application/json"}


def test_a_cassette_is_played_by_a_server_and_by_a_transport() -> None:
    recordings = load_cassette(CASSETTES / "vcrpy.yaml")[:1]
    config = {"model_id": "claude-demo", "max_tokens": 10}
    with ReplayServer(recordings) as server, httpx2.Client() as client:
        model = AnthropicModel(config, client=client, base_url=server.url, api_key="key")
        assert model.send_message_sync([Message.user("Hello")]).text == "Grüße"
    model = AnthropicModel(config, client=ReplayTransport(recordings))
    assert model.send_message_sync([Message.user("Hello")]).text == "Grüße"


@pytest.mark.parametrize(
    ("encoding", "packed"),
    # The bytes name the test, whose name is the same in every process that collects it.
    [
        ("gzip", gzip.compress(b"te", mtime=0) + gzip.compress(b"xt", mtime=0)),
        ("x-gzip", gzip.compress(b"text", mtime=0)),
        ("deflate", zlib.compress(b"text")),
        ("deflate", zlib.compress(b"text", wbits=-zlib.MAX_WBITS)),
        ("deflate, gzip", gzip.compress(zlib.compress(b"text"), mtime=0)),
        ("identity", b"text"),
        ("gzip", b"text"),
        ("deflate", b"text"),
        ("br", b"text"),
        ("zstd", b"text"),
    ],
)
def test_an_encoding_is_undone_once(tmp_path: Path, encoding: str, packed: bytes) -> None:
    body = {"base64_string": base64.b64encode(packed).decode()}
    (recording,) = load_cassette(cassette(tmp_path, body, {"Content-Encoding": [encoding]}))
    assert recording.body == b"text"
    assert "content-encoding" not in recording.headers


def test_text_that_begins_like_a_zlib_header_is_text(tmp_path: Path) -> None:
    (recording,) = load_cassette(
        cassette(tmp_path, {"string": "x^2"}, {"Content-Encoding": ["deflate"]})
    )
    assert recording.body == b"x^2"


# The text "deltafold" 20 times, by brotli 1.2.
BROTLI = base64.b64decode("G7MA+I2Ubt6qDiN7o5NsZmWhWzCwNHME")


def test_brotli_is_undone(tmp_path: Path) -> None:
    pytest.importorskip("brotli", reason="requirements/test.in has it")
    body = {"base64_string": base64.b64encode(BROTLI).decode()}
    (recording,) = load_cassette(cassette(tmp_path, body, {"Content-Encoding": ["br"]}))
    assert recording.body == b"deltafold" * 20
    assert (b"deltafold" * 20).startswith(unpacked(BROTLI[:-3], "br"))
    with pytest.raises(ValueError, match="not compressed as its header says"):
        unpacked(b"\xff" * 20, "br")


def test_a_body_that_is_damaged_or_unknown_is_refused(tmp_path: Path) -> None:
    damaged = {"base64_string": base64.b64encode(b"\x1f\x8b\xff\xff" + bytes(20)).decode()}
    with pytest.raises(ValueError, match="interaction 1: the body is not compressed"):
        load_cassette(cassette(tmp_path, damaged, {"content-encoding": ["gzip"]}))
    packed = {"base64_string": base64.b64encode(b"\x28\xb5\x2f\xfd").decode()}
    with pytest.raises(ValueError, match="the content encoding 'zstd' is not supported"):
        load_cassette(cassette(tmp_path, packed, {"content-encoding": ["zstd"]}))
    with pytest.raises(ValueError, match="'base64_string' is not base64"):
        load_cassette(cassette(tmp_path, {"base64_string": "?"}))
    with pytest.raises(ValueError, match="the body is not a text"):
        load_cassette(cassette(tmp_path, {"string": 1}))


def test_a_body_is_unpacked_within_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deltafold.testing.content_encoding._MAX_BYTES", 1000)
    assert unpacked(gzip.compress(bytes(1000)), "gzip") == bytes(1000)
    for packed in (gzip.compress(bytes(1001)), gzip.compress(bytes(600)) * 2):
        with pytest.raises(ValueError, match="larger than 1000 bytes"):
            unpacked(packed, "gzip")


def test_what_is_no_cassette_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "wrong.yaml"
    for content, words in [
        ("a: 1", "not a cassette: it has no list 'interactions' or 'http_interactions'"),
        ("[]", "not a cassette: the file is not a mapping"),
        ("", "not a cassette: the file is not a mapping"),
        ("[a", "not a cassette: not valid YAML"),
        ("interactions: [1]", "interaction 1: the interaction is not a mapping"),
        ("interactions: [{request: {uri: u}}]", "interaction 1: 'response' is not a mapping"),
        (
            "interactions: [{request: {uri: u}, response: {status: none}}]",
            "interaction 1: the status 'none' is not an HTTP status",
        ),
        ("interactions: [{request: {}, response: {}}]", "'uri' of the request is not a text"),
    ]:
        path.write_text(content)
        with pytest.raises(ValueError, match=words) as error:
            load_cassette(path)
        assert str(path) in str(error.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("!!python/object/apply:os.system ['true']", "the tag 'tag:yaml.org,2002:python/object"),
        ("a: !!python/unicode 'x'", "line 1: the tag 'tag:yaml.org,2002:python/unicode'"),
        ("- !ruby/object:Set {}", "line 1: the tag '!ruby/object:Set' is not supported"),
        ("[" * 200 + "]" * 200, "line 1: nested deeper than 100"),
        # PyYAML 6.0.4 has a limit of its own.
        ("[" * 100_000, "nested deeper than 100|exceeded maximum nesting depth"),
        ("a: *b", "unknown alias 'b'"),
        ("a: !!binary '?'", "binary data that is not base64"),
        ("{[a]: b}", "a list or a mapping as a key"),
    ],
)
def test_hostile_yaml_is_refused(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words.replace("[", r"\[")):
        read_yaml(text)


def test_an_alias_is_not_copied(tmp_path: Path) -> None:
    rows = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    for before, name in zip("abcdefghij", "bcdefghijk", strict=True):
        aliases = ", ".join([f"*{before}"] * 10)
        rows.append(f"{name}: &{name} [{aliases}]")
    value = read_yaml("\n".join(rows))
    assert isinstance(value, dict)
    assert len(value) == 11
    path = tmp_path / "bomb.yaml"
    rows.append(
        "interactions: [{request: {uri: u}, response: {status: {code: 200}, parsed_body: *k}}]"
    )
    path.write_text("\n".join(rows))
    with pytest.raises(ValueError, match="'parsed_body' has more than 1000000 values"):
        load_cassette(path)


def test_a_file_and_its_values_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deltafold.testing.safe_yaml._MAX_VALUES", 10)
    with pytest.raises(ValueError, match="more than 10 values"):
        read_yaml("[a, a, a, a, a, a, a, a, a, a]")
    monkeypatch.setattr("deltafold.testing.cassette._MAX_FILE_BYTES", 10)
    path = tmp_path / "large.yaml"
    path.write_text("interactions: []")
    with pytest.raises(ValueError, match="larger than 10 bytes"):
        load_cassette(path)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    monkeypatch.setitem(sys.modules, "brotli", None)
    assert load_cassette(CASSETTES / "vcrpy.json"), "JSON needs no package"
    with pytest.raises(MisuseError, match=r"pip install 'deltafold\[testing\]'"):
        load_cassette(CASSETTES / "vcrpy.yaml")
    with pytest.raises(MisuseError, match=r"pip install 'deltafold\[testing\]'"):
        unpacked(BROTLI, "br")


def test_yaml_without_the_c_library_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = load_cassette(CASSETTES / "ruby_vcr.yml")
    monkeypatch.delattr("yaml.CSafeLoader", raising=False)
    assert load_cassette(CASSETTES / "ruby_vcr.yml") == wanted
