"""Programs that a new interpreter runs, to measure imports and construction.

In: nothing.  Out: the programs by the name of their row.
"""

from typing import Final

PYDANTIC: Final = "from pydantic import BaseModel"
BUILD_FOLD: Final = "import deltafold; Fold"
READ_TEXT: Final = "import deltafold; stream to text"
READ_MESSAGE: Final = "import deltafold; stream to message"

_BODY: Final = (
    b'data: {"id":"a","model":"m","choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}'
    b"\n\ndata: [DONE]\n\n"
)
_STREAM: Final = f"import deltafold; stream = deltafold.stream([{_BODY!r}], 'openai-chat')"

EMPTY: Final = "pass"
"""The empty interpreter, whose time is subtracted from that of the others."""

OURS: Final = {
    PYDANTIC: PYDANTIC,
    BUILD_FOLD: "import deltafold; deltafold.Fold('openai-chat')",
    READ_TEXT: f"{_STREAM}; ''.join(stream.text())",
    READ_MESSAGE: f"{_STREAM}; stream.final_message().text",
}
"""Programs of deltafold, and the one that they are compared with."""

PEERS: Final = {
    program: program for program in ("import openai", "import anthropic", "import litellm")
}
"""Programs of peers, which take seconds."""
