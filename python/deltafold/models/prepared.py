"""A call that is ready to go: what goes out, through what, and what is known of it.

In: what a Model made of its caller's words.  Out: `Prepared`, from which a stream is begun.

Laws: immutable, so that a stream keeps what it began with; hooks change a copy.
"""

import contextlib
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field, replace

from deltafold.models.calls import CallFacts
from deltafold.models.clients import Caller
from deltafold.models.hooks import RequestContext
from deltafold.models.json_body import encoded
from deltafold.stream_core import CallerError, DecoderOptions
from deltafold.transports.requests import PreparedRequest


@dataclass(frozen=True, slots=True)
class Prepared:
    """One call.

    Attributes:
        caller: what sends it.
        request: what goes out.
        facts: what telemetry is told.
        options: those of the decoder.
        notes: what the request could not say, as warnings.
        invocation_state: the caller's own objects.
    """

    caller: Caller
    request: PreparedRequest
    facts: CallFacts
    options: DecoderOptions
    notes: tuple[Mapping[str, object], ...]
    invocation_state: Mapping[str, object] = field(repr=False)

    def context(self) -> RequestContext:
        """Return what a hook may change."""
        return RequestContext(
            self.facts.model_id,
            dict(self.request.body),
            dict(self.request.headers),
            dict(self.request.query),
            self.facts.metadata,
            self.invocation_state,
        )

    def changed(self, context: RequestContext) -> PreparedRequest:
        """Return the request as a hook left it.

        Raises:
            ValueError: JSON cannot hold a member that the hook set.
        """
        return replace(
            self.request,
            body=context.body,
            headers=context.headers,
            query=context.query,
            content=encoded(context.body, opaque=self.caller.sdk is not None),
        )


@contextlib.contextmanager
def as_caller_errors() -> Generator[None]:
    """Mark what the caller's own code raises, so that it is not taken for a transport's failure."""
    try:
        yield
    except Exception as exception:
        raise CallerError from exception
