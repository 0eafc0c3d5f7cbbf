"""The connections of `Http1Client`: made, kept, shared out in turn, closed."""

import asyncio
import re
import socket

import pytest

from deltafold import MisuseError
from deltafold.transports.http import (
    aclose_http_client,
    http_client_kind,
    make_http_client,
    open_http_async,
)
from deltafold.transports.http1 import Http1Client
from deltafold.transports.http1.addresses import Address, by_turns, socket_to
from deltafold.transports.timeouts import Timeouts
from http1_servers import (
    CHUNKED,
    HELLO,
    LOST,
    OK,
    PROTOCOL,
    answering,
    ask,
    code_of,
    request_of,
    serving,
    until,
)
from http_ways import Answer, request_to, run_async

# To a host with several addresses.


@pytest.mark.parametrize(
    ("families", "turns"),
    [("4", "4"), ("466", "466"), ("6644", "6464"), ("64444", "64444"), ("4466", "4646")],
)
def test_families_of_addresses_take_turns(families: str, turns: str) -> None:
    kinds = {"4": socket.AF_INET, "6": socket.AF_INET6}
    addresses: list[Address] = [
        (kinds[family], socket.SOCK_STREAM, 0, "", (family, number))
        for number, family in enumerate(families)
    ]
    found = by_turns(addresses)
    assert "".join(str(one[4][0]) for one in found) == turns
    assert sorted(one[4][1] for one in found) == list(range(len(families)))


def test_a_silent_address_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        with socket.create_server(("127.0.0.2", 0), backlog=0) as full:
            port = full.getsockname()[1]
            fillers = [socket.socket() for _ in range(4)]
            for filler in fillers:
                filler.settimeout(0)
                filler.connect_ex(("127.0.0.2", port))
            listening = await asyncio.start_server(lambda _, w: w.close(), "127.0.0.1", port)

            async def resolved(*_: object, **__: object) -> list[Address]:
                return [
                    (socket.AF_INET, socket.SOCK_STREAM, 0, "", (host, port))
                    for host in ("127.0.0.3", "127.0.0.2", "127.0.0.1")
                ]

            monkeypatch.setattr(loop, "getaddrinfo", resolved)
            with await socket_to("api.test", port) as found:
                assert found.getpeername() == ("127.0.0.1", port)
            listening.close()
            for filler in fillers:
                filler.close()
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


def test_where_no_address_answers_all_say_why(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as closed:
            port = closed.getsockname()[1]

        async def resolved(*_: object, **__: object) -> list[Address]:
            return [
                (socket.AF_INET, socket.SOCK_STREAM, 0, "", (host, port))
                for host in ("127.0.0.1", "127.0.0.2")
            ]

        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolved)
        async with Http1Client(trust_env=False) as client:
            answer = await ask(client, request_to(f"http://api.test:{port}/"))
        assert code_of(answer) is LOST
        assert re.search(rf"^api.test:{port}: .*127.0.0.1.*127.0.0.2", str(answer.failure))

    asyncio.run(main())


# The pool.


def test_connections_are_kept_and_shared_out_in_turn() -> None:
    async def main() -> None:
        async with answering(*[HELLO] * 9) as server, Http1Client(max_connections=2) as client:
            request = request_to(server.url)
            answers = await asyncio.gather(*(ask(client, request) for _ in range(8)))
            assert [answer.body for answer in answers] == [b"hello"] * 8
            assert server.connections == 2

    asyncio.run(main())


def test_whoever_waits_for_a_connection_is_served_in_turn() -> None:
    async def main() -> None:
        async with answering(*[HELLO] * 9) as server, Http1Client(max_connections=1) as client:
            await asyncio.gather(*(ask(client, request_to(server.url, n=n)) for n in range(6)))
            assert [head.split()[1] for head in server.heads] == [b"/v1?n=%d" % n for n in range(6)]

    asyncio.run(main())


@pytest.mark.parametrize(
    "answer",
    [
        OK + b"connection: close\r\ncontent-length: 5\r\n\r\nhello",
        b"HTTP/1.0 200 OK\r\ncontent-length: 5\r\n\r\nhello",
        HELLO + HELLO,
        HELLO + b"x",
    ],
)
def test_a_connection_that_must_not_be_used_again_is_closed(answer: bytes) -> None:
    async def main() -> None:
        async with answering(answer) as server, Http1Client() as client:
            for _ in range(3):
                assert (await ask(client, request_to(server.url))).body == b"hello"
            assert server.connections == 3

    asyncio.run(main())


def test_a_kept_connection_that_its_server_closed_is_not_used() -> None:
    async def main() -> None:
        async with answering(HELLO, then="close") as server, Http1Client() as client:
            for _ in range(3):
                assert (await ask(client, request_to(server.url))).body == b"hello"
            assert server.connections == 3

    asyncio.run(main())


