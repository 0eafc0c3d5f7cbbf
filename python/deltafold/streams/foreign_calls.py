"""Calls of other clients, whose responses `stream()` and `astream()` read.

In: the response.  Out: the context of its stream: the secrets of its request, the SDK that was
called, and who observes the stream.

Laws: nothing of the request is read before the stream fails, or telemetry asks for it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from deltafold.streams.core import CallContext, Observer, StreamCore
from deltafold.transports.responses import http_response
from deltafold.transports.secrets import Redactor, secrets_of_response, shown_url

if TYPE_CHECKING:
    from deltafold.errors.sdk_exceptions import SdkName

StreamTelemetry: TypeAlias = Callable[[object], Observer | None]
"""Makes the observer of a stream whose HTTP response another client has opened."""


@dataclass(slots=True)
class _Current:
    """The telemetry of all streams of other clients, None if it is switched off."""

    telemetry: StreamTelemetry | None = None


STREAMS: Final = _Current()


class Several:
    """Several observers as one."""

    def __init__(self, observers: list[Observer]) -> None:
        self._observers = observers

    def ended(self, core: StreamCore) -> None:
        """Tell each of them."""
        for observer in self._observers:
            observer.ended(core)


class ForeignCall(CallContext):
    """The call of another client.

    Args:
        response: the response, or the object of an SDK that holds it.
        follower: observes the stream for the code that watches the SDK's own; None if there is
            none.
    """

    __slots__ = ("_follower", "_response")

    def __init__(self, response: object, follower: Observer | None = None) -> None:
        super().__init__("", "", None, {}, ())
        self._response = response
        self._follower = follower

    def begin(self) -> Observer | None:
        """Return the observers of the stream."""
        if STREAMS.telemetry is None:
            return self._follower
        observer = STREAMS.telemetry(http_response(self._response))
        if self._follower is None or observer is None:
            return observer or self._follower
        return Several([self._follower, observer])

    def redactor(self) -> Redactor:
        """Return the redactor of the secrets of the response's request."""
        return Redactor(secrets_of_response(http_response(self._response)))

    def called_sdk(self) -> "tuple[SdkName, str] | None":
        """Return the SDK of the response, and the address that was called."""
        from deltafold.errors.sdk_exceptions import sdk_of  # noqa: PLC0415 - after a failure alone

        package = sdk_of(self._response)
        if package is None:
            return None
        request = getattr(http_response(self._response), "request", None)
        return package, shown_url(str(getattr(request, "url", "")))
