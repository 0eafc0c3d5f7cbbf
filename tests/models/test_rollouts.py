"""Rollouts: every token of every answer, retries of what failed, and nothing left behind."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from typing import Any

import pytest

import deltafold
from deltafold import Model, load_model
from deltafold.rollouts import Trajectory, collect
from deltafold.testing import Recording, ReplayTransport
from many_words import BODY
from rollout_server import (
    Answer,
    Answering,
    Body,
    Cut,
    Refusal,
    RolloutServer,
    chunk,
    ended,
    said,
    token,
    tokens,
)

pytestmark = pytest.mark.filterwarnings("error")


def model_of(server: RolloutServer, package: str = "aiohttp") -> Model[Any]:
    return load_model("vllm/m", base_url=server.url, api_key="key-of-tests", transport=package)


def prompt_of(body: Body) -> int:
    return int(body["messages"][-1]["content"])


def n_of(body: Body) -> int:
    return int(body.get("n", 1))


def by_turns(count: int) -> Answering:
    def answering(body: Body) -> Answer:
        return tokens(prompt_of(body), n_of(body), count)

    return answering


async def collected(server: RolloutServer, prompts: Any, **options: Any) -> list[Trajectory]:  # noqa: ANN401
    async with model_of(server) as model:
        return [one async for one in collect(model, prompts, **options)]


def assert_whole(trajectory: Trajectory, count: int) -> None:
    wanted = [token(trajectory.prompt_index, trajectory.choice, place) for place in range(count)]
    assert trajectory.error is None
    assert trajectory.message.text == "".join(text for text, _, _ in wanted)
    assert trajectory.logprobs is not None
    assert trajectory.logprobs.tolist() == [logprob for _, logprob, _ in wanted]
    assert trajectory.token_ids is not None
    assert trajectory.token_ids.tolist() == [number for _, _, number in wanted]


@pytest.mark.slow
@pytest.mark.parametrize("package", ["aiohttp", "httpx2"])
def test_500_requests_at_once_with_8_answers_each_lose_nothing(package: str) -> None:
    async def run() -> list[Trajectory]:
        async with model_of(server, package) as model:
            prompts = [str(number) for number in range(500)]
            found = [one async for one in collect(model, prompts, n=8, concurrency=500)]
            assert asyncio.all_tasks() == {asyncio.current_task()}
            return found

    # No answer begins before all requests are there.
    with RolloutServer(by_turns(10), together=500) as server:
        found = asyncio.run(run())
    assert len(server.requests) == 500
    assert {(one.prompt_index, one.choice) for one in found} == {
        (prompt, choice) for prompt in range(500) for choice in range(8)
    }
    assert len(found) == 4_000
    for one in found:
        assert_whole(one, 10)
        assert one.prompt == str(one.prompt_index)
        assert one.tries == 1


def test_an_answer_of_32_000_tokens_is_whole() -> None:
    with RolloutServer(by_turns(32_000)) as server:
        found = asyncio.run(collected(server, ["0", "1"], n=2))
    assert len(found) == 4
    for one in found:
        assert_whole(one, 32_000)


def test_the_ids_of_the_prompt_and_opaque_members_are_kept() -> None:
    with RolloutServer(by_turns(2)) as server:
        found = asyncio.run(collected(server, ["4"], n=2))
    for one in found:
        assert one.prompt_token_ids is not None
        assert one.prompt_token_ids.tolist() == [4, 5]
        assert one.prompt_token_ids.readonly
        assert one.opaque["routed_experts"] == [[one.choice]]


def test_arrays_are_views_of_the_message() -> None:
    numpy: Any = pytest.importorskip("numpy")
    with RolloutServer(by_turns(3)) as server:
        (one,) = asyncio.run(collected(server, ["4"]))
    first, second = numpy.asarray(one.logprobs), numpy.asarray(one.logprobs)
    assert numpy.shares_memory(first, second)
    assert (first.dtype, numpy.asarray(one.token_ids).dtype) == (numpy.float64, numpy.int64)


def test_an_answer_is_there_while_another_request_goes_on() -> None:
    first_came = threading.Event()

    async def answering(prompt: int) -> Answer:
        yield said(prompt, 0, 0)
        if prompt == 0:
            await asyncio.to_thread(first_came.wait)
        yield ended(0) + b"data: [DONE]\n\n"

    async def run() -> list[int]:
        order: list[int] = []
        async with model_of(server) as model:
            async for one in collect(model, ["0", "1"]):
                order.append(one.prompt_index)
                first_came.set()
        return order

    with RolloutServer(lambda body: answering(prompt_of(body)), together=2) as server:
        assert asyncio.run(run()) == [1, 0]


def without_waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Note the waits between tries, and do not wait."""
    waits: list[float] = []
    sleep = asyncio.sleep

    async def noted(seconds: float) -> None:
        waits.append(seconds)
        await sleep(0)

    monkeypatch.setattr("deltafold.rollouts.asyncio.sleep", noted)
    return waits


