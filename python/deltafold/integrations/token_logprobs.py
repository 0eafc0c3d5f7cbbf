"""Log probabilities of an answer as the entries of Chat Completions.

In: a message.  Out: a list with `token`, `logprob`, `bytes` and `top_logprobs` for each token.

Law: an answer whose request did not ask for log probabilities has none.
"""

from typing import Any, cast

from deltafold.message.messages import Message
from deltafold.streams.encoded import encode_message


def entries_of(message: Message) -> list[dict[str, Any]]:
    """Return the entries of all tokens of an answer."""
    logprobs = message.meta.logprobs
    if logprobs is None or not len(logprobs):
        return []
    bare = Message.assistant()
    bare.meta.logprobs = logprobs
    body = cast("dict[str, Any]", encode_message(bare, "openai-chat").json)
    entries: list[dict[str, Any]] = body["choices"][0]["logprobs"]["content"]
    return entries
