"""Last events before a failure: what an error shows where a person sees its traceback."""

import pickle
import traceback
from collections.abc import AsyncIterator, Callable, Iterator

import anyio
import pytest

import deltafold
from deltafold import ModelError
from deltafold.streams import excerpts
from deltafold.streams.excerpts import excerpt_of
from wires import ANTHROPIC, CHAT_ERROR

EVENT = b'data: {"id":"c","choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'
BROKEN = b'data: {"choices": [}\n\n'

Read = Callable[[list[bytes]], object]


def by_stream(chunks: list[bytes]) -> object:
    return deltafold.stream(iter(chunks), "openai-chat").final_message()


def by_text(chunks: list[bytes]) -> object:
    return list(deltafold.stream(iter(chunks), "openai-chat").text())


def by_deltas(chunks: list[bytes]) -> object:
    stream = deltafold.stream(iter(chunks), "openai-chat")
    list(stream)
    return stream.message


def by_astream(chunks: list[bytes]) -> object:
    async def sent() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    async def read() -> object:
        return await deltafold.astream(sent(), "openai-chat").final_message()

    return anyio.run(read)


def by_fold(chunks: list[bytes]) -> object:
    return deltafold.fold(b"".join(chunks), "openai-chat")


def by_fold_of_chunks(chunks: list[bytes]) -> object:
    return deltafold.fold(chunks, "openai-chat")


WAYS = pytest.mark.parametrize(
    "read", [by_stream, by_text, by_deltas, by_astream, by_fold, by_fold_of_chunks]
)


@pytest.fixture
def _watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(excerpts, "IS_WATCHED", True)


@WAYS
@pytest.mark.usefixtures("_watched")
def test_an_error_shows_the_event_that_failed_and_two_before(read: Read) -> None:
    with pytest.raises(ModelError) as raised:
        read([EVENT, EVENT, EVENT, BROKEN])
    begins = 3 * len(EVENT)
    assert raised.value.excerpt == "\n".join(
        [
            "the last events before the failure:",
            f"  @{len(EVENT)}   {EVENT.decode().strip()}",
            f"  @{2 * len(EVENT)}  {EVENT.decode().strip()}",
            f"  @{begins}  {BROKEN.decode().strip()}",
            f"        ^ byte {begins}: this event failed",
        ]
    )
    shown = "".join(traceback.format_exception(raised.value))
    assert str(raised.value.excerpt) in shown
    assert "\n" not in str(raised.value)


@WAYS
@pytest.mark.usefixtures("_watched")
def test_a_cut_is_marked_at_the_end_of_what_was_read(read: Read) -> None:
    with pytest.raises(ModelError) as raised:
        read([EVENT, EVENT[:30]])
    read_bytes = len(EVENT) + 30
    assert (raised.value.excerpt or "").splitlines()[-2:] == [
        f"  @{len(EVENT)}  {EVENT[:30].decode()}",
        f"       ^ byte {read_bytes}: the end of what was read",
    ]


@WAYS
def test_without_a_person_nothing_is_kept_or_shown(read: Read) -> None:
    assert not excerpts.IS_WATCHED
    with pytest.raises(ModelError) as raised:
        read([EVENT, BROKEN])
    assert raised.value.excerpt is None
    assert not hasattr(raised.value, "__notes__")


@pytest.mark.usefixtures("_watched")
def test_long_bodies_keep_their_end_and_their_offsets() -> None:
    body = EVENT * 5000
    for size in (1 << 16, len(EVENT), len(body)):
        chunks = [body[at : at + size] for at in range(0, len(body), size)]
        with pytest.raises(ModelError) as raised:
            by_stream([*chunks, BROKEN])
        excerpt = raised.value.excerpt or ""
        assert excerpt.splitlines()[-1].endswith(f"^ byte {len(body)}: this event failed")
        assert f"@{len(body) - len(EVENT)}  {EVENT.decode().strip()}" in excerpt


@pytest.mark.usefixtures("_watched")
def test_the_failure_of_a_connection_shows_the_last_events() -> None:
    def cut() -> Iterator[bytes]:
        yield EVENT
        raise ConnectionResetError("reset by the peer")

    with pytest.raises(ModelError) as raised:
        deltafold.stream(cut(), "openai-chat").final_message()
    assert f"^ byte {len(EVENT)}: the end" in (raised.value.excerpt or "")


@pytest.mark.usefixtures("_watched")
def test_a_stream_that_brought_nothing_has_no_excerpt() -> None:
    with pytest.raises(ModelError) as raised:
        by_stream([])
    assert raised.value.excerpt is None


@pytest.mark.usefixtures("_watched")
def test_an_excerpt_survives_pickling_and_stays_one() -> None:
    stream = deltafold.stream([CHAT_ERROR], "openai-chat")
    list(stream)
    error = stream.error
    assert error is not None
    assert stream.error is not None
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    assert copy.excerpt == error.excerpt is not None
    assert len(copy.__notes__) == 1


def test_secrets_and_control_characters_are_not_shown() -> None:
    tail = b'data: {"key": "sk-secret", "text": "\x1b[31m\xff"}\n\n'
    shown = excerpt_of(
        len(tail), tail, "openai-chat", lambda content: content.replace(b"sk-secret", b"***")
    )
    assert shown is not None
    assert "sk-secret" not in shown
    assert "\x1b" not in shown
    assert r"\u001b[31m\xff" in shown


def test_a_long_event_is_one_bounded_line() -> None:
    event = b'data: {"text": "' + b"x" * 100_000 + b'"}\n\n'
    shown = excerpt_of(len(event), event, "openai-chat")
    assert shown is not None
    assert max(map(len, shown.splitlines())) < 90


@pytest.mark.parametrize("cut", range(0, len(ANTHROPIC), 97))
def test_every_cut_of_a_stream_has_an_excerpt(cut: int) -> None:
    shown = excerpt_of(cut, ANTHROPIC[max(0, cut - 4096) : cut], "anthropic-messages")
    assert (shown is None) == (cut == 0)
    if shown is not None:
        assert shown.splitlines()[-1].endswith(f"^ byte {cut}: the end of what was read")
