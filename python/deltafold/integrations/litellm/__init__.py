"""litellm: models of deltafold as a provider of litellm.

>>> litellm.custom_provider_map = [
...     {"provider": "deltafold", "custom_handler": DeltafoldLLM()}
... ]
>>> litellm.completion("deltafold/anthropic/claude-opus-4-8", messages, stream=True)

In: any deltafold model, by the name of its vendor.  Out: a `CustomLLM`.

Laws: chunks, responses, usage and exceptions are those of litellm. An answer that goes back in the
messages of a request is rendered as it was received. A stream that was cut raises the exception of
litellm for a lost connection.
"""

from deltafold.integrations.litellm.provider import DeltafoldLLM

__all__ = ["DeltafoldLLM"]
