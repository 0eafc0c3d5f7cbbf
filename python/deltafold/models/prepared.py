"""Prepared call: the request, its client, and the facts for telemetry.

In: `WrittenCall`, the body of a call and its parts.  Out: `Prepared`, which begins a stream.

Laws: nothing changes a prepared call, so that a stream keeps the values that it began with; hooks
change a copy of the request. The class is not frozen, because making a frozen object takes five
times as long. What only telemetry, the log or a failure needs is made for them.
"""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from logging import INFO
from typing import Any, Final, Protocol, cast

from deltafold._core import MAX_REFUSAL_BYTES
from deltafold.contract.kinds import ErrorCode
from deltafold.contract.log import LOGGER
from deltafold.dialects import Dialect
from deltafold.dialects.refused_replay import REPAIRED, without_refused
from deltafold.dialects.settings import ModelConfig
from deltafold.errors.mapper import ErrorFields, ErrorMapper
from deltafold.errors.model_error import ModelError
from deltafold.errors.sdk_exceptions import SdkName, sdk_of
from deltafold.message.messages import Message
from deltafold.models import background, call_log, continuation
from deltafold.models.call_inputs import CallFacts, Telemetry
from deltafold.models.clients import Caller
from deltafold.models.hooks import RequestContext, RequestHook
from deltafold.models.info import RequestMetadata
from deltafold.models.json_body import encoded
from deltafold.specs.tool_specs import ToolSpec
from deltafold.streams.core import CallContext, M, Observer, StreamCore
from deltafold.streams.mistakes import CallerError
from deltafold.streams.options import DecoderOptions
from deltafold.streams.output_streams import Expected
from deltafold.transports.requests import PreparedRequest
from deltafold.transports.secrets import Redactor, shown_url
from deltafold.transports.sources import AsyncSource, Source

INCLUDED_LOGPROBS: Final = "message.output_text.logprobs"
"""Word of a Responses request that asks for log probabilities."""


_BAD_REQUEST: Final = 400

_RESUMABLE: Final = "openai-responses"
"""Dialect whose responses can be read again after a loss of the connection."""


_LOGPROB_MEMBERS: Final = frozenset(
    {"logprobs", "top_logprobs", "return_token_ids", "include", "generationConfig"}
)
"""Members of a body that can ask for log probabilities."""


def asks_for_logprobs(body: Mapping[str, Any]) -> bool:
    """Return whether a request of any dialect asks for log probabilities."""
    if _LOGPROB_MEMBERS.isdisjoint(body):
        return False
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
class WrittenCall:
    """Rendered call: its body, and the parts that the body was rendered from.

    Attributes:
        config: the settings.
        body: the members of the body; nothing changes them.
        sources: the caller's objects in the body by their names, for the error about a value that
            JSON cannot hold.
        streamed: whether the provider streams its answer.
        messages: the conversation.
        tools: the offered tools.
        notes: losses of rendering, and problems of the conversation, as warnings.
        tool_names: the original name of each renamed tool, by its alias.
        continued: the answer that the call continues.
        expected: the output that the answer is expected to hold, None without one.
        repairs: whether a request whose reasoning is refused is sent once more without it.
        content: the body as JSON, None if nothing has encoded it yet.
        is_typical: whether another call that differs in texts, ids, names and arguments alone is
            written in the same way: no id was replaced, nothing was repaired, and no rule asked
            where a message stands.
    """

    config: ModelConfig
    body: Mapping[str, object] = field(repr=False)
    sources: Mapping[str, object] = field(repr=False)
    streamed: bool
    messages: Sequence[Message] = ()
    tools: Sequence[ToolSpec] = ()
    notes: Sequence[Mapping[str, object]] = ()
    tool_names: Mapping[str, str] | None = None
    continued: Message | None = None
    expected: Expected[Any, Any] | None = None
    repairs: bool = False
    content: bytes | None = field(default=None, repr=False)
    is_typical: bool = False


class Following(Protocol):
    """Finds the Model that is called after the failure of another one.

    Attributes:
        continues: whether a further Model may continue an answer that broke off.
    """

    continues: bool

    def after(self, core: StreamCore) -> "Prepared | None":
        """Prepare the call of the next Model after a failure, None if the failure is the end."""
        ...