def test_a_kept_connection_on_which_its_server_speaks_is_not_used() -> None:
    late = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        writer.write(HELLO)
        await late.wait()
        writer.write(b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n")
        await reader.read()

    async def main() -> None:
        async with serving(talk) as server, Http1Client() as client:
            assert (await ask(client, request_to(server.url))).status == 200
            late.set()
            await asyncio.sleep(0.02)
            assert (await ask(client, request_to(server.url))).status == 200
            assert server.connections == 2

    asyncio.run(main())


def test_a_request_is_not_sent_twice_when_its_kept_connection_dies() -> None:
    requests = 0

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal requests
        await request_of(reader)
        requests += 1
        writer.write(HELLO)
        await request_of(reader)
        requests += 1

    async def main() -> None:
        async with serving(talk) as server, Http1Client() as client:
            assert (await ask(client, request_to(server.url))).body == b"hello"
            assert code_of(await ask(client, request_to(server.url))) is LOST
            assert requests == 2

    asyncio.run(main())


def test_idle_connections_are_bounded_in_number_and_in_time() -> None:
    async def main() -> None:
        async with (
            answering(HELLO, HELLO) as server,
            Http1Client(max_idle_connections=2, idle_seconds=0.05) as client,
        ):
            await asyncio.gather(*(ask(client, request_to(server.url)) for _ in range(5)))
            assert client.idle_connections == 2
            await until(lambda: client.open_connections == 0)

    asyncio.run(main())


def test_an_idle_connection_to_another_place_gives_way() -> None:
    async def main() -> None:
        async with (
            answering(HELLO) as one,
            answering(HELLO) as other,
            Http1Client(max_connections=1) as client,
        ):
            assert (await ask(client, request_to(one.url))).body == b"hello"
            assert (await ask(client, request_to(other.url))).body == b"hello"
            await until(lambda: client.open_connections == 1)

    asyncio.run(main())


def test_waiting_for_a_connection_ends_with_total_and_leaves_the_turn_to_others() -> None:
    async def main() -> None:
        async with (
            answering(HELLO) as server,
            answering(OK + b"content-length: 9\r\n\r\nhello") as slow,
            Http1Client(max_connections=1) as client,
        ):
            held = await open_http_async(client, request_to(slow.url))
            waiting = await ask(client, request_to(server.url, Timeouts(total=0.05)))
            assert "0.05 s (timeouts.total)" in str(waiting.failure)
            cancelled = asyncio.create_task(ask(client, request_to(server.url)))
            served = asyncio.create_task(ask(client, request_to(server.url)))
            await asyncio.sleep(0.01)
            cancelled.cancel()
            await held.close()
            assert (await served).body == b"hello"
            with pytest.raises(asyncio.CancelledError):
                await cancelled

    asyncio.run(main())


@pytest.mark.parametrize("turns", range(12))
@pytest.mark.parametrize("idle", [0, 1])
def test_a_call_that_is_cancelled_at_any_turn_holds_nothing(idle: int, turns: int) -> None:
    async def main() -> None:
        async with (
            answering(HELLO, HELLO, HELLO) as server,
            Http1Client(max_connections=1, max_idle_connections=idle) as client,
        ):
            await ask(client, request_to(server.url))
            task = asyncio.create_task(ask(client, request_to(server.url)))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            answer = await ask(client, request_to(server.url, Timeouts(total=5)))
            assert answer.body == b"hello"

    asyncio.run(main())


# Reading slowly, leaving, closing.


def test_a_server_has_to_wait_for_a_slow_reader() -> None:
    sent = 0
    size = 64 * 1024

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await request_of(reader)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, size)
        writer.write(CHUNKED)
        for _ in range(512):
            writer.write(b"%x\r\n%b\r\n" % (size, bytes(size)))
            await writer.drain()
            sent += size
        writer.write(b"0\r\n\r\n")
        await reader.read()

    async def main() -> None:
        async with serving(talk) as server, Http1Client() as client:
            response = await client.send(request_to(server.url))
            seen = -1
            while seen != sent:
                seen = sent
                await asyncio.sleep(0.05)
            # What is neither with the reader nor with the server is in the buffers of the system.
            assert sent < 256 * size
            assert sum([len(chunk) async for chunk in response]) == 512 * size
            assert client.idle_connections == 1

    asyncio.run(main())


def test_a_client_that_is_closed_ends_what_is_being_read() -> None:
    async def main() -> None:
        # A body until the end of its connection must not pass for whole.
        async with answering(OK + b"\r\nhello") as server:
            client = Http1Client()
            source = await open_http_async(client, request_to(server.url))
            assert await anext(source.chunks) == b"hello"
            reading = asyncio.ensure_future(source.chunks.__anext__())
            await asyncio.sleep(0)
            await client.aclose()
            await client.aclose()
            with pytest.raises(ConnectionError, match="client was closed"):
                await reading
            with pytest.raises(MisuseError, match="closed"):
                await open_http_async(client, request_to(server.url))
            assert client.open_connections == 0

    asyncio.run(main())


def test_a_client_belongs_to_its_event_loop() -> None:
    client = Http1Client(max_idle_connections=0)

    async def use() -> Answer:
        async with answering(HELLO) as server:
            return await ask(client, request_to(server.url))

    assert asyncio.run(use()).body == b"hello"
    answer = asyncio.run(use())
    assert isinstance(answer.failure, MisuseError)
    assert "another event loop" in str(answer.failure)
    asyncio.run(client.aclose())


def test_under_trio_it_is_misuse_that_names_the_way_out() -> None:
    async def main() -> None:
        with pytest.raises(MisuseError, match=r"asyncio only; httpx2 runs here"):
            await open_http_async(Http1Client(), request_to("http://127.0.0.1:1/"))

    run_async("trio", main)


def test_a_client_without_connections_is_misuse() -> None:
    with pytest.raises(MisuseError, match="max_connections must be at least 1, not 0"):
        Http1Client(max_connections=0)


def test_it_is_known_as_an_asynchronous_client() -> None:
    async def main() -> None:
        client = make_http_client("asynchronous", "httptools")
        assert isinstance(client, Http1Client)
        assert http_client_kind(client) == "asynchronous"
        await aclose_http_client(client)

    asyncio.run(main())


def test_the_server_that_speaks_first_is_refused() -> None:
    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.test ESMTP\r\n")
        await writer.drain()

    async def main() -> None:
        async with serving(talk) as server, Http1Client() as client:
            assert code_of(await ask(client, request_to(server.url))) in {LOST, PROTOCOL}

    asyncio.run(main())