def test_what_failed_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    waits = without_waits(monkeypatch)

    async def cut(prompt: int) -> Answer:
        yield said(prompt, 0, 0) + said(prompt, 1, 0) + ended(1) + said(prompt, 2, 0)
        raise Cut

    def answering(body: Body) -> Answer | Refusal:
        number = len(server.requests)
        if number == 1:
            return Refusal(503, headers={"retry-after": "7"})
        return cut(prompt_of(body)) if number == 2 else tokens(prompt_of(body), n_of(body), 1)

    with RolloutServer(answering) as server:
        found = asyncio.run(collected(server, ["5"], n=3))
    assert [request.get("n") for request in server.requests] == [3, 3, 2]
    assert sorted((one.choice, one.tries) for one in found) == [(0, 3), (1, 2), (2, 3)]
    assert all(one.error is None for one in found)
    assert [one.message.text for one in found if one.choice == 1] == [token(5, 1, 0)[0]]
    assert 7 <= waits[0] <= 9
    assert 1 <= waits[1] <= 1.25


def test_the_last_failure_is_in_the_trajectory(monkeypatch: pytest.MonkeyPatch) -> None:
    without_waits(monkeypatch)

    def answering(body: Body) -> Refusal:
        return Refusal(
            429 if prompt_of(body) == 0 else 401, b'{"error":{"message":"key-of-tests"}}'
        )

    with RolloutServer(answering) as server:
        found = asyncio.run(collected(server, ["0", "1"], n=2, retries=3))
    tries = {
        (one.prompt_index, one.choice): (one.error and one.error.code, one.tries) for one in found
    }
    assert tries == {
        **{(0, choice): ("rate_limited", 4) for choice in (0, 1)},
        **{(1, choice): ("authentication", 1) for choice in (0, 1)},
    }
    assert len(server.requests) == 5
    assert all("key-of-tests" not in str(one.error) for one in found)


def test_a_failed_answer_keeps_what_came(monkeypatch: pytest.MonkeyPatch) -> None:
    without_waits(monkeypatch)

    async def cut(prompt: int) -> Answer:
        yield said(prompt, 0, 0) + said(prompt, 0, 1)
        raise Cut

    with RolloutServer(lambda body: cut(prompt_of(body))) as server:
        (one,) = asyncio.run(collected(server, ["5"], retries=0))
    assert one.error is not None
    assert one.error.code == "connection_lost"
    assert one.message.text == token(5, 0, 0)[0] + token(5, 0, 1)[0]
    assert one.token_ids is not None
    assert one.token_ids.tolist() == [token(5, 0, 0)[2], token(5, 0, 1)[2]]


def test_a_server_that_gives_fewer_answers_is_found_out() -> None:
    with RolloutServer(lambda body: tokens(prompt_of(body), 1, 2)) as server:
        found = asyncio.run(collected(server, ["5"], n=3))
    codes = {one.choice: one.error and (one.error.code, one.error.message) for one in found}
    wrong = ("protocol_error", "the response has 1 of 3 answers")
    assert codes == {0: None, 1: wrong, 2: wrong}


def test_a_protocol_without_n_has_a_request_for_each_answer() -> None:
    async def run() -> list[Trajectory]:
        transport = ReplayTransport({"*": Recording.of_events(BODY)})
        model = deltafold.AnthropicModel({"model_id": "m", "max_tokens": 9}, client=transport)
        return [one async for one in collect(model, ["a", "b"], n=3, concurrency=4)]

    found = asyncio.run(run())
    assert sorted((one.prompt_index, one.choice) for one in found) == [
        (prompt, choice) for prompt in (0, 1) for choice in range(3)
    ]
    assert len({one.message.text for one in found}) == 1


