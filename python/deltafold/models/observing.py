"""The one switch of telemetry: who is told of every call of every Model.

In: a `Telemetry`, set by `deltafold.otel`.  Out: the same, for whoever begins a call.
"""

from deltafold.models.calls import Telemetry

_current: list[Telemetry] = []


def telemetry() -> Telemetry | None:
    """Return who is told of calls, None where nobody asked."""
    return _current[-1] if _current else None


def set_telemetry(telemetry: Telemetry | None) -> None:
    """Say who is told of calls from now on."""
    _current[:] = [] if telemetry is None else [telemetry]
