"""Differential fuzzing of the whole decoding path, from bytes to the message.

In: the fixtures of `tests/fixtures/streams`, mutated as bytes or as JSON, cut into random chunks.
Out: one line of statistics; each input that breaks a law, as a file in `--artifacts`.

Laws that `check` holds every input to:
- nothing raises but `ModelError`, and that only where a stream ended in an error;
- every stream has exactly one terminal delta, the last one, and `seq` rises by 1 from 1;
- decoder, `Fold`, `fold_many`, a column of Arrow, `DeltaStream`, `AsyncDeltaStream` and the
  reference assembler agree, in any chunking;
- the ways of reading a stream, and their mixtures, agree;
- every delta and every message survives JSON and pickle.

usage: python tools/differential_fuzz.py [--seconds 60] [--seed 0] [--processes 2]
"""

import argparse
import asyncio
import multiprocessing
import pickle
import random
import sys
import time
import traceback
import zlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import deltafold
from deltafold import (
    Decoder,
    DeltaBatch,
    Fold,
    Message,
    MessageAssembler,
    MessageDelta,
    ModelError,
)
from deltafold._core import FIRST_REFUSAL
from fuzz_inputs import mutate_bytes, mutate_json, options_of, pieces_of, seeds
from reference import MessageAssembler as Reference

if TYPE_CHECKING:
    from any_name import AnyName

NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
HAS_ARROW: Final = find_spec("pyarrow") is not None

_TERMINALS: Final = ("done", "error")


class BrokenLawError(Exception):
    """An input breaks a law."""


def _hold(holds: bool, law: str) -> None:
    if not holds:
        raise BrokenLawError(law)


def now() -> datetime:
    """Return the same time at each call, so that two runs can be compared."""
    return NOW


def check(
    dialect: "AnyName",
    body: bytes,
    pieces: Sequence[bytes],
    options: dict[str, Any],
    *,
    deep: bool = True,
) -> str:
    """Hold one input to the laws; returns how the stream ended: "done", or the error's code.

    `deep` adds what costs most: the streams, the reference assembler, pickle and JSON.
    """
    made = partial(Decoder, dialect, run_id="run", clock=now, **options)
    decoder, assembler = made(), MessageAssembler("run")
    deltas: list[MessageDelta] = []
    for batch in (decoder.feed(body), decoder.close()):
        assembler.consume(batch)
        deltas.extend(batch)
    kinds = [str(delta.kind) for delta in deltas]
    _hold(kinds[0] == "start", f"start is first: {kinds}")
    terminals = [at for at, kind in enumerate(kinds, 1) if kind in _TERMINALS]
    _hold(terminals == [len(kinds)], f"one terminal, the last delta: {kinds}")
    _hold([delta.seq for delta in deltas] == [*range(1, len(deltas) + 1)], "seq is dense")
    decoder = made()
    chunked: list[MessageDelta] = []
    for piece in pieces:
        chunked.extend(decoder.feed(piece))
    chunked.extend(decoder.close())
    _hold(chunked == deltas, "the deltas depend on the chunking")
    expected = _outcome(_result(assembler.build_final_message))
    fold = Fold(dialect, run_id="run", clock=now, **options)
    for piece in pieces:
        fold.feed(piece)
    fold.close()
    _hold(_outcome(_result(fold.assembler.build_final_message)) == expected, "Fold differs")
    if deep:
        _check_deep(dialect, body, pieces, options, deltas=deltas, expected=expected)
    last = deltas[-1]
    return "done" if kinds[-1] == "done" else str(last.payload["errorCode"])


def _check_deep(
    dialect: "AnyName",
    body: bytes,
    pieces: Sequence[bytes],
    options: dict[str, Any],
    *,
    deltas: list[MessageDelta],
    expected: object,
) -> None:
    given: dict[str, Any] = {"run_id": "run", "clock": now, **options}
    many = deltafold.fold_many([body, body], dialect, threads=1, **given)
    for one in many:
        _hold(_outcome(_result(one.build_final_message)) == expected, "fold_many differs")
    for delta in deltas:
        _hold(MessageDelta.from_dict(delta.to_dict()) == delta, "a delta and its dict differ")
        _hold(MessageDelta.from_json(delta.to_json()) == delta, "a delta and its JSON differ")
    _hold(pickle.loads(pickle.dumps(deltas)) == deltas, "deltas and their pickle differ")  # noqa: S301 - our own bytes
    reference = Reference("run")
    for delta in deltas:
        reference.consume(delta)
    built = _result(reference.build_final_message)
    _hold(_outcome(built) == expected, "the reference assembler differs")
    _check_streams(dialect, pieces, given, deltas, expected)
    whole = _message_of(built)
    if HAS_ARROW:
        _check_columns(dialect, body, given, built)
    _hold(Message.from_dict(whole.to_dict()) == whole, "a message and its dict differ")
    _hold(Message.from_json(whole.to_json()) == whole, "a message and its JSON differ")
    _hold(Message.model_validate_json(whole.model_dump_json()) == whole, "pydantic's JSON differs")
    _hold(pickle.loads(pickle.dumps(whole)) == whole, "a message and its pickle differ")  # noqa: S301 - our own bytes
    _hold(bool(str(built) and repr(built)), "a message and an error show themselves")


