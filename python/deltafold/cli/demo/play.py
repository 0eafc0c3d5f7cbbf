"""Plays a recording from a loopback server and streams it through the adapter of its dialect.

In: a body.  Out: the final message, or the error that ended it; on a terminal the answer grows
meanwhile, and is erased when it has ended.
"""

import sys
from types import TracebackType
from typing import Self

import anthropic
import openai

from deltafold import AnthropicModel, DeltaStream, Message, ModelError, OpenAIChatModel
from deltafold.cli.screen import open_screen
from deltafold.testing import Recording, ReplayServer


class Player:
    """A server and one client of each SDK, for any number of recordings."""

    def __init__(self, pace_seconds: float) -> None:
        self._pace_seconds = pace_seconds
        self._server = ReplayServer()
        url = self._server.url
        self._anthropic = anthropic.Anthropic(base_url=url, api_key="unused", max_retries=0)
        self._openai = openai.OpenAI(base_url=f"{url}/v1", api_key="unused", max_retries=0)

    def __enter__(self) -> Self:
        self._server.__enter__()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._anthropic.close()
        self._openai.close()
        self._server.close()

    def play(self, dialect: str, body: bytes) -> Message | ModelError:
        """Stream the recording at its original pace and return the outcome."""
        self._server.queue(Recording.of_events(body, delay=self._pace_seconds))
        with self._stream(dialect) as stream:
            if sys.stdout.isatty():
                with open_screen(keeps=False) as screen:
                    for delta in stream:
                        screen.show(delta)
            try:
                return stream.final_message()
            except ModelError as error:
                return error

    def _stream(self, dialect: str) -> DeltaStream:
        prompt = "Play me the recording."
        if dialect == "openai-chat":
            model = OpenAIChatModel({"model_id": "gpt-oss-120b"}, client=self._openai)
            return model.stream_sync(prompt)
        return AnthropicModel({"model_id": "claude-demo"}, client=self._anthropic).stream_sync(
            prompt
        )
