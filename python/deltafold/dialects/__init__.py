"""The registry of dialects: one row a protocol that requests are written in, and read from.

In: the name of a dialect.  Out: its row, which loads the modules of the dialect's folder:
`settings.py` (the class of its settings), `render.py` (messages to a request body) and `parse.py`
(a request body to messages).

Laws: rendering and parsing do no I/O and keep no state, so that every rule of a protocol is a table
test.  The rows alone import no model of pydantic; a folder is imported when its row is used first.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from deltafold._core import RequestRows
from deltafold.contract.exceptions import MisuseError
from deltafold.dialects.capability import Capability
from deltafold.dialects.mechanism import Mechanism

if TYPE_CHECKING:
    from deltafold.contract.names import RequestProtocol
    from deltafold.dialects.migration import Migrated, Side
    from deltafold.dialects.model_table import KnownModel
    from deltafold.dialects.reader import ParsedRequest, Reader
    from deltafold.dialects.rendered import Identifiers, Rendered, Rendering
    from deltafold.dialects.settings import ModelConfig
    from deltafold.dialects.settings_table import SettingTable
    from deltafold.message.messages import Message
    from deltafold.specs.tool_specs import ToolSpec

_ALL: Final = frozenset(Capability)
_NO_CACHING: Final = _ALL - {Capability.CACHING}

_OF_OPENAI: Final = Mechanism(has_name=True, has_strict=True, keeps_limits=True)
_OF_CLAUDE: Final = Mechanism(is_closed=True, is_recursive=False)


class Rule(StrEnum):
    """Rule about histories that only some protocols have.

    Attributes:
        NO_EMPTY_TEXT: a text part is not blank.
        PAIRED_SERVER_TOOLS: a tool that the provider runs has its result, or has ended.
        REASONING_WITH_ITEMS: reasoning goes back together with the item that follows.
        SIGNED_THINKING: reasoning goes back with the state that its provider sent, or not at all.
        USER_FIRST: the user speaks first.
    """

    NO_EMPTY_TEXT = "no_empty_text"
    PAIRED_SERVER_TOOLS = "paired_server_tools"
    REASONING_WITH_ITEMS = "reasoning_with_items"
    SIGNED_THINKING = "signed_thinking"
    USER_FIRST = "user_first"


class Continuing(StrEnum):
    """Rule about requests that end with the beginning of an answer, which the model continues.

    Attributes:
        ALWAYS: every model of the protocol continues it.
        BY_MODEL: the model decides.
        BY_VENDOR: the vendor decides (`Vendor.continuing_segment`).
    """

    ALWAYS = "always"
    BY_MODEL = "by_model"
    BY_VENDOR = "by_vendor"


@dataclass(frozen=True, slots=True)
class Dialect:
    """One row of the registry.

    Attributes:
        name: the dialect's name, as `deltafold.dialect_names()` has it.
        config: the name of the class in `settings.py`.
        author: the vendor whose protocol this is.
        key_header: the header that carries an API key; "authorization" carries a bearer token.
        headers: further headers of each request that has a key or a token.
        path: path of a request below the vendor's address; "" if the path depends on the model.
        history: the members of a request that hold the conversation, that of its messages first.
        has_bytes: whether the SDK takes bytes where the JSON of a request has base64.
        capabilities: the capabilities that requests of this dialect can ask for.
        rules: the rules about histories that not all protocols have.
        mechanism: the mechanism that holds an answer to a schema, None without one.
        continuing: who decides whether a model continues an answer that broke off.
        repeats: whether answers may begin with the text that they continue.
        folder: the folder below `dialects/`; "" derives it from the name.
    """

    name: "RequestProtocol"
    config: str
    author: str
    key_header: str = "authorization"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    path: str = ""
    history: tuple[str, ...] = ("messages",)
    has_bytes: bool = False
    capabilities: frozenset[Capability] = _ALL
    rules: frozenset[Rule] = frozenset()
    mechanism: Mechanism | None = None
    continuing: Continuing = Continuing.BY_VENDOR
    repeats: bool = False
    folder: str = ""

    def __post_init__(self) -> None:
        """Derive the folder."""
        object.__setattr__(self, "folder", self.folder or self.name.replace("-", "_"))

    @property
    def model(self) -> str:
        """Name of the class in `models/adapters.py`."""
        return f"{self.config.removesuffix('Config')}Model"

    @property
    def config_class(self) -> "type[ModelConfig]":
        """Class of the dialect's settings."""
        return cast("type[ModelConfig]", getattr(self._module("settings"), self.config))

    @property
    def settings(self) -> "SettingTable":
        """Counterpart of each setting in the request body."""
        return cast("SettingTable", self._module("settings").SETTINGS)

    def render(
        self,
        messages: "Sequence[Message]",
        tools: "Sequence[ToolSpec]",
        config: "ModelConfig",
        *,
        stream: bool = True,
        vendors: "Collection[str]" = (),
        is_excerpt: bool = False,
    ) -> "Rendered":
        """Render a request.

        Args:
            messages: the conversation.
            tools: the tools of the caller.
            config: the settings.
            stream: whether the answer is streamed.
            vendors: names of the vendor that is called. The settings of an open model are fitted
                to it at its own vendor alone.
            is_excerpt: whether the messages are a part of a conversation that the caller has.

        Raises:
            MisuseError: a part names a local file, which must be read first.
        """
        renderer = _renderer_of(self.folder)
        from deltafold.dialects.migration import fitted, lowered  # noqa: PLC0415 - see the head

        side = self._side()
        notes: Sequence[dict[str, object]] = ()
        if config.reasoning_effort is not None or config.output_schema is not None:
            config, notes = lowered(config, side, vendors)
        has_tools = bool(tools or config.provider_tools)
        config, of_model = fitted(config, side, vendors, has_tools=has_tools)
        notes = [*notes, *of_model]
        rendering = renderer.rendering(
            self.name,
            messages,
            tools,
            config,
            stream=stream,
            identifiers=renderer.identifiers,
            notes=notes,
            is_excerpt=is_excerpt,
        )
        body = renderer.body_of(rendering, config)
        if renderer.merges_extra_body:
            body |= config.extra_body
        return rendering.done(body)

    def render_history(
        self,
        messages: "Sequence[Message]",
        config: "ModelConfig",
        *,
        vendors: "Collection[str]" = (),
        is_excerpt: bool = False,
    ) -> "Rendered":
        """Render the members of a request that hold a conversation, as the SDK takes them.

        Arguments and errors are those of `render`.
        """
        from deltafold.dialects.rendered import NoteCode  # noqa: PLC0415 - see the head

        rendered = self.render(messages, (), config, vendors=vendors, is_excerpt=is_excerpt)
        body = {name: rendered.body[name] for name in self.history if name in rendered.body}
        # boto3 alone encodes bytes by itself, and encodes the text of others once more.
        if self.has_bytes:
            body = self._module("render").with_bytes(body)
        # A tool that is declared for the calls of the history is in no member of these.
        notes = tuple(note for note in rendered.notes if note["code"] != NoteCode.TOOL_ADDED)
        return rendered._replace(body=body, notes=notes)

    def request_path(self, config: "ModelConfig", *, stream: bool) -> str:
        """Return the path and query of a request below the vendor's address."""
        if self.path:
            return self.path
        path = cast("Callable[..., str]", self._module("render").request_path)
        return path(config, stream=stream)

    def parse(self, body: Mapping[str, object], model_id: str | None = None) -> "ParsedRequest":
        """Read a request body; arguments and errors are those of `parse_request`."""
        from deltafold.dialects.reader import Reader  # noqa: PLC0415 - see the head

        reader = Reader(self.name, body, model_id)
        cast("Callable[[Reader], None]", self._module("parse").read_body)(reader)
        return reader.done(self.settings)

    @property
    def plain_rows(self) -> RequestRows | None:
        """The plain messages of requests of this dialect, None for a dialect without any."""
        return _rows_of(self.folder)

    def keeps(self, call_ids: Collection[str], tool_names: Collection[str]) -> bool:
        """Return whether requests have these ids of calls and names of tools as they are."""
        identifiers = _renderer_of(self.folder).identifiers
        return identifiers.call_ids().keeps(call_ids) and identifiers.tool_names().keeps(tool_names)

    def named_as_own(self, tools: "Iterable[ToolSpec]") -> frozenset[str]:
        """Return the names of tools whose calls have a form of their own in requests."""
        has_own_form = _renderer_of(self.folder).identifiers.has_own_form
        return frozenset(tool.name for tool in tools if has_own_form(tool))

    def _side(self) -> "Side":
        from deltafold.dialects.migration import Side  # noqa: PLC0415 - see the head

        return Side(self.name, self.config_class, self.settings)

    def migrate(
        self, config: "ModelConfig", target: "Dialect", model_id: str, known: "KnownModel | None"
    ) -> "Migrated":
        """Return settings of this dialect as settings of another; see `migrate_config`."""
        from deltafold.dialects.migration import migrate  # noqa: PLC0415 - see the head

        return migrate(config, self._side(), target._side(), model_id, known)  # noqa: SLF001 - same class

    def key_headers(self, key: str) -> dict[str, str]:
        """Return the headers of a request with an API key."""
        if self.key_header == "authorization":
            return self.token_headers(key)
        return {self.key_header: key, **self.headers}

    def token_headers(self, token: str) -> dict[str, str]:
        """Return the headers of a request with a bearer token."""
        return {"authorization": f"Bearer {token}", **self.headers}

    def load(self) -> None:
        """Import what the first request would import: open streams of a server wait meanwhile."""
        _renderer_of(self.folder)
        _rows_of(self.folder)
        self._side().config_class.model_rebuild()

    def _module(self, name: str) -> ModuleType:
        return _module_of(self.folder, name)


