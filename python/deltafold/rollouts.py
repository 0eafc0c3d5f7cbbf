"""Rollouts: many answers to many prompts, with the tokens that training needs.

In: a `Model` and prompts.  Out: trajectories, each when it ends.

Laws: at most `concurrency` requests are in flight, and prompts are taken as they are needed. A slow
consumer slows the requests down. Nothing is stored: what the caller keeps is the caller's matter.
Closing the generator ends the requests in flight. A prompt that cannot be sent costs no other
answer. An exception of the caller's code is raised after the answers under way.
"""

import asyncio
import random
from array import array
from collections.abc import AsyncGenerator, AsyncIterable, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias, Unpack, cast

from deltafold.contract.foreign_text import well_formed
from deltafold.contract.kinds import ErrorCode
from deltafold.contract.log import LOGGER
from deltafold.errors.model_error import ModelError
from deltafold.message.card import Block, Card
from deltafold.message.cards import failure_card, message_card, nested
from deltafold.message.messages import Message
from deltafold.message.shown import Shown
from deltafold.models.base import Model
from deltafold.models.call_inputs import Messages, Tools

if TYPE_CHECKING:
    from deltafold.models.setting_types import CallSettings

__all__ = ["Trajectory", "collect"]

_FIRST_WAIT: Final = 0.5
_LONGEST_WAIT: Final = 60.0
_ANY_PROMPT: Final = "When?"

_Model: TypeAlias = Model[Any]


@dataclass(frozen=True, slots=True)
class Trajectory(Shown):
    """One answer to one prompt.

    The arrays are contiguous and read-only. `numpy.asarray(trajectory.logprobs)` and
    `torch.frombuffer(trajectory.token_ids, dtype=torch.int64)` copy nothing.

    >>> async for trajectory in deltafold.rollouts.collect(
    ...     model, ["When is high tide?"], n=2
    ... ):
    ...     trajectory.prompt_index, trajectory.choice, trajectory.message.text

    Attributes:
        prompt: the prompt, the object that was given.
        prompt_index: its position among the prompts.
        choice: the number of the answer, from 0 to n - 1.
        message: the answer; after a failure, the parts that came. The usage of a request that asks
            for several answers counts all of them, and stands in the first one that ends.
        error: the failure that ended the answer, after the last try. Of a prompt that cannot be
            sent it is `invalid_request`, with the reason as its cause.
        tries: the number of requests that were sent for this answer.
    """

    prompt: Messages = field(repr=False)
    prompt_index: int
    choice: int
    message: Message = field(repr=False)
    error: ModelError | None = None
    tries: int = 1

    def _card(self) -> Card:
        """Return the answer, behind its place, its tokens and the failure that ended it."""
        asked = self.prompt if isinstance(self.prompt, str) else repr(self.prompt)
        blocks: list[Block | Card] = [
            Block(kind="other", label="prompt", text=asked, folds=not isinstance(self.prompt, str))
        ]
        if self.error is not None:
            failure = failure_card(self.error)
            # The message has what was received before.
            own = [one for one in failure.blocks if isinstance(one, Block)]
            blocks.append(replace(failure, blocks=own))
        facts = [f"prompt {self.prompt_index}, choice {self.choice}"]
        facts += [f"{self.tries} tries"] if self.tries > 1 else []
        for tokens, what in ((self.token_ids, "token ids"), (self.logprobs, "log probabilities")):
            facts += [f"{len(tokens):,} {what}"] if tokens is not None else []
        blocks.append(nested("answer", message_card(self.message)))
        return Card(
            title=f"Trajectory {'whole' if self.error is None else self.error.code}",
            facts=facts,
            blocks=blocks,
        )

    @property
    def logprobs(self) -> "memoryview[float] | None":
        """Log probabilities of the tokens (float64); None without them."""
        logprobs = self.message.meta.logprobs
        return None if logprobs is None else logprobs.logprobs

    @property
    def token_ids(self) -> memoryview | None:
        """Ids of the tokens (int64); None if the server sent none."""
        logprobs = self.message.meta.logprobs
        return None if logprobs is None else logprobs.token_ids

    @property
    def prompt_token_ids(self) -> memoryview | None:
        """Ids of the prompt's tokens (int64), made anew at each access; None without them.

        A server may send anything under this name. What is no list of 64-bit integers is None, with
        a warning in the log.
        """
        ids = self.opaque.get("prompt_token_ids")
        if ids is None:
            return None
        try:
            # `array` takes any object that can be an integer, such as true.
            if isinstance(ids, list) and set(map(type, cast("list[object]", ids))) <= {int}:
                return memoryview(array("q", cast("list[int]", ids))).toreadonly()
        except OverflowError:
            pass
        LOGGER.warning(
            "prompt %d: prompt_token_ids of the response are no list of 64-bit integers",
            self.prompt_index,
        )
        return None

    @property
    def opaque(self) -> dict[str, object]:
        """Other members of the response under the server's names, such as `routed_experts`."""
        return self.message.meta.details or {}


