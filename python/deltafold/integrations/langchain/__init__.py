"""langchain: one chat model for every dialect of deltafold.

>>> model = ChatDeltafold(model="anthropic/claude-opus-4-8", max_tokens=1000)
>>> model.bind_tools([weather]).invoke("How is the weather in Oslo?")

In: any `deltafold.Model`, or the name of a vendor and a model.  Out: a `BaseChatModel`.

Laws: messages, chunks and content-block events are those of langchain-core. A history of the
framework goes back to the provider as it was received. A failure raises a `deltafold.ModelError`
that is also the exception of langchain-core for it; a stream that was cut is one.
"""

from deltafold.integrations.langchain.chat_model import ChatDeltafold

__all__ = ["ChatDeltafold"]
