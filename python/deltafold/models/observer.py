"""Global telemetry: the observer of every call of every Model.

In: a `Telemetry`, set by `deltafold.otel`.  Out: the same, for the code that begins a call.
"""

from typing import Final

from deltafold.models.call_inputs import Telemetry


class _Current:
    """The telemetry of all calls, None if it is switched off."""

    telemetry: Telemetry | None = None


CURRENT: Final = _Current()


def set_telemetry(telemetry: Telemetry | None) -> None:
    """Set the telemetry of all later calls; None switches it off."""
    CURRENT.telemetry = telemetry
