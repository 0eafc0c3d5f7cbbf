"""Requests of one protocol as requests of another, from bytes to bytes.

In: the body of a request, its protocol, and the protocol and the model of another one.  Out: the
body of the other one.

Laws: the parser of one dialect and the renderer of the other decide, as `parse_request`,
`migrate_config` and a Model do. What differs from the request is in the notes.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, cast

from deltafold.contract.exceptions import MisuseError
from deltafold.contract.kinds import EncoderTool
from deltafold.contract.names import RequestProtocol
from deltafold.dialects import Dialect, dialect_of, migrate_config, parse_request
from deltafold.dialects.stencils import Ruled, Stencils, Translated
from deltafold.models.defaults import fields_for, vendor_speaking
from deltafold.models.json_body import encoded
from deltafold.models.vendors import Vendor


class TranslatedRequest(bytes):
    """The body of a translated request, with what belongs to its answer.

    >>> body = '{"model": "gpt-5.2", "messages": [{"role": "user", "content": "Hello"}]}'
    >>> gemini = {"model_id": "gemini-3.8-flash"}
    >>> deltafold.translate_request(body, "openai-chat", "gemini", **gemini).path
    '/v1beta/models/gemini-3.8-flash:generateContent'

    Attributes:
        notes: differences between the bodies, as `{code, message, messageIndex?, partIndex?}`; the
            codes are those of `NoteCode`.
        path: path and query of the request below the vendor's address.
        is_streamed: whether the answer is streamed.
        client_tools: the tools that the client declared in a form of its own, as
            `Encoder(tools=...)` takes them.
        tool_names: the original name of each renamed tool, by its alias.
        call_ids: the original id of each renamed tool call, by its alias.
    """

    notes: Sequence[Mapping[str, object]]
    path: str
    is_streamed: bool
    client_tools: Mapping[str, EncoderTool]
    tool_names: Mapping[str, str]
    call_ids: Mapping[str, str]


class _Facts(NamedTuple):
    """What follows from the settings and the tools of a request."""

    path: str
    is_streamed: bool
    client_tools: Mapping[str, EncoderTool]
    tool_names: Mapping[str, str]
    call_ids: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Rules:
    """The rules of two dialects, for one model."""

    source: Dialect
    target: Dialect
    model_id: str
    asked_for: str | None
    stream: bool | None
    vendor: Vendor | None

    @property
    def key(self) -> tuple[object, ...]:
        """What the rules depend on beside a request."""
        vendor = None if self.vendor is None else self.vendor.name
        return (
            self.source.name,
            self.target.name,
            self.model_id,
            self.asked_for,
            self.stream,
            vendor,
        )

    def __call__(self, body: bytes) -> Ruled[_Facts]:
        try:
            given: object = json.loads(body)
        except RecursionError:
            raise ValueError("the body is nested too deeply to be read") from None
        if not isinstance(given, dict):
            raise MisuseError(f"the body must be an object, not {type(given).__name__}")
        members = cast("dict[str, object]", given)
        parsed = parse_request(members, self.source.name, model_id=self.asked_for)
        vendors = () if self.vendor is None else self.vendor.names
        migrated = migrate_config(parsed, self.target.name, model_id=self.model_id, vendors=vendors)
        config = migrated.config
        if self.vendor is not None:
            wanted = fields_for(self.vendor, type(config)).items()
            own = {name: value for name, value in wanted if name not in config.model_fields_set}
            config = config.model_copy(update=own)
        stream = bool(parsed.stream) if self.stream is None else self.stream
        rendered = self.target.render(
            parsed.messages, parsed.tools, config, stream=stream, vendors=vendors
        )
        facts = _Facts(
            self.target.request_path(config, stream=stream),
            stream,
            parsed.client_tools,
            rendered.tool_names,
            rendered.call_ids,
        )
        notes = (*parsed.notes, *migrated.notes, *rendered.notes)
        renamed = (*rendered.tool_names.values(), *rendered.call_ids.values())
        translated = Translated(encoded(rendered.body), notes, facts)
        return Ruled(
            translated,
            parsed.messages,
            renamed,
            self.source.history[0],
            depends_on_turns=rendered.depends_on_turns,
            own_names=self.target.named_as_own(parsed.tools),
        )


_STENCILS: Final = Stencils[_Facts]()


def translate_request(
    body: bytes | bytearray | memoryview | str,
    source: RequestProtocol,
    target: RequestProtocol,
    *,
    model_id: str,
    asked_for: str | None = None,
    vendor: str | None = None,
    stream: bool | None = None,
) -> TranslatedRequest:
    """Translate the body of a request to another protocol.

    >>> body = b'{"model": "gpt-5.2", "messages": [{"role": "user", "content": "Hello"}]}'
    >>> claude = {"model_id": "claude-opus-4-8"}
    >>> sent = deltafold.translate_request(
    ...     body, "openai-chat", "anthropic-messages", **claude
    ... )
    >>> sent.path, sent.is_streamed, b'[{"type":"text","text":"Hello"}]' in sent
    ('/v1/messages', False, True)

    `parse_request` and a Model translate in the same way, and show what is between. Here the
    messages that have nothing but texts, calls and results are copied, which takes a tenth of the
    time; their texts may have the escapes that the client wrote.

    Args:
        body: the JSON of the request.
        source: the protocol of the body.
        target: the protocol to write.
        model_id: the model that gets the request.
        asked_for: the model that the client asked for, if the path of its request names it (gemini,
            bedrock-converse).
        vendor: who has the model, a name of `deltafold.VENDORS`; some refuse settings of an open
            model. None is the author of the protocol.
        stream: whether the answer is streamed; None is what the body asks for.

    Raises:
        MisuseError: no request is read in `source`, or rendered in `target`; `model_id` is empty;
            the vendor does not speak the protocol; or the body is no object.
        ValueError: the body is no JSON, or a member has a type or a value that its protocol does
            not have; the error names it.
    """
    from_row, to_row = dialect_of(source), dialect_of(target)
    if not model_id:
        raise MisuseError("translate_request() needs model_id=, a model of the target")
    known = None if vendor is None else vendor_speaking(vendor, target)
    raw = body.encode() if isinstance(body, str) else bytes(body)
    rules = _Rules(from_row, to_row, model_id, asked_for, stream, known)
    rows = from_row.plain_rows
    if rows is None:
        translated = rules(raw).translated
    else:
        translated = _STENCILS.translated(raw, rows, rules.key, rules, to_row.keeps)
    content, notes, facts = translated
    made = TranslatedRequest(content)
    made.notes = notes
    made.path, made.is_streamed, made.client_tools, made.tool_names, made.call_ids = facts
    return made