def test_prompts_are_taken_as_they_are_needed() -> None:
    taken: list[int] = []

    def prompts() -> Iterator[str]:
        for number in range(1_000):
            taken.append(number)
            yield str(number)

    async def run() -> None:
        async with model_of(server) as model:
            count = 0
            async with aclosing(collect(model, prompts(), concurrency=5)) as trajectories:
                async for _ in trajectories:
                    count += 1
                    # In flight, waiting in the queue, and given.
                    assert len(taken) <= count + 5 + 5 + 1
                    if count == 50:
                        break

    with RolloutServer(by_turns(2)) as server:
        asyncio.run(run())


async def slowly(count: int) -> AsyncIterator[str]:
    for number in range(count):
        await asyncio.sleep(0.001)
        yield str(number)


def test_prompts_may_come_from_an_asynchronous_generator() -> None:
    with RolloutServer(by_turns(2)) as server:
        found = asyncio.run(collected(server, slowly(20), concurrency=3))
    assert sorted(one.prompt_index for one in found) == list(range(20))


def test_leaving_the_loop_ends_all_requests() -> None:
    async def endless(prompt: int) -> Answer:
        yield said(prompt, 0, 0) + (ended(0) if prompt == 0 else b"")
        while prompt:
            await asyncio.sleep(0.01)
            yield said(prompt, 0, 1)

    async def run() -> None:
        async with model_of(server) as model:
            trajectories = collect(model, [str(number) for number in range(20)], concurrency=20)
            async for one in trajectories:
                assert one.prompt_index == 0
                break
            await trajectories.aclose()
            assert asyncio.all_tasks() == {asyncio.current_task()}

    with RolloutServer(lambda body: endless(prompt_of(body)), together=20) as server:
        asyncio.run(run())


def test_mistakes_of_the_caller_raise() -> None:
    async def run(**options: Any) -> None:  # noqa: ANN401
        await collected(server, ["0", "1"], **options)

    with RolloutServer(by_turns(2)) as server:
        with pytest.raises(ValueError, match="n must be at least 1"):
            asyncio.run(run(n=0))
        with pytest.raises(ValueError, match="concurrency must be at least 1"):
            asyncio.run(run(concurrency=0))
        with pytest.raises(ValueError, match="tempo"):
            asyncio.run(run(tempo=1))
        assert not server.requests


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("wrong", ["a\ud800", 5, [{"role": "user", "content": 7}]], ids=repr)
def test_a_prompt_that_cannot_be_sent_costs_no_other_answer(wrong: object, n: int) -> None:
    prompts: list[Any] = [str(number) if number != 3 else wrong for number in range(10)]
    with RolloutServer(by_turns(2)) as server:
        found = asyncio.run(collected(server, prompts, n=n, concurrency=4))
    failed = [one for one in found if one.error is not None]
    assert sorted((one.prompt_index, one.choice) for one in found) == [
        (prompt, choice) for prompt in range(10) for choice in range(n)
    ]
    assert [(one.prompt_index, one.choice, one.tries) for one in failed] == [
        (3, choice, 0) for choice in range(n)
    ]
    for one in failed:
        assert one.prompt is wrong
        assert one.error is not None
        assert (one.error.code, one.error.retryable) == ("invalid_request", False)
        assert "the prompt cannot be sent" in one.error.message
        assert isinstance(one.error.__cause__, Exception)
    assert len(server.requests) == 9


def broken_after(count: int) -> Iterator[str]:
    for number in range(count):
        yield str(number)
    raise LookupError("row is broken")


async def slowly_broken_after(count: int) -> AsyncIterator[str]:
    for one in range(count):
        await asyncio.sleep(0.001)
        yield str(one)
    raise LookupError("row is broken")


@pytest.mark.parametrize("prompts", [broken_after, slowly_broken_after])
@pytest.mark.parametrize(("count", "concurrency"), [(0, 3), (2, 5), (9, 3)])
def test_what_a_generator_raises_comes_after_the_answers_under_way(
    prompts: Any,  # noqa: ANN401 - of either kind
    count: int,
    concurrency: int,
) -> None:
    found: list[int] = []

    async def run() -> None:
        async with model_of(server) as model:
            async for one in collect(model, prompts(count), concurrency=concurrency):
                assert one.error is None
                found.append(one.prompt_index)

    with RolloutServer(by_turns(2)) as server, pytest.raises(LookupError, match="row is broken"):
        asyncio.run(run())
    assert sorted(found) == list(range(count))


