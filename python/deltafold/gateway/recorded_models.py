"""Recordings as the upstreams of a gateway, for work and tests without a provider.

In: a folder of recorded responses.  Out: a table of models that answer with them.

Laws: nothing is called. A recording answers under the name of its file any number of times; every
other name is answered by all recordings in their order, again from the first after the last one.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from deltafold.contract.exceptions import MisuseError
from deltafold.contract.names import ProtocolName
from deltafold.gateway.table import ModelTable, Upstream
from deltafold.models.adapters import adapter_of
from deltafold.testing.playlist import Request
from deltafold.testing.recording import Recording
from deltafold.testing.recording_files import open_recording
from deltafold.testing.transport import ReplayTransport

_SUFFIXES: Final = frozenset({".bin", ".eventstream", ".json", ".jsonl", ".ndjson", ".sse", ".txt"})
_NO_ADDRESS: Final = "http://replay.invalid"
"""Address that no name server knows, by RFC 2606; the transport opens no connection."""


def replay_table(folder: str | Path, *, flat_out: bool = False, **settings: object) -> ModelTable:
    r"""Return a table that answers with the recordings of a folder.

    A file is what a `Recorder` or `Recording.save` wrote, or a response body. Its name without the
    suffix is the name of its model. A file that begins with the name of a dialect and a full stop
    (`gemini.weather.sse`) has that dialect; of others it is detected.

    >>> from pathlib import Path
    >>> from deltafold.gateway import replay_table
    >>> Path("days").mkdir()
    >>> _ = Path("days/gemini.rain.sse").write_text('data: {"candidates": []}\n\n')
    >>> replay_table("days").names
    ['gemini.rain']

    Args:
        folder: the folder; folders in it are not read.
        flat_out: leaves the recorded pauses out.
        settings: settings of every model, such as `timeouts`.

    Raises:
        MisuseError: there is no recording, two have the same name, or the dialect of one is not
            known; the error names it.
        OSError: a file cannot be read.
    """
    files = sorted(path for path in Path(folder).iterdir() if path.suffix in _SUFFIXES)
    if not files:
        raise MisuseError(f"{folder}: no file ends with {', '.join(sorted(_SUFFIXES))}")
    recordings: dict[str, tuple[ProtocolName, Recording]] = {}
    for path in files:
        if path.stem in recordings:
            raise MisuseError(f"{folder}: two files have the name {path.stem!r}")
        recordings[path.stem] = _read(path)
    return ReplayTable(recordings, settings, flat_out=flat_out)


class ReplayTable(ModelTable):
    """A table whose models answer with recordings.

    Args:
        recordings: recordings and their dialects, by the names of the models.
        settings: settings of every model, None for none.
        flat_out: leaves the recorded pauses out.

    Attributes:
        recordings: the same.

    Raises:
        MisuseError: no Model reads a dialect.
    """

    def __init__(
        self,
        recordings: dict[str, tuple[ProtocolName, Recording]],
        settings: dict[str, Any] | None = None,
        *,
        flat_out: bool = False,
    ) -> None:
        def upstream(name: str, answered: Callable[[], None] | None) -> Upstream:
            dialect, recording = recordings[name]
            adapter = adapter_of(dialect)
            if adapter is None:
                raise MisuseError(f"{name}: no Model calls an API of the dialect {dialect}")
            played = _Played(recording, answered, flat_out=flat_out)
            config = {"model_id": name}
            client: dict[str, Any] = {
                "base_url": _NO_ADDRESS,
                "api_key": "unused",
                **(settings or {}),
            }
            model = adapter(config, client=played, **client)
            return Upstream(model, name)

        super().__init__({name: upstream(name, None).model for name in recordings})
        self.recordings = recordings
        self._in_order = [upstream(name, self._open_next) for name in recordings]
        self._next = 0

    def find(self, name: str) -> Upstream:
        """Return the recording of a name, or the next one in the order of all recordings."""
        return super().find(name) if name in self.names else self._in_order[self._next]

    def _open_next(self) -> None:
        self._next = (self._next + 1) % len(self._in_order)


class _Played(ReplayTransport):
    """Answers every request with one recording, and keeps no request: a server gets any number."""

    def __init__(
        self, recording: Recording, answered: Callable[[], None] | None, *, flat_out: bool
    ) -> None:
        super().__init__(flat_out=flat_out)
        self._recording = recording
        self._answered = answered

    def answer_to(self, request: Request) -> Recording:  # noqa: ARG002 - every request
        if self._answered is not None:
            self._answered()
        return self._recording


def _read(path: Path) -> tuple[ProtocolName, Recording]:
    """Return the dialect and the recording of a file."""
    advice = f"name the file DIALECT.{path.name}"
    return open_recording(path.read_bytes(), str(path), advice=advice)
