"""Recording and replay of streams, for tests of code that uses deltafold.

`Recorder` wraps a client and writes the responses: exact bytes, split points, pauses.
`ReplayServer` plays recordings over real HTTP, `ReplayTransport` inside this process. Both play at
the original pace, without delay, or with faults.  `answer` writes the stream of an answer that a
test makes up.  `check_store` checks a store of conversations.  `load_cassette` reads cassettes of
VCR.  `fake_openai_stream` and its kin are the streams of an SDK over recorded bytes.
`deltafold.testing.captures` reads what other programs recorded.  Only the standard library is
needed, except for cassettes in YAML and for the streams of an SDK.
"""

from deltafold.testing.answers import answer
from deltafold.testing.cassette import load_cassette
from deltafold.testing.fakes import (
    fake_anthropic_stream,
    fake_async_anthropic_stream,
    fake_async_openai_stream,
    fake_openai_stream,
)
from deltafold.testing.playlist import Request
from deltafold.testing.recorder import Recorder, RecordingWarning
from deltafold.testing.recording import Ending, RecordedRequest, Recording
from deltafold.testing.server import ReplayServer
from deltafold.testing.stores import check_store
from deltafold.testing.transport import ReplayTransport

__all__ = [
    "Ending",
    "RecordedRequest",
    "Recorder",
    "Recording",
    "RecordingWarning",
    "ReplayServer",
    "ReplayTransport",
    "Request",
    "answer",
    "check_store",
    "fake_anthropic_stream",
    "fake_async_anthropic_stream",
    "fake_async_openai_stream",
    "fake_openai_stream",
    "load_cassette",
]
