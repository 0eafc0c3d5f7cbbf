"""Record and replay of streams, for the tests of whoever builds on deltafold.

`Recorder` stands around a client and writes what comes back: exact bytes, split points, pauses.
`ReplayServer` plays recordings over real HTTP, `ReplayTransport` inside of this process; both as
they were, flat out, or with faults.  Nothing but the standard library is needed.
"""

from deltafold.testing.playlist import Request
from deltafold.testing.recorder import Recorder, RecordingWarning
from deltafold.testing.recording import Ending, RecordedRequest, Recording
from deltafold.testing.server import ReplayServer
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
]
