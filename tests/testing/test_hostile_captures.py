"""Captures are hostile input: their unpacked size is bounded, and a bound is named."""

import gzip
import io
import json
import sys
import tarfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest

from deltafold import MisuseError, read_capture
from deltafold.testing import answer
from deltafold.testing.captures.forms import begin

BODY = answer("openai-chat", "Hello ", "world.").body
BOUND = 1 << 20


def zstd(body: bytes) -> bytes:
    package: Any = pytest.importorskip("zstandard")
    packed: bytes = package.compress(body)
    return packed


def brotli(body: bytes) -> bytes:
    package: Any = pytest.importorskip("brotli")
    packed: bytes = package.compress(body)
    return packed


def tar_of(content: bytes) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        info = tarfile.TarInfo("a")
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


BOMBS: Final = [
    bytes(2 * BOUND),
    b"data: " + b"x" * 2 * BOUND,
    b"HTTP/1.1 200 OK\r\n\r\n" + b" " * 2 * BOUND,
    b"> POST / HTTP/1.1\n< HTTP/1.1 200 OK\n< \n" + b" " * 2 * BOUND,
    b"2026-11-27T10:00:00Z data: {}\n" * BOUND,
    b'"' + b"x" * 2 * BOUND,
    b'{"body": "' + b"x" * 2 * BOUND,
    b'{"a": 1}\n' * BOUND,
    b"interactions:\n" + b"#" * 2 * BOUND,
    (json.dumps({"body": BODY.decode()}) + "\n").encode() * 2_000,
    (json.dumps({"log": 'data: {"choices":[]}\n'}) + "\n").encode() * BOUND,
    tar_of(bytes(2 * BOUND)),
]


@pytest.mark.parametrize("pack", [gzip.compress, zstd], ids=["gzip", "zstd"])
@pytest.mark.parametrize("number", range(len(BOMBS)))
def test_a_bomb_ends_in_an_error_that_names_the_bound(
    pack: Callable[[bytes], bytes], number: int
) -> None:
    with pytest.raises(ValueError, match=r"larger than 1048576 bytes .* max_bytes \(--max-bytes\)"):
        read_capture(pack(BOMBS[number]), max_bytes=BOUND)


def test_parquet_that_repeats_a_value_is_bounded() -> None:
    pa: Any = pytest.importorskip("pyarrow")
    parquet: Any = pytest.importorskip("pyarrow.parquet")
    sink = io.BytesIO()
    parquet.write_table(pa.table({"body": [BODY * 200] * 1_000}), sink)
    assert len(sink.getvalue()) < BOUND
    with pytest.raises(ValueError, match="max_bytes"):
        read_capture(sink.getvalue(), max_bytes=BOUND)


def test_forms_are_nested_a_few_times_only() -> None:
    packed = BODY
    for _ in range(4):
        packed = gzip.compress(packed)
    assert read_capture(packed)[0].body == BODY
    with pytest.raises(ValueError, match="nested more than 4 times"):
        read_capture(gzip.compress(packed))


DAMAGED: Final = [
    b"[" * 100_000,
    b'{"log":' * 100_000 + b"1" + b"}" * 100_000,
    b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"\n{}\n",
    b"interactions:\n  " + b"[" * 100_000,
    b'{"interactions":[' + b"[" * 90_000 + b"]" * 90_000 + b"]}",
    json.dumps({"log": {"entries": [1, None, {}, {"request": {"url": "http://[x"}}]}}).encode(),
    b'{"a": ' + b"1" * 10_000 + b"}",
    b"\x1f\x8b",
    gzip.compress(BODY)[:-20],
    b"\x28\xb5\x2f\xfd",
    b"PAR1",
    b"PAR1" + bytes(100) + b"PAR1",
    b"HTTP/1.1 200",
    b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 2_000,
    b"> x\n< HTTP/1.1 100 Continue\n< \n",
    b'{"recording":1',
    tar_of(gzip.compress(BODY))[:700],
]


@pytest.mark.parametrize("number", range(len(DAMAGED)))
def test_a_damaged_capture_is_a_body_or_an_error(number: int) -> None:
    content = DAMAGED[number]
    with suppress(MisuseError, ValueError, OSError):
        assert all(len(one.body) <= len(content) for one in read_capture(content))


def test_half_a_compressed_file_is_an_error() -> None:
    for packed in (gzip.compress(BODY), zstd(BODY)):
        with pytest.raises(ValueError, match="capture: damaged"):
            read_capture(packed[:-10])


def test_several_frames_are_one_body() -> None:
    half = len(BODY) // 2
    for pack in (gzip.compress, zstd):
        assert read_capture(pack(BODY[:half]) + pack(BODY[half:]))[0].body == BODY


def test_the_name_tells_brotli_and_yaml(tmp_path: Path) -> None:
    file = tmp_path / "a.sse.br"
    file.write_bytes(brotli(BODY))
    assert read_capture(file)[0].body == BODY
    file = tmp_path / "a.yaml.gz"
    file.write_bytes(gzip.compress(b"a: 1\n"))
    with pytest.raises(ValueError, match="not a cassette"):
        read_capture(file)


@pytest.mark.parametrize(
    ("content", "hidden", "words"),
    [
        (b"\x28\xb5\x2f\xfd", ("compression.zstd", "zstandard"), "pip install zstandard"),
        (b"PAR1", ("pyarrow.parquet",), r"pip install 'deltafold\[arrow\]'"),
        (b"interactions:\n", ("yaml",), r"pip install 'deltafold\[testing\]'"),
    ],
)
def test_a_missing_package_is_named(
    content: bytes, hidden: tuple[str, ...], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in hidden:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MisuseError, match=words):
        read_capture(content)


def reads_of(content: bytes, size: int) -> tuple[str, bool, int]:
    """Return the form of a pipe that gives so many bytes a read, and how many were read."""

    class Pipe(io.RawIOBase):
        at = 0

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # typeshed: any buffer
            given = content[self.at : self.at + min(size, len(buffer))]
            self.at += len(given)
            buffer[: len(given)] = given
            return len(given)

    pipe = Pipe()
    form, head = begin(io.BufferedReader(pipe), "capture")
    return form.name, head == content[: len(head)], len(head)


def test_a_plain_stream_is_known_by_its_first_bytes() -> None:
    for size in (1, 7, 4096):
        name, is_same, read = reads_of(BODY, size)
        assert (name, is_same) == ("PLAIN", True)
        assert read <= max(size, 8)


@pytest.mark.parametrize("size", [1, 5, 64])
def test_the_form_does_not_depend_on_the_reads(size: int) -> None:
    for content in (
        gzip.compress(BODY),
        b"HTTP/2 200 \r\n\r\n" + BODY,
        b"* x\n> POST / HTTP/2\n< HTTP/2 200 \n< \n" + BODY,
        json.dumps({"body": BODY.decode()}).encode() + b"\n",
        b"".join(b"2026-11-27T10:00:00Z " + line + b"\n" for line in BODY.splitlines()),
        tar_of(BODY),
        json.dumps(BODY.decode()).encode(),
    ):
        assert reads_of(content, size)[0] == reads_of(content, len(content))[0]