class _Renderer(NamedTuple):
    """Members of the modules of a dialect that rendering uses."""

    rendering: "type[Rendering]"
    identifiers: "Identifiers"
    body_of: "Callable[[Rendering, Any], dict[str, object]]"
    merges_extra_body: bool


@cache
def _renderer_of(folder: str) -> _Renderer:
    from deltafold.dialects.rendered import Rendering  # noqa: PLC0415 - see the head
    from deltafold.dialects.settings_table import Form  # noqa: PLC0415 - see the head

    module, settings = _module_of(folder, "render"), _module_of(folder, "settings")
    merges = settings.SETTINGS["extra_body"].form is Form.NONE
    return _Renderer(Rendering, module.IDENTIFIERS, module.body_of, merges)


@cache
def _rows_of(folder: str) -> RequestRows | None:
    rows: object = getattr(_module_of(folder, "parse"), "PLAIN", None)
    return None if rows is None else RequestRows(json.dumps(rows, separators=(",", ":")))


@cache
def _module_of(folder: str, name: str) -> ModuleType:
    # `import_module` takes a microsecond for a module that is loaded.
    return import_module(f"{__name__}.{folder}.{name}")


DIALECTS: Final[Mapping[str, Dialect]] = {
    row.name: row
    for row in (
        Dialect(
            "anthropic-messages",
            "AnthropicConfig",
            "anthropic",
            path="/v1/messages",
            history=("messages", "system"),
            key_header="x-api-key",
            # The API requires a version; docs/protocols/anthropic-messages.md#version has why this.
            headers={"anthropic-version": "2023-06-01"},
            rules=frozenset(
                {
                    Rule.PAIRED_SERVER_TOOLS,
                    Rule.SIGNED_THINKING,
                    Rule.USER_FIRST,
                    Rule.NO_EMPTY_TEXT,
                }
            ),
            mechanism=_OF_CLAUDE,
            continuing=Continuing.BY_MODEL,
        ),
        Dialect(
            "openai-chat",
            "OpenAIChatConfig",
            "openai",
            path="/chat/completions",
            mechanism=_OF_OPENAI,
        ),
        Dialect(
            "openai-responses",
            "OpenAIResponsesConfig",
            "openai",
            path="/responses",
            history=("input", "instructions"),
            rules=frozenset(
                {Rule.PAIRED_SERVER_TOOLS, Rule.SIGNED_THINKING, Rule.REASONING_WITH_ITEMS}
            ),
            mechanism=_OF_OPENAI,
        ),
        Dialect(
            "gemini",
            "GeminiConfig",
            "google",
            key_header="x-goog-api-key",
            history=("contents", "systemInstruction", "continuationToken"),
            rules=frozenset({Rule.PAIRED_SERVER_TOOLS, Rule.SIGNED_THINKING, Rule.USER_FIRST}),
            mechanism=Mechanism(),
        ),
        Dialect(
            "bedrock-converse",
            "BedrockConverseConfig",
            "bedrock",
            history=("messages", "system"),
            has_bytes=True,
            rules=frozenset(
                {
                    Rule.PAIRED_SERVER_TOOLS,
                    Rule.SIGNED_THINKING,
                    Rule.USER_FIRST,
                    Rule.NO_EMPTY_TEXT,
                }
            ),
            mechanism=replace(_OF_CLAUDE, has_name=True),
            continuing=Continuing.BY_MODEL,
        ),
        Dialect(
            "ollama",
            "OllamaConfig",
            "ollama",
            path="/api/chat",
            capabilities=_NO_CACHING,
            mechanism=Mechanism(takes_tools=False),
        ),
        Dialect(
            "cohere-chat",
            "CohereChatConfig",
            "cohere",
            path="/v2/chat",
            capabilities=_NO_CACHING,
            mechanism=Mechanism(is_closed=True, takes_tools=False),
        ),
        Dialect(
            "mistral",
            "MistralConfig",
            "mistral",
            path="/chat/completions",
            capabilities=_NO_CACHING,
            rules=frozenset({Rule.SIGNED_THINKING}),
            mechanism=_OF_OPENAI,
            continuing=Continuing.ALWAYS,
            repeats=True,
        ),
    )
}
"""All dialects that requests are rendered in, by name."""

