"""The adapter of gemini: Google's Gemini API."""

from collections.abc import Mapping
from typing import ClassVar

from deltafold.dialects import gemini
from deltafold.dialects.rendered import DialectModule
from deltafold.models.base import Model
from deltafold.models.config import GeminiConfig, ModelConfig


class GeminiModel(Model[GeminiConfig]):
    """A model behind the Gemini API, of AI Studio or of Vertex."""

    protocol: ClassVar[DialectModule] = gemini
    config_class: ClassVar[type[ModelConfig]] = GeminiConfig
    author: ClassVar[str] = "google"

    def _key_headers(self, key: str) -> Mapping[str, str]:
        return {"x-goog-api-key": key}
