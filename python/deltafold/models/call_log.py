"""Log of calls: records of the logger `deltafold`.

In: calls as they begin and end.  Out: records of `logging`.

    INFO     a call begins: model, address, numbers of messages and tools; and its end: status,
             finish reason, tokens, seconds, request id
    WARNING  a call fails: code, status, the provider's code; and the codes of decoder warnings
    DEBUG    the texts of failures and warnings, which may quote the conversation

Laws: no key is logged, and no content above DEBUG. A record is one line, whatever the texts of a
provider or a client hold. A call of which nothing is logged costs the questions whether the levels
are enabled.
"""

import logging

from deltafold.contract.log import LOGGER
from deltafold.errors.model_error import ModelError
from deltafold.message.messages import Meta
from deltafold.models.call_inputs import CallFacts, Telemetry
from deltafold.streams.core import Observer, StreamCore
from deltafold.streams.foreign_calls import Several
from deltafold.transports.secrets import shown_url


def is_enabled() -> bool:
    """Return whether anything of a call may be logged."""
    return LOGGER.isEnabledFor(logging.WARNING)


def begun(facts: CallFacts, telemetry: Telemetry | None) -> Observer | None:
    """Return the observer of a call for the log and for telemetry, None if there is neither."""
    if telemetry is None:
        return _LoggedCall(facts) if is_enabled() else None
    observers: list[Observer] = []
    if is_enabled():
        observers.append(_LoggedCall(facts))
    observer = telemetry(facts)
    if observer is not None:
        observers.append(observer)
    return observers[0] if len(observers) == 1 else Several(observers) if observers else None


class _LoggedCall:
    """One call in the log."""

    def __init__(self, facts: CallFacts) -> None:
        self._name = f"{facts.vendor}/{facts.model_id}"
        if LOGGER.isEnabledFor(logging.INFO):
            request = facts.request
            LOGGER.info(
                "%s: %s %s with %d messages and %d tools",
                self._name,
                request.method,
                shown_url(facts.server + request.path) if facts.server else "through the SDK",
                len(facts.messages),
                len(facts.tools),
            )

    def ended(self, core: StreamCore) -> None:
        try:
            is_silent = core.went_well and not core.call.notes
            if is_silent and not LOGGER.isEnabledFor(logging.INFO):
                return
            error = core.error()
            if error is None:
                self._log_end(core)
            else:
                self._log_failure(error, _seconds(core))
                LOGGER.debug("%s: %s", self._name, error)
            self._log_warnings(core.snapshot().meta)
        except Exception:  # noqa: BLE001 - a log never makes a call fail
            LOGGER.debug("%s: the end of the call cannot be logged", self._name, exc_info=True)

    def _log_end(self, core: StreamCore) -> None:
        if not LOGGER.isEnabledFor(logging.INFO):
            return
        meta, response = core.snapshot().meta, core.response
        usage = meta.usage
        LOGGER.info(
            "%s: status %s, finish reason %s, %s input and %s output tokens, %.3f s, request id %s",
            self._name,
            "-" if response is None else response.status,
            meta.finish_reason or "-",
            "-" if usage is None else usage.input_tokens,
            "-" if usage is None else usage.output_tokens,
            _seconds(core),
            (response and response.request_id) or "-",
        )

    def _log_failure(self, error: ModelError, seconds: float) -> None:
        LOGGER.warning(
            "%s: failed with %s, status %s, provider's code %s, %.3f s, request id %s",
            self._name,
            error.code,
            error.status or "-",
            error.provider_code or "-",
            seconds,
            error.http_request_id or "-",
        )

    def _log_warnings(self, meta: Meta) -> None:
        for warning in meta.warnings:
            LOGGER.warning("%s: warning %s", self._name, warning.get("code"))
            LOGGER.debug("%s: %s", self._name, warning.get("message"))


def _seconds(core: StreamCore) -> float:
    """Return the seconds from the request to the end."""
    times = core.times()
    return 0.0 if times.started is None else (times.until - times.started) / 1e9
