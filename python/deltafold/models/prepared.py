"""Prepared call: the request, its client, and the facts for telemetry.

In: the normalised arguments of a call.  Out: `Prepared`, from which a stream is begun.

Laws: nothing changes a prepared call, so that a stream keeps the values that it began with; hooks
change a copy. The classes are not frozen, because making a frozen object takes five times as long.
"""

import contextlib
from collections.abc import Awaitable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

from deltafold.messages import Message
from deltafold.models import resuming
from deltafold.models.calls import CallFacts
from deltafold.models.clients import Caller
from deltafold.models.hooks import RequestContext
from deltafold.models.json_body import encoded
from deltafold.output_streams import Expected
from deltafold.stream_core import CallerError, DecoderOptions
from deltafold.tool_specs import ToolSpec
from deltafold.transports.requests import PreparedRequest
from deltafold.transports.sources import AsyncSource, Source

INCLUDED_LOGPROBS: Final = "message.output_text.logprobs"
"""Word of a Responses request that asks for log probabilities."""


_RESUMABLE: Final = "openai-responses"
"""Dialect whose responses can be read again after a loss of the connection."""


def asks_for_logprobs(body: Mapping[str, Any]) -> bool:
    """Return whether a request of any dialect asks for log probabilities."""
    if body.get("logprobs") or body.get("top_logprobs") or body.get("return_token_ids"):
        return True
    included = body.get("include")
    if isinstance(included, list | tuple) and INCLUDED_LOGPROBS in included:
        return True
    generation = body.get("generationConfig")
    if generation is None or not isinstance(generation, Mapping):
        return False
    return bool(cast("Mapping[str, object]", generation).get("responseLogprobs"))


@dataclass(slots=True)
class Prepared:
    """One call.

    Attributes:
        caller: sends the request.
        request: the request.
        facts: the facts for telemetry.
        options: the options of the decoder.
        notes: losses of rendering, as warnings; a stream that is resumed adds one.
        invocation_state: the caller's own objects.
        continued: the answer that the call continues.
        expected: the output that the answer is expected to hold, None without one.
    """

    caller: Caller
    request: PreparedRequest
    facts: CallFacts
    options: DecoderOptions
    notes: list[Mapping[str, object]]
    invocation_state: Mapping[str, object] = field(repr=False)
    continued: Message | None = None
    expected: Expected[Any, Any] | None = None

    def open(self, request: PreparedRequest) -> Source:
        """Send the request, which a hook may have changed, and return the unread response."""
        source = self.caller.open(request)
        if not self._is_resumable(request):
            return source
        return resuming.resuming(
            source, lambda rest: self.caller.open(_of(request, rest)), self._note
        )

    def open_async(self, request: PreparedRequest) -> Awaitable[AsyncSource]:
        """Send the request, which a hook may have changed, and return the unread response."""
        opening = self.caller.open_async(request)
        if self.facts.row.name != _RESUMABLE or not self._is_resumable(request):
            return opening
        return self._resuming(opening, request)

    async def _resuming(
        self, opening: Awaitable[AsyncSource], request: PreparedRequest
    ) -> AsyncSource:
        return resuming.resuming_async(
            await opening, lambda rest: self.caller.open_async(_of(request, rest)), self._note
        )

    def _is_resumable(self, request: PreparedRequest) -> bool:
        # The client of an SDK opens its own kinds of requests alone.
        return (
            self.facts.row.name == _RESUMABLE
            and self.caller.sdk is None
            and resuming.is_resumable(request)
        )

    def _note(self, code: str, message: str) -> None:
        self.notes.append({"code": code, "message": message})

    def context(self) -> RequestContext:
        """Return the part of the request that a hook may change."""
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


def _of(request: PreparedRequest, rest: PreparedRequest) -> PreparedRequest:
    """Return the request for the rest with the headers and the query of the first request."""
    return replace(rest, headers=request.headers, query=request.query)


@dataclass(slots=True)
class Said:
    """Input of a call in its normal form."""

    messages: Sequence[Message]
    tools: Sequence[ToolSpec]
    notes: tuple[Mapping[str, object], ...]
    invocation_state: Mapping[str, object]
    tool_names: Mapping[str, str]
    sources: Mapping[str, object]
    continued: Message | None = None

    def named_tools(self) -> list[ToolSpec]:
        """Return the tools under the names by which the model knows them."""
        others = {own: other for other, own in self.tool_names.items()}
        return [
            tool.model_copy(update={"name": others.get(tool.name, tool.name)})
            for tool in self.tools
        ]


@contextlib.contextmanager
def as_caller_errors() -> Generator[None]:
    """Mark exceptions of the caller's code, to distinguish them from failures of the transport."""
    try:
        yield
    except Exception as exception:
        raise CallerError from exception
