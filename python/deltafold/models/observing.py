"""Global telemetry: the observer of every call of every Model.

In: a `Telemetry`, set by `deltafold.otel`.  Out: the same, for the code that begins a call.
"""

from deltafold.models.calls import Telemetry

_current: list[Telemetry] = []


def telemetry() -> Telemetry | None:
    """Return the telemetry of all calls, None if it is switched off."""
    return _current[-1] if _current else None


def set_telemetry(telemetry: Telemetry | None) -> None:
    """Set the telemetry of all later calls; None switches it off."""
    _current[:] = [] if telemetry is None else [telemetry]
