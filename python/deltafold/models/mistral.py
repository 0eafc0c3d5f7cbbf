"""The adapter of mistral: Mistral's chat API."""

from typing import ClassVar

from deltafold.dialects import mistral
from deltafold.dialects.rendered import DialectModule
from deltafold.models.base import Model
from deltafold.models.config import Capability, MistralConfig, ModelConfig
from deltafold.transports import sdks
from deltafold.transports.sdks import Sdk


class MistralModel(Model[MistralConfig]):
    """A model behind Mistral's chat API."""

    protocol: ClassVar[DialectModule] = mistral
    config_class: ClassVar[type[ModelConfig]] = MistralConfig
    author: ClassVar[str] = "mistral"
    sdk: ClassVar[Sdk | None] = sdks.MISTRAL
    capabilities: ClassVar[frozenset[Capability]] = frozenset(Capability) - {Capability.CACHING}