def collect(
    model: _Model,
    prompts: Iterable[Messages] | AsyncIterable[Messages],
    *,
    n: int = 1,
    concurrency: int = 100,
    retries: int = 2,
    tools: Tools | None = None,
    **params: Unpack["CallSettings"],
) -> AsyncGenerator[Trajectory]:
    """Ask a model for n answers to each prompt, and yield each answer when it ends.

    The request asks for log probabilities, where its protocol can, and the answer has the token
    ids, if the server sends them: vLLM and SGLang do for
    `extra_body={"return_token_ids": True}`. Where the protocol has no `n`, each answer is a request
    of its own. An answer that fails is asked for again, without those that have ended; the failure
    of the last try is in `error`. The waits between the tries grow, and are at least what the
    provider asks for. To leave the loop early, close the generator (`contextlib.aclosing`) before
    the model: until then, requests go on.

    >>> prompts = ["Count to ten.", "Name three tides."]
    >>> async for trajectory in deltafold.rollouts.collect(
    ...     model, prompts, n=8, concurrency=500
    ... ):
    ...     if trajectory.error is None:
    ...         trajectory.prompt_index, trajectory.token_ids, trajectory.logprobs

    Args:
        model: the model.
        prompts: each what `Model.stream` takes as messages; they may come from a generator.
        n: the number of answers to each prompt.
        concurrency: the number of requests in flight. A client that the model makes gets so many
            connections at least.
        retries: the number of further tries of an answer whose error is `retryable`.
        tools: the tools that the model may call.
        params: settings of the call, as `Model.stream` takes them.

    Raises:
        ValueError: `n` or `concurrency` is less than 1, or a setting is wrong.
        Exception: what the generator of the prompts or a hook raised, after the answers under way.
    """
    for name, number in (("n", n), ("concurrency", concurrency)):
        if number < 1:
            raise ValueError(f"{name} must be at least 1 (got {number})")
    given: dict[str, Any] = {**params}
    if model.dialect == "openai-chat":
        given = {"logprobs": True, **given}
    model.allow_connections(concurrency)
    collecting = _Collecting(model, prompts, n, retries=retries, tools=tools, params=given)
    return collecting.trajectories(concurrency)


@dataclass(frozen=True, slots=True)
class _Unit:
    """Answers that one request asks for."""

    prompt: Messages
    prompt_index: int
    choices: tuple[int, ...]


_Found: TypeAlias = Trajectory | None
"""An answer, or the end of one worker."""