def _check_columns(
    dialect: "AnyName", body: bytes, given: dict[str, Any], built: Message | ModelError
) -> None:
    """Hold a row of a column to the message of its body."""
    pyarrow: Any = import_module("pyarrow")
    folded = deltafold.arrow.fold(pyarrow.array([body, None, body]), dialect, **given)
    folded.validate(full=True)
    row, none, again = folded.to_pylist()
    _hold(none is None and repr(row) == repr(again), "equal rows of a column differ")
    whole = _message_of(built)
    error = built if isinstance(built, ModelError) else None
    warnings = whole.meta.warnings if error is None else error.warnings
    count = None if whole.meta.usage is None else whole.meta.usage.output_tokens
    wanted = (
        whole.text,
        whole.thinking,
        [(call.tool_call_id, call.tool_name, call.raw_args_text) for call in whole.tool_calls],
        whole.meta.finish_reason,
        error and (error.code, error.message, error.retryable, error.retry_after, error.status),
        [(warning["code"], warning["message"]) for warning in warnings],
        count if count is None or count < 1 << 63 else None,
    )
    failure, usage = row["error"], row["usage"]
    names = ("code", "message", "retryable", "retry_after", "status")
    found = (
        row["text"],
        row["thinking"],
        [(call["id"], call["name"], call["arguments"]) for call in row["tool_calls"]],
        row["finish_reason"],
        failure and tuple(failure[name] for name in names),
        [(warning["code"], warning["message"]) for warning in row["warnings"]],
        usage and usage["output_tokens"],
    )
    _hold(found == wanted, f"the row of a column differs: {found} {wanted}")


def _check_streams(
    dialect: "AnyName",
    pieces: Sequence[bytes],
    given: dict[str, Any],
    deltas: list[MessageDelta],
    expected: object,
) -> None:
    if given.get("status", 200) >= FIRST_REFUSAL:
        # A stream redacts a refused body, which it keeps in `ModelError.body` and in no delta.
        given = {**given, "provider_raw": False}
        deltas = [_without_raw(delta) for delta in deltas]
    stream = deltafold.stream(iter(pieces), dialect, **given)
    _hold(list(stream) == deltas, "DeltaStream differs")
    _hold(
        _outcome(_result(lambda: stream.message)) == expected, "the message of DeltaStream differs"
    )
    streamed = deltafold.stream(iter(pieces), dialect, **given)
    _hold(
        _outcome(_result(streamed.final_message)) == expected,
        "final_message() of DeltaStream differs",
    )
    awaited, message = asyncio.run(_awaited(dialect, pieces, given))
    _hold(awaited == deltas, "AsyncDeltaStream differs")
    _hold(_outcome(message) == expected, "the message of AsyncDeltaStream differs")
    _check_mixed(dialect, pieces, given, deltas, expected)


def _check_mixed(
    dialect: "AnyName",
    pieces: Sequence[bytes],
    given: dict[str, Any],
    deltas: list[MessageDelta],
    expected: object,
) -> None:
    """Read a stream by deltas and by batches in turns, and the rest of it as text."""
    chance = random.Random(zlib.crc32(b"".join(pieces)))  # noqa: S311 - no secret
    turns = [(chance.random() < 0.5, chance.randrange(4)) for _ in range(4)]
    stream = deltafold.stream(iter(pieces), dialect, **given)
    seen: list[MessageDelta] = []
    for by_batch, count in turns:
        if by_batch:
            seen.extend(chain.from_iterable(islice(stream.batches(), count)))
        else:
            seen.extend(islice(stream, count))
    _hold(seen == deltas[: len(seen)], "mixed reading of DeltaStream loses or repeats deltas")
    text = ""
    with suppress(ModelError):
        for piece in stream.text():
            text += piece
    _hold(text == _text_of(deltas[len(seen) :]), "the text after mixed reading differs")
    _hold(
        _outcome(_result(stream.final_message)) == expected,
        "the message after mixed reading differs",
    )
    awaited, text, message = asyncio.run(_awaited_in_turns(dialect, pieces, given, turns))
    _hold(awaited == seen, "mixed reading of AsyncDeltaStream differs")
    _hold(text == _text_of(deltas[len(seen) :]), "the awaited text after mixed reading differs")
    _hold(_outcome(message) == expected, "the awaited message after mixed reading differs")


def _text_of(deltas: Sequence[MessageDelta]) -> str:
    return "".join(delta.text or "" for delta in deltas if delta.kind == "text")


def _without_raw(delta: MessageDelta) -> MessageDelta:
    wire = delta.to_dict()
    wire.pop("providerRaw", None)
    return MessageDelta.from_dict(wire)


