"""Names that examples in docstrings use without making them: the paragraph before introduces them.

In: the surroundings of `documentation.surround`.  Out: the same names and these.
"""

import gzip
from pathlib import Path
from shutil import copy
from typing import Any

import httpx
import httpx2
import openai
from pydantic import BaseModel

import deltafold
from deltafold.conversation import AgentState, LevelOfDetailSections
from deltafold.testing import answer, fake_openai_stream
from given_to_documents import send


class Recipe(BaseModel):
    """Recipe of one dish."""

    title: str
    steps: list[str] = []


def weather(city: str) -> str:
    """Look up the weather of a city."""
    return f"sun in {city}"


def introduce(names: dict[str, Any], public: dict[str, object]) -> None:
    """Add the names: public ones, and those that stand for a caller's own objects."""
    body: bytes = names["body"]
    decoder = deltafold.Decoder("openai-chat")
    Path("answer.sse").write_bytes(body)
    Path("recording.sse.gz").write_bytes(gzip.compress(body))
    copy("cassettes/vcrpy.yaml", "cassettes/test_weather.yaml")
    names |= {name.rsplit(".", 1)[1]: value for name, value in public.items()}
    names |= {
        "httpx": httpx,
        "httpx2": httpx2,
        "Recipe": Recipe,
        "weather": weather,
        "chunks": [body],
        "bodies": [body, body],
        "deltas": [*decoder.feed(body), *decoder.close()],
        "message": deltafold.fold(body, "openai-chat"),
        "model": deltafold.load_model("openai/gpt-5-mini"),
        "config": {"model_id": "gpt-5-mini"},
        "state": AgentState.create_default("Be brief."),
        "answer": answer,
        "response": fake_openai_stream(body),
        "captured": deltafold.read_capture("recording.sse")[0],
        "error": deltafold.ModelError(
            code=deltafold.ErrorCode.RATE_LIMITED, message="Too many.", retryable=True
        ),
        "client": openai.OpenAI(),
        "request": {"model": "m", "messages": names["messages"], "stream": True},
        "stream": deltafold.stream([body], "openai-chat"),
        "respond": send,
        "send": send,
        "show": send,
        "sections": LevelOfDetailSections.of_text("Hello"),
    }