class _Collecting:
    """One call of `collect`."""

    def __init__(
        self,
        model: _Model,
        prompts: Iterable[Messages] | AsyncIterable[Messages],
        n: int,
        *,
        retries: int,
        tools: Tools | None,
        params: dict[str, Any],
    ) -> None:
        self._model = model
        # One request asks for several answers in protocols that have this setting.
        together = "candidate_count" in model.row.settings
        self._units = _units(prompts, n, together=together)
        self._taking = asyncio.Lock()
        self._retries = retries
        self._tools = tools
        self._params = params
        self._mistake: Exception | None = None

    async def trajectories(self, concurrency: int) -> AsyncGenerator[Trajectory]:
        """Yield the answers; the workers end with this generator."""
        found: asyncio.Queue[_Found] = asyncio.Queue(concurrency)
        workers: set[asyncio.Task[None]] = set()
        try:
            # A worker is made for a prompt that is there, so that few prompts make few workers.
            first = await self._next_unit()
            while first is not None and len(workers) < concurrency:
                workers.add(asyncio.create_task(self._work(first, found)))
                first = await self._next_unit() if len(workers) < concurrency else None
            running = len(workers)
            while running:
                one = await found.get()
                if one is None:
                    running -= 1
                else:
                    yield one
            if self._mistake is not None:
                raise self._mistake
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            await self._units.aclose()

    async def _next_unit(self) -> _Unit | None:
        """Take the next answers to ask for; None after the last one, and after a mistake."""
        async with self._taking:
            if self._mistake is not None:
                return None
            try:
                return await anext(self._units, None)
            except Exception as mistake:  # noqa: BLE001 - of the caller's generator; raised at the end
                self._mistake = mistake
                return None

    async def _work(self, unit: _Unit | None, found: "asyncio.Queue[_Found]") -> None:
        try:
            while unit is not None:
                await self._answer(unit, found)
                unit = await self._next_unit()
        except Exception as mistake:  # noqa: BLE001 - raised where the caller waits, at the end
            self._mistake = self._mistake or mistake
        await found.put(None)

    async def _answer(self, unit: _Unit, found: "asyncio.Queue[_Found]") -> None:
        """Ask until each answer has ended well, or has failed for the last time."""
        asked, tries = unit.choices, 1
        while asked:
            failed: dict[int, Trajectory] = {}
            is_counted = False
            async for one in self._request(unit, asked, tries):
                if one.error is None or not one.error.retryable or tries > self._retries:
                    # The counts are those of the request: one of its answers has them.
                    if is_counted:
                        one.message.meta.usage = None
                    is_counted = is_counted or one.message.meta.usage is not None
                    await found.put(one)
                else:
                    failed[one.choice] = one
            if failed:
                errors = [one.error for one in failed.values() if one.error is not None]
                await asyncio.sleep(_wait(errors, tries))
            asked, tries = tuple(failed), tries + 1

    async def _request(
        self, unit: _Unit, asked: tuple[int, ...], tries: int
    ) -> AsyncGenerator[Trajectory]:
        """Send one request, and yield an answer for each that was asked for."""
        params = dict(self._params)
        if len(asked) > 1:
            params["candidate_count"] = len(asked)
        left = dict(enumerate(asked))
        last: ModelError | None = None
        try:
            reading = self._model.stream_choices(unit.prompt, self._tools, **params)
        except Exception as wrong:  # noqa: BLE001 - whatever a prompt leads to
            # Settings that fit no prompt are the caller's mistake.
            self._model.stream_choices(_ANY_PROMPT, self._tools, **params)
            for number in asked:
                yield _unsent(unit, number, wrong, tries - 1)
            return
        async with aclosing(reading) as answers:
            async for one in answers:
                choice = left.pop(one.choice, None)
                last = one.error
                if choice is not None:
                    yield Trajectory(
                        unit.prompt, unit.prompt_index, choice, one.message, one.error, tries
                    )
        for choice in left.values():
            error = last or ModelError(
                code=ErrorCode.PROTOCOL_ERROR,
                message=f"the response has {len(asked) - len(left)} of {len(asked)} answers",
                retryable=False,
            )
            message = Message.assistant()
            yield Trajectory(unit.prompt, unit.prompt_index, choice, message, error, tries)


def _unsent(unit: _Unit, choice: int, wrong: Exception, tries: int) -> Trajectory:
    """Return the answer to a prompt that cannot be sent."""
    error = ModelError(
        code=ErrorCode.INVALID_REQUEST,
        message=well_formed(f"the prompt cannot be sent: {wrong}"),
        retryable=False,
    )
    error.__cause__ = wrong
    return Trajectory(unit.prompt, unit.prompt_index, choice, Message.assistant(), error, tries)


async def _units(
    prompts: Iterable[Messages] | AsyncIterable[Messages], n: int, *, together: bool
) -> AsyncGenerator[_Unit]:
    groups = [tuple(range(n))] if together else [(choice,) for choice in range(n)]
    async with aclosing(_each(prompts)) as each:
        index = 0
        async for prompt in each:
            for choices in groups:
                yield _Unit(prompt, index, choices)
            index += 1


async def _each(
    prompts: Iterable[Messages] | AsyncIterable[Messages],
) -> AsyncGenerator[Messages]:
    if isinstance(prompts, AsyncIterable):
        async for prompt in prompts:
            yield prompt
    else:
        for prompt in prompts:
            yield prompt


def _wait(errors: list[ModelError], tries: int) -> float:
    """Return the seconds until the next try: at least what a provider asks for."""
    own: float = min(_FIRST_WAIT * 2 ** (tries - 1), _LONGEST_WAIT)
    asked = max((error.retry_after or 0.0 for error in errors), default=0.0)
    return max(own, asked) * (1 + random.random() / 4)  # noqa: S311 - spreads the tries
