"""openai-agents: models of deltafold as models of the Agents SDK.

>>> agent = Agent(
...     name="Tides", model=DeltafoldAgentsModel(deltafold.GeminiModel(config))
... )
>>> await Runner.run(
...     agent, "Hello", run_config=RunConfig(model_provider=DeltafoldProvider())
... )

In: any `deltafold.Model`.  Out: a `Model` and a `ModelProvider` of the SDK.

Laws: events and items are those of the Responses API, as the SDK's own classes. A history of items
goes back to the provider as it was received. A failure raises the exception of openai that the
SDK's own models raise, with the `deltafold.ModelError` as its `__cause__`; a stream that was cut is
a `ModelBehaviorError` and a `ModelError`.
"""

from deltafold.integrations.openai_agents.model import DeltafoldAgentsModel, DeltafoldProvider

__all__ = ["DeltafoldAgentsModel", "DeltafoldProvider"]