async def _awaited(
    dialect: "AnyName", pieces: Sequence[bytes], given: dict[str, Any]
) -> tuple[list[MessageDelta], Message | ModelError]:
    async with deltafold.astream(_awaited_pieces(pieces), dialect, **given) as stream:
        deltas = [delta async for delta in stream]
        return deltas, _result(lambda: stream.message)


async def _awaited_in_turns(
    dialect: "AnyName",
    pieces: Sequence[bytes],
    given: dict[str, Any],
    turns: Sequence[tuple[bool, int]],
) -> tuple[list[MessageDelta], str, Message | ModelError]:
    async with deltafold.astream(_awaited_pieces(pieces), dialect, **given) as stream:
        seen: list[MessageDelta] = []
        for by_batch, count in turns:
            batches, one_by_one = stream.batches(), aiter(stream)
            for _ in range(count):
                found = await (anext(batches, None) if by_batch else anext(one_by_one, None))
                seen.extend(found if isinstance(found, DeltaBatch) else [found] if found else [])
        text = ""
        with suppress(ModelError):
            async for piece in stream.text():
                text += piece
        try:
            return seen, text, await stream.final_message()
        except ModelError as error:
            return seen, text, error


async def _awaited_pieces(pieces: Sequence[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


def _result(build: Callable[[], Message]) -> Message | ModelError:
    """Return the message that a function builds, or the error that it raises."""
    try:
        return build()
    except ModelError as error:
        return error


def _message_of(built: Message | ModelError) -> Message:
    whole = built.partial_message if isinstance(built, ModelError) else built
    if whole is None:
        raise BrokenLawError("an error has its partial message")
    return whole


def _outcome(message: Message | ModelError) -> object:
    """Return all of a message or an error that two ways of reading must agree on."""
    if isinstance(message, ModelError):
        partial_message = _message_of(message)
        facts = (message.code, message.message, message.retryable, message.retry_after)
        more = (message.status, message.provider_code, message.http_request_id, message.warnings)
        return (*facts, *more, _outcome(partial_message))
    wire = message.to_dict()
    del wire["id"]
    return wire


# The run.


@dataclass(slots=True)
class Finding:
    """An input that breaks a law."""

    dialect: str
    body: bytes
    options: str
    trace: str


def run(number: int, seconds: float, seed: int) -> tuple[int, Counter[str], list[Finding]]:
    """Check mutated fixtures until the time is over; returns executions, endings and findings.

    The end of the traceback tells the cause; of findings with one cause the first one is kept.
    """
    chance = random.Random(seed * 1_000 + number)  # noqa: S311 - mutations, not secrets
    known = seeds()
    endings: Counter[str] = Counter()
    findings: dict[str, Finding] = {}
    ends, count = time.monotonic() + seconds, 0
    while time.monotonic() < ends:
        start = chance.choice(known)
        mutate = mutate_json if chance.random() < 0.6 else mutate_bytes
        body = mutate(chance, start.wire)
        if chance.random() < 0.2:
            body = mutate_bytes(chance, body)
        pieces, options = pieces_of(chance, body), options_of(chance)
        count += 1
        try:
            endings[check(start.dialect, body, pieces, options, deep=count % 8 == 0)] += 1
        except Exception:  # noqa: BLE001 - whatever is raised is a finding
            trace = traceback.format_exc()
            cause = "".join(trace.splitlines()[-4:])
            findings.setdefault(cause, Finding(start.dialect, body, repr(options), trace))
    return count, endings, [*findings.values()]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="fuzz the decoding path differentially")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long (default: 60)")
    parser.add_argument("--seed", type=int, default=0, help="of the random numbers (default: 0)")
    parser.add_argument("--processes", type=int, default=2, help="at once (default: 2)")
    parser.add_argument("--artifacts", type=Path, default=Path("fuzz-artifacts"))
    return parser.parse_args()


def _results(given: argparse.Namespace) -> Iterator[tuple[int, Counter[str], list[Finding]]]:
    with multiprocessing.get_context("spawn").Pool(given.processes) as pool:
        calls = [
            pool.apply_async(run, (number, given.seconds, given.seed))
            for number in range(given.processes)
        ]
        for call in calls:
            yield call.get()


def main() -> int:
    """Run and report; returns 1 when a law was broken."""
    given = _arguments()
    executions, endings, broken = 0, Counter[str](), 0
    for count, ended, findings in _results(given):
        executions += count
        endings += ended
        for finding in findings:
            given.artifacts.mkdir(parents=True, exist_ok=True)
            name = f"{finding.dialect}-{zlib.crc32(finding.body):08x}"
            (given.artifacts / name).write_bytes(finding.body)
            print(f"{given.artifacts / name}: {finding.dialect}, options {finding.options}")
            print(finding.trace)
            broken += 1
    print(f"{executions} executions in {given.seconds:g} s, {broken} findings")
    print(f"endings: {dict(endings)}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
