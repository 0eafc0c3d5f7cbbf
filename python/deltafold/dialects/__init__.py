"""Messages to request bodies: one pure module per wire protocol, the mirror of the Rust dialects.

Each offers `render(messages, tools, config, *, stream=True)`, which does no I/O and keeps no state,
so that every rule of a protocol is a table test; `request_body`, the body alone of it; and
`request_path(config, *, stream)`, the path below a vendor's address.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final, Protocol, cast

from deltafold.dialects.rendered import NoteCode, Object, Rendered
from deltafold.errors import MisuseError
from deltafold.messages import Message
from deltafold.models.config import ModelConfig, ToolSpec

__all__ = ["CONFIGS", "Dialect", "NoteCode", "Rendered", "config_class", "dialect_of"]

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


class Dialect(Protocol):
    """What each module offers; `config` is of the dialect's own class."""

    DIALECT: str

    def render(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        config: Any,  # noqa: ANN401 - each dialect takes its own class
        *,
        stream: bool = True,
    ) -> Rendered:
        """Render a request."""
        ...

    def request_body(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        config: Any,  # noqa: ANN401 - each dialect takes its own class
        *,
        stream: bool = True,
    ) -> Object:
        """Return the body of `render`."""
        ...

    def request_path(self, config: Any, *, stream: bool) -> str:  # noqa: ANN401 - as above
        """Return the path below the vendor's address."""
        ...


def dialect_of(name: str) -> Dialect:
    """Return the module of a dialect.

    Raises:
        MisuseError: no request can be rendered in it.
    """
    config_class(name)
    module = import_module(f"{__name__}.{name.replace('-', '_')}")
    return cast("Dialect", module)


def config_class(name: str) -> type[ModelConfig]:
    """Return the class of a dialect's settings.

    Raises:
        MisuseError: no request can be rendered in it.
    """
    if name not in CONFIGS:
        raise MisuseError(f"no request is rendered in {name!r}; there are {', '.join(CONFIGS)}")
    module = import_module("deltafold.models.config")
    return cast("type[ModelConfig]", getattr(module, CONFIGS[name]))
