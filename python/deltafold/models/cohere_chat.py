"""The adapter of cohere-chat: Cohere's v2 chat API."""

from typing import ClassVar

from deltafold.dialects import cohere_chat
from deltafold.dialects.rendered import DialectModule
from deltafold.models.base import Model
from deltafold.models.config import Capability, CohereChatConfig, ModelConfig


class CohereChatModel(Model[CohereChatConfig]):
    """A model behind Cohere's v2 chat API."""

    protocol: ClassVar[DialectModule] = cohere_chat
    config_class: ClassVar[type[ModelConfig]] = CohereChatConfig
    author: ClassVar[str] = "cohere"
    capabilities: ClassVar[frozenset[Capability]] = frozenset(Capability) - {Capability.CACHING}