LOCAL: Final = Dialect(
    "openai-chat",
    "LocalConfig",
    "local",
    path="/generate",
    capabilities=frozenset({Capability.TOOLS, Capability.PARALLEL_TOOL_CALLS, Capability.THINKING}),
    folder="local",
)
"""Row of the models in this process; their text is decoded as openai-chat.

The row is not in `DIALECTS`, because no request body is parsed in this form.
"""


def dialect_of(name: str) -> Dialect:
    """Return the row of a dialect.

    Raises:
        MisuseError: no request can be rendered in it.
    """
    row = DIALECTS.get(name)
    if row is None:
        raise MisuseError(f"no request is rendered in {name!r}; there are {', '.join(DIALECTS)}")
    return row


def parse_request(
    body: Mapping[str, object], dialect: "RequestProtocol", *, model_id: str | None = None
) -> "ParsedRequest":
    """Parse a request body of another program.

    >>> body = {
    ...     "model": "m",
    ...     "messages": [{"role": "user", "content": "Hello"}],
    ...     "top_k": 3,
    ... }
    >>> parsed = parse_request(body, "openai-chat")
    >>> parsed.messages[0].text, parsed.config["extra_body"]
    ('Hello', {'top_k': 3})

    Args:
        body: the JSON of the request.
        dialect: the dialect of the body.
        model_id: the model, if the path names it instead of the body (gemini, bedrock-converse).
            The provider state of the messages belongs to this model; without a model, it goes to
            every model of the dialect.

    Raises:
        MisuseError: requests of this dialect cannot be parsed.
        ValueError: a member has the wrong type or a value outside of its range; the error names it.
            The request is nested too deeply.
    """
    row = dialect_of(dialect)
    try:
        parsed = row.parse(body, model_id)
    except RecursionError:
        raise ValueError("the request is nested too deeply to be read") from None
    row.config_class.model_validate({"model_id": "unknown", **parsed.config})
    return parsed


