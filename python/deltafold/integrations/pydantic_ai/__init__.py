"""pydantic-ai: models of deltafold as models of the framework.

>>> model = DeltafoldModel(deltafold.AnthropicModel({"model_id": "claude-opus-4-8"}))
>>> agent = pydantic_ai.Agent(model)

In: any `deltafold.Model`.  Out: a `pydantic_ai.models.Model`.

Laws: exceptions, usage, native tools, output modes and events are those of the framework. A history
of the framework goes back to the provider as it was received: signatures, provider state,
citations and the blocks of native tools. A stream that was cut raises `ModelConnectionError`.
"""

from deltafold.integrations.pydantic_ai.model import DeltafoldModel
from deltafold.integrations.pydantic_ai.settings import DeltafoldModelSettings
from deltafold.integrations.pydantic_ai.streamed_response import DeltafoldStreamedResponse

__all__ = ["DeltafoldModel", "DeltafoldModelSettings", "DeltafoldStreamedResponse"]