@dataclass(slots=True)
class Prepared(CallContext):
    """One call.

    Attributes:
        written: the rendered call.
        caller: sends the request.
        request: the request.
        row: the row of the dialect in the registry.
        specification: the dialect, and the markup if there is one.
        metadata: the session, run and trace of the call.
        options: the options of the decoder.
        before_request: the caller's hook that may change the request.
        telemetry: makes the observer of the call.
        error_mapper: names the failures, None for the default table.
        following: finds the Model that is called after a failure, None without a fallback.
        sent: the request as the hook left it, after it was sent.
    """

    written: WrittenCall
    caller: Caller
    request: PreparedRequest
    row: Dialect
    specification: str
    metadata: RequestMetadata
    options: DecoderOptions
    before_request: RequestHook | None
    telemetry: Telemetry | None
    error_mapper: ErrorMapper | None = None
    following: Following | None = None
    sent: PreparedRequest | None = None

    @property
    def facts(self) -> CallFacts:
        """The facts for telemetry and for the log."""
        return CallFacts(
            self.vendor,
            self.row,
            self.specification,
            self.model_id,
            self.request,
            self.caller.base_url,
            self.written.messages,
            self.written.tools,
            self.metadata,
        )

    def called_sdk(self) -> tuple[SdkName, str] | None:
        """Return the SDK whose client sends the call, and the address without secrets."""
        package = None if self.caller.sdk is None else sdk_of(self.caller.client)
        if package is None:
            return None
        base = str(getattr(self.caller.client, "base_url", ""))
        return package, shown_url(f"{base.rstrip('/')}{self.request.path}")

    def advice(self, error: ModelError) -> str | None:
        """Return what to do about the failure of the call."""
        if error.status is None:
            return None
        from deltafold.models.advice import RequestAddress, advice_of  # noqa: PLC0415 - after failures

        base_url = self.caller.base_url or str(getattr(self.caller.client, "base_url", ""))
        address = RequestAddress(base_url, self.request.path)
        return advice_of(error, self.written.config, self.row.name, self.vendor, address)

    def begin(self) -> Observer | None:
        """Return the observer of the call; None if only its failure or its warnings count."""
        # From this level on, the log has the beginnings of calls.
        if self.telemetry is None and not self.notes and not LOGGER.isEnabledFor(INFO):
            return None
        return call_log.begun(self.facts, self.telemetry)

    def observer_of_end(self) -> Observer | None:
        """Return the observer that logs the end; with telemetry, `begin` has returned one."""
        return None if self.telemetry is not None else call_log.begun(self.facts, None)

    def redactor(self) -> Redactor:
        """Return the redactor of the call's secrets."""
        return self.caller.redactor(self.sent or self.request)

    def joined(self, message: M) -> M | Message:
        """Name the trace in the message, and join it to the answer that the call continues."""
        if self.metadata.trace_id is not None and message is not None:
            message.meta.trace = {"traceId": self.metadata.trace_id}
        if self.written.continued is None:
            return message
        return continuation.joined(self.written.continued, self.row.name, message)

    def open(self) -> Source:
        """Send the request and return the unread response."""
        request = self.request
        if self.before_request is not None:
            context = self.context()
            with as_caller_errors():
                self.before_request(context)
                request = self.sent = self.changed(context)
        source = self.caller.open(request) if not self.written.repairs else self._opened(request)
        if not self._is_resumable(request):
            return source
        return background.resuming(
            source, lambda rest: self.caller.open(_of(request, rest)), self._note
        )

    def open_async(self) -> Awaitable[AsyncSource]:
        """Send the request and return the unread response."""
        if self.before_request is not None or self.written.repairs or self.row.name == _RESUMABLE:
            return self._open_in_steps(self.before_request)
        return self.caller.open_async(self.request)

    async def _open_in_steps(self, before_request: RequestHook | None) -> AsyncSource:
        """Call the hook, send the request, and let a lost connection be resumed."""
        request = self.request
        if before_request is not None:
            context = self.context()
            with as_caller_errors():
                waiting = before_request(context)
                if waiting is not None:
                    await waiting
                request = self.sent = self.changed(context)
        opened = self.caller.open_async if not self.written.repairs else self._opened_async
        source = await opened(request)
        if not self._is_resumable(request):
            return source
        return background.resuming_async(
            source, lambda rest: self.caller.open_async(_of(request, rest)), self._note
        )

    def _opened(self, request: PreparedRequest) -> Source:
        """Send a request, and once more if its reasoning is refused."""
        try:
            source = self.caller.open(request)
        except Exception as exception:
            repaired = self._without_refused(request, ErrorMapper().map(exception))
            if repaired is None:
                raise
            return self.caller.open(repaired)
        if source.status != _BAD_REQUEST:
            return source
        body = bytearray()
        # A refusal that breaks off stays a refusal.
        with contextlib.suppress(Exception):
            for chunk in source.chunks:
                body += chunk
                if len(body) >= MAX_REFUSAL_BYTES:
                    break
        repaired = self._without_refused(request, _refusal(source, body))
        if repaired is None:
            return replace(source, chunks=iter((bytes(body),)))
        source.close()
        return self.caller.open(repaired)

    async def _opened_async(self, request: PreparedRequest) -> AsyncSource:
        """Send a request, and once more if its reasoning is refused."""
        try:
            source = await self.caller.open_async(request)
        except Exception as exception:
            repaired = self._without_refused(request, ErrorMapper().map(exception))
            if repaired is None:
                raise
            return await self.caller.open_async(repaired)
        if source.status != _BAD_REQUEST:
            return source
        body = bytearray()
        with contextlib.suppress(Exception):
            async for chunk in source.chunks:
                body += chunk
                if len(body) >= MAX_REFUSAL_BYTES:
                    break
        repaired = self._without_refused(request, _refusal(source, body))
        if repaired is None:
            return replace(source, chunks=_only(bytes(body)))
        await source.close()
        return await self.caller.open_async(repaired)

    def _without_refused(
        self, request: PreparedRequest, error: ErrorFields
    ) -> PreparedRequest | None:
        """Return the request without refused reasoning, None for another refusal."""
        if error.code is not ErrorCode.REPLAY_REFUSED:
            return None
        repaired = without_refused(self.row.name, request.body, error.message, self.model_id)
        if repaired is None:
            return None
        self._note(REPAIRED, f"sent again without the reasoning that was refused: {error.message}")
        headers = dict(request.headers)
        for name, value in repaired.headers.items():
            known = {**self.caller.headers, **headers}
            given = [one for key, one in known.items() if key.lower() == name]
            headers = {key: one for key, one in headers.items() if key.lower() != name}
            headers[name] = ",".join([*given[-1:], value])
        content = encoded(repaired.body, opaque=self.caller.sdk is not None)
        sent = replace(request, body=repaired.body, headers=headers, content=content)
        self.sent = sent
        return sent

    def _is_resumable(self, request: PreparedRequest) -> bool:
        # The client of an SDK opens its own kinds of requests alone.
        return (
            self.row.name == _RESUMABLE
            and self.caller.sdk is None
            and background.is_resumable(request)
        )

    def _note(self, code: str, message: str) -> None:
        self.notes = [*self.notes, {"code": code, "message": message}]

    def context(self) -> RequestContext:
        """Return the part of the request that a hook may change."""
        return RequestContext(
            self.model_id,
            dict(self.request.body),
            dict(self.request.headers),
            dict(self.request.query),
            self.metadata,
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


def _refusal(source: Source | AsyncSource, body: bytearray) -> ErrorFields:
    return ErrorMapper().map_response(source.status, source.headers, bytes(body))


async def _only(body: bytes) -> AsyncIterator[bytes]:
    yield body


def _of(request: PreparedRequest, rest: PreparedRequest) -> PreparedRequest:
    """Return the request for the rest with the headers and the query of the first request."""
    return replace(rest, headers=request.headers, query=request.query)


def renamed(tools: Sequence[ToolSpec], aliases: Mapping[str, str]) -> list[ToolSpec]:
    """Return tools under the names by which the model knows them.

    Args:
        tools: the tools of the caller.
        aliases: the original name of each renamed tool, by its alias.
    """
    others = {own: other for other, own in aliases.items()}
    return [tool.model_copy(update={"name": others.get(tool.name, tool.name)}) for tool in tools]


@contextlib.contextmanager
def as_caller_errors() -> Generator[None]:
    """Mark exceptions of the caller's code, to distinguish them from failures of the transport."""
    try:
        yield
    except Exception as exception:
        raise CallerError from exception