def migrate_config(
    settings: "ParsedRequest | ModelConfig",
    dialect: "RequestProtocol",
    *,
    model_id: str | None = None,
    known_as: str | None = None,
    strict_settings: bool = False,
    vendors: "Collection[str]" = (),
) -> "Migrated":
    """Return the settings of a request or of a Model as settings of another dialect.

    >>> body = {
    ...     "model": "gpt-5.6-terra",
    ...     "messages": [],
    ...     "seed": 7,
    ...     "max_completion_tokens": 900,
    ... }
    >>> parsed = parse_request(body, "openai-chat")
    >>> migrated = migrate_config(
    ...     parsed, "anthropic-messages", model_id="claude-sonnet-5-5"
    ... )
    >>> migrated.config.model_id, migrated.config.max_tokens
    ('claude-sonnet-5-5', 900)
    >>> migrated.notes[0]["message"]
    'openai-chat to anthropic-messages: seed: anthropic-messages has no seed'

    The same dialect gets the same settings, with `model_id` if it is given.

    Args:
        settings: a parsed request, or the configuration of a dialect.
        dialect: the dialect of the new settings.
        model_id: the model of the new settings; a name of another provider is never taken over.
        known_as: the name by which the table of models knows this model; None is `model_id`.
        strict_settings: whether to keep settings that this model is known to refuse.
        vendors: names of the vendor that has the model, () if it is not known.

    Raises:
        MisuseError: `model_id` is missing, or no request can be rendered in `dialect`.
    """
    from deltafold.dialects.reader import ParsedRequest  # noqa: PLC0415 - see the head

    target = dialect_of(dialect)
    if isinstance(settings, ParsedRequest):
        source = dialect_of(settings.dialect)
        given = {"model_id": "unknown", **settings.config}
        config = source.config_class.model_validate(given)
        known = str(settings.config.get("model_id", ""))
    else:
        found = [row for row in DIALECTS.values() if row.config_class is type(settings)]
        if not found:
            raise MisuseError(f"{type(settings).__name__} is not the configuration of a dialect")
        source, config, known = found[0], settings, settings.model_id
    if not model_id and (source is not target or not known):
        raise MisuseError(f"migrate_config() to {dialect} needs model_id=, a model of the target")
    if source is target:
        from deltafold.dialects.migration import Migrated  # noqa: PLC0415 - see the head

        return Migrated(config.model_copy(update={"model_id": model_id or known}))
    from deltafold.dialects.model_fit import found_to_fit  # noqa: PLC0415 - see the head

    facts = None if strict_settings else found_to_fit(known_as or str(model_id), dialect, vendors)
    return source.migrate(config, target, str(model_id), facts)
