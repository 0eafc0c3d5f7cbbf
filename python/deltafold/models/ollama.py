"""The adapter of ollama: Ollama's own chat API."""

from typing import ClassVar

from deltafold.dialects import ollama
from deltafold.dialects.rendered import DialectModule
from deltafold.models.base import Model
from deltafold.models.config import Capability, ModelConfig, OllamaConfig


class OllamaModel(Model[OllamaConfig]):
    """A model that an Ollama server runs, by its own protocol."""

    protocol: ClassVar[DialectModule] = ollama
    config_class: ClassVar[type[ModelConfig]] = OllamaConfig
    author: ClassVar[str] = "ollama"
    capabilities: ClassVar[frozenset[Capability]] = frozenset(Capability) - {Capability.CACHING}
