"""The adapter of openai-responses: OpenAI's Responses API."""

from typing import ClassVar

from deltafold.dialects import openai_responses
from deltafold.dialects.rendered import DialectModule
from deltafold.models.base import Model
from deltafold.models.config import ModelConfig, OpenAIResponsesConfig
from deltafold.transports import sdks
from deltafold.transports.sdks import Sdk


class OpenAIResponsesModel(Model[OpenAIResponsesConfig]):
    """A model behind OpenAI's Responses API, or a vendor's copy of it."""

    protocol: ClassVar[DialectModule] = openai_responses
    config_class: ClassVar[type[ModelConfig]] = OpenAIResponsesConfig
    author: ClassVar[str] = "openai"
    sdk: ClassVar[Sdk | None] = sdks.OPENAI_RESPONSES