def test_what_a_hook_raises_comes_after_the_answers_under_way() -> None:
    found: list[int] = []

    def before(context: Any) -> None:  # noqa: ANN401
        if context.body["messages"][-1]["content"] == "1":
            raise LookupError("no budget")

    async def run() -> None:
        hooks = deltafold.Hooks(before_request=before)
        model = load_model("vllm/m", base_url=server.url, transport="aiohttp", hooks=hooks)
        async with model:
            prompts = [str(number) for number in range(3)]
            async for one in collect(model, prompts, concurrency=3):
                found.append(one.prompt_index)  # noqa: PERF401 - those before the exception count

    with RolloutServer(by_turns(2)) as server, pytest.raises(LookupError, match="no budget"):
        asyncio.run(run())
    assert sorted(found) == [0, 2]


@pytest.mark.parametrize(
    "ids", [[1, "x"], [2**64], [1.5], {"a": 1}, [None], [[1]], [True], "12", 7, True], ids=repr
)
def test_ids_of_a_prompt_that_are_no_list_of_integers_are_none(
    ids: object, caplog: pytest.LogCaptureFixture
) -> None:
    async def hostile(prompt: int) -> Answer:
        yield said(prompt, 0, 0) + chunk([], prompt_token_ids=ids) + ended(0)

    with RolloutServer(lambda body: hostile(prompt_of(body))) as server:
        (one,) = asyncio.run(collected(server, ["4"]))
    assert one.error is None
    assert one.prompt_token_ids is None
    assert "prompt 0: prompt_token_ids of the response are no list of 64-bit" in caplog.text


def test_an_empty_list_of_ids_is_a_list(caplog: pytest.LogCaptureFixture) -> None:
    async def empty(prompt: int) -> Answer:
        yield said(prompt, 0, 0) + chunk([], prompt_token_ids=[]) + ended(0)

    with RolloutServer(lambda body: empty(prompt_of(body))) as server:
        (one,) = asyncio.run(collected(server, ["4"]))
    assert one.prompt_token_ids is not None
    assert one.prompt_token_ids.tolist() == []
    assert not caplog.text


def test_hooks_are_called_for_each_request() -> None:
    seen: list[str] = []

    def before(context: Any) -> None:  # noqa: ANN401
        context.body["user"] = "me"
        seen.append(context.model_id)

    async def run() -> None:
        hooks = deltafold.Hooks(before_request=before)
        model = load_model("vllm/m", base_url=server.url, transport="aiohttp", hooks=hooks)
        async with model:
            assert len([one async for one in collect(model, ["0"], n=2)]) == 2

    with RolloutServer(by_turns(2)) as server:
        asyncio.run(run())
    assert seen == ["m"]
    assert [request["user"] for request in server.requests] == ["me"]


def test_a_whole_body_has_its_answers() -> None:
    async def whole(n: int) -> Answer:
        choices = [
            {
                "index": at,
                "message": {"role": "assistant", "content": f"{at}"},
                "finish_reason": "stop",
            }
            for at in range(n)
        ]
        yield chunk(choices)[len(b"data: ") :].replace(b"chat.completion.chunk", b"chat.completion")

    with RolloutServer(lambda body: whole(n_of(body))) as server:
        found = asyncio.run(collected(server, ["0"], n=3))
    assert sorted((one.choice, one.message.text) for one in found) == [(0, "0"), (1, "1"), (2, "2")]


def test_the_usage_of_a_request_counts_once_over_its_answers() -> None:
    counts = b'"usage":{"prompt_tokens":9,"completion_tokens":6,"total_tokens":15}'

    async def answers(n: int) -> Answer:
        ended = [
            {"index": at, "delta": {"content": f"{at}"}, "finish_reason": "stop"} for at in range(n)
        ]
        yield chunk(ended)
        yield b'data: {"object":"chat.completion.chunk","choices":[],%b}\n\n' % counts
        yield b"data: [DONE]\n\n"

    with RolloutServer(lambda body: answers(n_of(body))) as server:
        found = asyncio.run(collected(server, ["0", "1"], n=3))
    for prompt in range(2):
        used = [one.message.meta.usage for one in found if one.prompt_index == prompt]
        counted = [usage.total_tokens for usage in used if usage is not None]
        assert (len(used), counted) == (3, [15])
    assert not any(one.message.meta.warnings for one in found)
