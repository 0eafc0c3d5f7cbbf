"""A gateway whose upstreams answer with the recordings and the fixtures.

In: the sources of `judging`, and other recordings by a name.  Out: the application; a request names
its recording in the header `HEADER`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final, Unpack

from starlette.applications import Starlette
from starlette.requests import Request

import judging
from any_name import AnyName
from deltafold import Encoder, Message, message_deltas, target_names
from deltafold.dialects import DIALECTS
from deltafold.gateway import ClientRequest, create_app, replay_table
from deltafold.models.adapters import adapter_of
from deltafold.streams.encoded import EncoderOptions
from deltafold.testing import Recording
from deltafold.transports.timeouts import Timeouts

PROTOCOLS: Final = ("openai-chat", "openai-responses", "anthropic-messages", "gemini")
"""Protocols of the gateway's clients."""
UPSTREAMS: Final = tuple(name for name in DIALECTS if adapter_of(name) is not None)
"""Dialects that a Model calls."""
ENCODED: Final = tuple(name for name in UPSTREAMS if name in target_names())
"""Those of them that an encoder writes."""
HEADER: Final = "x-recording"
PATIENCE: Final = 1.0
"""Seconds that the gateway waits for the next bytes."""
_TYPES: Final = {
    "bedrock-converse": "application/vnd.amazon.eventstream",
    "ollama": "application/x-ndjson",
}


def sources() -> Iterator[tuple[str, judging.Source]]:
    """Yield the sources of dialects that a Model calls, with their names in the gateway."""
    for number, one in enumerate(judging.everything()):
        if adapter_of(one.dialect) is not None:
            yield f"{one.dialect}.{number}", one


def recording_of(dialect: str, body: bytes) -> Recording:
    """Return a body as the answer of a provider."""
    kind = _TYPES.get(dialect, "text/event-stream")
    if dialect not in _TYPES and body.lstrip().startswith((b"[", b"{")):
        kind = "application/json"
    return Recording.of(body, content_type=kind)


def written(message: Message, dialect: AnyName, **options: Unpack[EncoderOptions]) -> bytes:
    """Return a message as the stream of a provider."""
    encoder = Encoder(dialect, **options)
    return b"".join(map(encoder.feed, message_deltas(message))) + encoder.close()


def application(folder: Path, others: Mapping[str, Recording] | None = None) -> Starlette:
    """Return a gateway in front of all sources and of other recordings, which a folder keeps."""
    for name, one in sources():
        recording_of(one.dialect, one.body).save(folder / f"{name}.jsonl")
    for name, recording in (others or {}).items():
        recording.save(folder / f"{name}.jsonl")
    table = replay_table(folder, timeouts=Timeouts(idle=PATIENCE, first_byte=PATIENCE))
    return create_app(table, on_request=_by_header)


async def _by_header(request: Request, asked: ClientRequest) -> ClientRequest:
    return replace(asked, model_id=request.headers[HEADER])


def same_answer(source: judging.Source, one: judging.Answer, other: judging.Answer) -> bool:
    """Return whether two answers are equal, except for ids that the recording lacks.

    Those are made from the id of the run.
    """
    return _without_made_ids(source, one) == _without_made_ids(source, other)


def _without_made_ids(source: judging.Source, answer: judging.Answer) -> judging.Answer:
    calls = [
        (call[0] if call[0] and str(call[0]).encode() in source.body else None, *call[1:])
        for call in answer.calls
    ]
    return replace(answer, calls=calls)
