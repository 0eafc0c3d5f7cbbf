"""Messages to request bodies: one pure module per wire protocol, the mirror of the Rust dialects.

Each offers `render(messages, tools, config, *, stream=True)`, which does no I/O and keeps no state,
so that every rule of a protocol is a table test; and `request_path(config, *, stream)`, the path
below a vendor's address. `parse_request` goes the other way.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Final, Protocol, cast

from deltafold.dialects.parsing.reader import ParsedRequest
from deltafold.dialects.rendered import DialectModule, NoteCode, Object, Rendered
from deltafold.errors import MisuseError
from deltafold.models.config import ModelConfig

__all__ = [
    "CONFIGS",
    "DialectModule",
    "NoteCode",
    "ParsedRequest",
    "Rendered",
    "config_class",
    "dialect_of",
    "parse_request",
]

CONFIGS: Final = {
    "anthropic-messages": "AnthropicConfig",
    "openai-chat": "OpenAIChatConfig",
    "openai-responses": "OpenAIResponsesConfig",
    "gemini": "GeminiConfig",
    "bedrock-converse": "BedrockConverseConfig",
    "ollama": "OllamaConfig",
    "cohere-chat": "CohereChatConfig",
    "mistral": "MistralConfig",
}
"""The dialects that requests can be rendered in, with the class of their settings."""


def dialect_of(name: str) -> DialectModule:
    """Return the module of a dialect.

    Raises:
        MisuseError: no request can be rendered in it.
    """
    config_class(name)
    module = import_module(f"{__name__}.{name.replace('-', '_')}")
    return cast("DialectModule", module)


class _Parser(Protocol):
    def parse(self, body: Object, model_id: str | None = None) -> ParsedRequest: ...


def parse_request(
    body: Mapping[str, object], dialect: str, *, model_id: str | None = None
) -> ParsedRequest:
    """Read a request that somebody else wrote.

    >>> body = {"model": "m", "messages": [{"role": "user", "content": "Hello"}], "top_k": 3}
    >>> parsed = parse_request(body, "openai-chat")
    >>> parsed.messages[0].text, parsed.config["extra_body"]
    ('Hello', {'top_k': 3})

    Args:
        body: the JSON of the request.
        dialect: what it is written in.
        model_id: the model, where the path names it rather than the body (gemini,
            bedrock-converse): what is a model's own goes back to no other one.

    Raises:
        MisuseError: no request is read in this dialect.
        ValueError: a member has the wrong type or a value outside of its range; the error names it.
    """
    settings = config_class(dialect)
    module = import_module(f"{__name__}.parsing.{dialect.replace('-', '_')}")
    parsed = cast("_Parser", module).parse(dict(body), model_id)
    settings.model_validate({"model_id": "unknown", **parsed.config})
    return parsed


def config_class(name: str) -> type[ModelConfig]:
    """Return the class of a dialect's settings.

    Raises:
        MisuseError: no request can be rendered in it.
    """
    if name not in CONFIGS:
        raise MisuseError(f"no request is rendered in {name!r}; there are {', '.join(CONFIGS)}")
    module = import_module("deltafold.models.config")
    return cast("type[ModelConfig]", getattr(module, CONFIGS[name]))
