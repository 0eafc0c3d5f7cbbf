"""The adapter of openai-chat: OpenAI's Chat Completions API."""

from typing import ClassVar

from deltafold.dialects import openai_chat
from deltafold.dialects.rendered import DialectModule
from deltafold.models.base import Model
from deltafold.models.config import ModelConfig, OpenAIChatConfig
from deltafold.transports import sdks
from deltafold.transports.sdks import Sdk


class OpenAIChatModel(Model[OpenAIChatConfig]):
    """A model behind OpenAI's Chat Completions API, or a vendor's copy of it."""

    protocol: ClassVar[DialectModule] = openai_chat
    config_class: ClassVar[type[ModelConfig]] = OpenAIChatConfig
    author: ClassVar[str] = "openai"
    sdk: ClassVar[Sdk | None] = sdks.OPENAI_CHAT
