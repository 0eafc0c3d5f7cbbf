"""ReplayServer: it sends the recorded bytes and faults unchanged, and leaves nothing open."""

import time

import httpx
import pytest

from deltafold.testing import Recording, ReplayServer
from replay_servers import wait_until_closed


def test_a_recording_answers_its_path_again_and_again() -> None:
    recording = Recording.of(b"data: 1\n\n", piece_bytes=2)
    with ReplayServer({"/v1/messages": recording}) as server, httpx.Client() as client:
        for _ in range(2):
            response = client.post(f"{server.url}/v1/messages?beta=true", json={"a": 1})
            assert response.content == b"data: 1\n\n"
            assert response.headers["content-type"] == "text/event-stream"
        assert server.connections == 1
        assert [request.json() for request in server.requests] == [{"a": 1}, {"a": 1}]


def test_a_queued_recording_goes_before_the_path() -> None:
    with ReplayServer({"/": Recording.of(b"second")}) as server, httpx.Client() as client:
        server.queue(Recording.of(b"first"))
        assert [client.get(server.url).content for _ in range(2)] == [b"first", b"second"]


def test_an_unknown_path_is_a_404_that_names_it() -> None:
    with ReplayServer() as server, httpx.Client() as client:
        response = client.get(f"{server.url}/nowhere")
        assert response.status_code == 404
        assert "/nowhere" in response.text


def test_pieces_keep_their_bounds_and_their_pace() -> None:
    recording = Recording.of_events(b"a\n\nb\n\nc", delay=0.02)
    with ReplayServer({"/": recording}) as server, httpx.Client() as client:
        began = time.perf_counter()
        with client.stream("GET", server.url) as response:
            assert list(response.iter_raw()) == [b"a\n\n", b"b\n\n", b"c"]
        assert time.perf_counter() - began >= 0.06


def test_flat_out_leaves_the_pauses_out() -> None:
    recording = Recording.of_events(b"a\n\nb\n\n", delay=30)
    with ReplayServer({"/": recording}, flat_out=True) as server, httpx.Client() as client:
        assert client.get(server.url).content == b"a\n\nb\n\n"


def test_a_cut_body_ends_inside_the_transfer() -> None:
    recording = Recording.of(b"0123456789").stopping("cut", 4)
    with (
        ReplayServer({"/": recording}) as server,
        httpx.Client() as client,
        pytest.raises(httpx.RemoteProtocolError),
    ):
        client.get(server.url)


def test_a_reset_connection_is_a_read_error() -> None:
    recording = Recording.of(b"0123456789").stopping("reset", 4)
    with (
        ReplayServer({"/": recording}) as server,
        httpx.Client() as client,
        pytest.raises(httpx.ReadError),
    ):
        client.get(server.url)


def test_a_stalled_body_stays_open_until_the_client_leaves() -> None:
    recording = Recording.of(b"0123456789").stopping("stall", 4)
    with ReplayServer({"/": recording}) as server, httpx.Client(timeout=0.1) as client:
        with pytest.raises(httpx.ReadTimeout):
            client.get(server.url)
        wait_until_closed(server)


def test_closing_the_server_ends_a_stalled_body() -> None:
    recording = Recording.of(b"0123456789").stopping("stall", 4)
    server = ReplayServer({"/": recording})
    with server, httpx.Client() as client, client.stream("GET", server.url) as response:
        pieces = response.iter_raw()
        assert next(pieces) == b"0123"
        assert server.open_connections == 1
        server.close()
        wait_until_closed(server)
        with pytest.raises(httpx.RemoteProtocolError):
            next(pieces)


def test_closing_twice_is_fine() -> None:
    with ReplayServer() as server:
        server.close()
    server.close()


def test_the_body_of_a_recording_is_what_goes_out() -> None:
    assert Recording.of(b"0123456789", piece_bytes=3).stopping("cut", 4).body == b"0123"
    assert Recording.of(b"").pieces == ()
