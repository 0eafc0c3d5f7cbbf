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

    def _path(self, config: GeminiConfig, *, stream: bool) -> str:
        # Vertex has the version, the project and the publisher in its address.
        path = super()._path(config, stream=stream)
        return path.removeprefix("/v1beta") if self._on_vertex else path

    def _key_headers(self, key: str) -> Mapping[str, str]:
        return {"authorization": f"Bearer {key}"} if self._on_vertex else {"x-goog-api-key": key}

    @property
    def _on_vertex(self) -> bool:
        return self._vendor.name == "google-vertex"
