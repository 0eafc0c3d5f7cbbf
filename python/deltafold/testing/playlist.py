"""Selection of the recording that answers a request.

In: recordings, by path or in an order.  Out: the recording that answers a request.

Laws: a queued recording answers the next request of any path. After that, recordings are selected
by path, any number of times, an exact path before a pattern. Other requests get a 404 that states
this.
"""

import json
import re
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, cast

from deltafold.testing.recording import Recording

Recordings: TypeAlias = Mapping[str, Recording] | Iterable[Recording]


@dataclass(frozen=True, slots=True)
class Request:
    """One request that was sent to a replay.

    >>> text = model.send_message_sync("When is high tide?").text
    >>> server.requests[-1].json()["input"][-1]["content"]
    'When is high tide?'
    """

    method: str
    path: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)

    def json(self) -> object:
        """Return the body as parsed JSON."""
        return json.loads(self.body)


class Playlist:
    """Recordings of a replay, and the received requests.

    Args:
        recordings: answers by request path without the query, where `*` matches any characters; or
            answers to the requests in their order.
    """

    def __init__(self, recordings: Recordings | None = None) -> None:
        self.recordings: dict[str, Recording] = {}
        self.requests: list[Request] = []
        self._queue: deque[Recording] = deque()
        if isinstance(recordings, Mapping):
            self.recordings |= cast("Mapping[str, Recording]", recordings)
        elif recordings is not None:
            self._queue.extend(recordings)

    def queue(self, *recordings: Recording) -> None:
        """Answer the next requests with these, in this order."""
        self._queue.extend(recordings)

    def answer_to(self, request: Request) -> Recording:
        """Choose the recording that answers a request, and note the request."""
        self.requests.append(request)
        if self._queue:
            return self._queue.popleft()
        path = request.path.partition("?")[0]
        if path in self.recordings:
            return self.recordings[path]
        for pattern, recording in self.recordings.items():
            literals = map(re.escape, pattern.split("*"))
            if "*" in pattern and re.fullmatch(".*".join(literals), path):
                return recording
        return Recording.error(404, {"error": {"message": f"no recording for {path}"}})
