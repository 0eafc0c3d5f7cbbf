"""Adapter of models in this process: a `transformers` pipeline (extra `local`).

In: a conversation.  Out: the generated text, piece by piece, decoded like any other stream. The
`markup` of the Model decodes reasoning and tool calls in the text.

Laws: the pipeline is made on first use. Generation runs in a separate thread, and stops at the next
token when its stream is closed. Tokens that end a turn are not text.
"""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from queue import SimpleQueue
from typing import Any, ClassVar, Final, TypeAlias
from uuid import uuid4

from deltafold._core import Encoder, MessageDelta
from deltafold.contract.exceptions import MisuseError
from deltafold.dialects import LOCAL, Dialect
from deltafold.dialects.local.settings import LocalConfig
from deltafold.dialects.settings import ModelConfig
from deltafold.models.base import Model
from deltafold.transports.requests import HttpRequest
from deltafold.transports.sdks import import_sdk
from deltafold.transports.sources import AsyncSource, Source

_HEADERS: Final = {"content-type": "text/event-stream"}

# Item of a generating thread's queue: a chunk, its failure, or the end.
_Piece: TypeAlias = bytes | Exception | None


class LocalModel(Model[LocalConfig]):
    """A model that `transformers` runs in this process.

    >>> model = load_model("local/Qwen/Qwen3-0.6B", specification="openai-chat+hermes")

    Args:
        config: the model id, by which `transformers` finds the model, and settings.
        client: a text generation pipeline; None makes one of the model id.
        settings: the other arguments of `Model`.
    """

    row: ClassVar[Dialect] = LOCAL

    def __init__(
        self,
        config: ModelConfig | Mapping[str, object],
        *,
        client: object | None = None,
        **settings: Any,  # noqa: ANN401 - those of Model
    ) -> None:
        self._transport = PipelineTransport(client)
        super().__init__(config, client=self._transport, base_url="local:", **settings)
        self._transport.model_id = self.get_config().model_id


class PipelineTransport:
    """A pipeline as a transport: a rendered conversation in, chunks of openai-chat out.

    Args:
        pipeline: of `transformers`, for text generation; None makes one of `model_id`.
        model_id: which model to load.
    """

    def __init__(self, pipeline: object | None = None, model_id: str = "") -> None:
        if pipeline is not None and not hasattr(pipeline, "tokenizer"):
            raise MisuseError(
                f"client must be a text generation pipeline of transformers, not a "
                f"{type(pipeline).__module__}.{type(pipeline).__qualname__}"
            )
        self.model_id = model_id
        self._pipeline: Any = pipeline
        self._loading = threading.Lock()

    def open(self, request: HttpRequest) -> Source:
        """Begin to generate."""
        generation = _Generation(self._loaded(), json.loads(request.content))
        return Source(generation.chunks(), generation.close, 200, _HEADERS)

    async def open_async(self, request: HttpRequest) -> AsyncSource:
        """Begin to generate; loading the model does not block the event loop."""
        pipeline = await _in_thread(self._loaded)
        generation = _Generation(pipeline, json.loads(request.content))

        async def close() -> None:
            await _in_thread(generation.close)

        return AsyncSource(generation.async_chunks(), close, 200, _HEADERS)

    def _loaded(self) -> Any:  # noqa: ANN401 - transformers is not imported here
        with self._loading:
            if self._pipeline is None:
                transformers = import_sdk("transformers", "local")
                self._pipeline = transformers.pipeline("text-generation", model=self.model_id)
            return self._pipeline


class _Generation:
    """One answer while it is generated."""

    def __init__(self, pipeline: Any, body: Mapping[str, Any]) -> None:  # noqa: ANN401 - as above
        self._pipeline = pipeline
        self._body = body
        self._pieces: SimpleQueue[_Piece] = SimpleQueue()
        self._stopped = threading.Event()
        self._id = f"local-{uuid4().hex}"
        self._encoder = Encoder("openai-chat")
        self._seq = 0
        self._generated = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def chunks(self) -> Iterator[bytes]:
        """Yield the answer while it is generated."""
        while (piece := self._pieces.get()) is not None:
            if isinstance(piece, Exception):
                raise piece
            yield piece

    async def async_chunks(self) -> AsyncIterator[bytes]:
        """Yield the answer while it is generated, without blocking the event loop."""
        while (piece := await _in_thread(self._pieces.get)) is not None:
            if isinstance(piece, Exception):
                raise piece
            yield piece

    def close(self) -> None:
        """Stop at the next token."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            self._generate()
        except Exception as exception:  # noqa: BLE001 - whatever a model raises ends its stream
            self._pieces.put(exception)
        finally:
            self._pieces.put(None)

    def _generate(self) -> None:
        torch = import_sdk("torch", "local")
        transformers = import_sdk("transformers", "local")
        model, tokenizer = self._pipeline.model, self._pipeline.tokenizer
        if not tokenizer.chat_template:
            raise MisuseError("the model's tokenizer has no chat template: set its chat_template")
        if self._body.get("seed") is not None:
            torch.manual_seed(self._body["seed"])
        name = model.config.name_or_path or "local"
        self._tell("start", {"modelId": name, "requestId": self._id})
        prompt: Any = tokenizer.apply_chat_template(
            self._body["messages"],
            tools=self._body["tools"],
            add_generation_prompt=True,
            return_dict=True,
            return_tensors="pt",
        ).to(model.device)
        settings = dict(self._body["generation"])
        if "stop_strings" in settings:
            settings["tokenizer"] = tokenizer
        streamer = self._streamer(transformers, tokenizer)

        def stop(tokens: Any, _scores: object, **_: object) -> Any:  # noqa: ANN401 - tensors
            return torch.full((tokens.shape[0],), self._stopped.is_set(), device=tokens.device)

        model.generate(**prompt, **settings, streamer=streamer, stopping_criteria=[stop])
        length = self._generated >= settings["max_new_tokens"]
        prompt_tokens = int(prompt["input_ids"].shape[-1])
        usage = {
            "inputTokens": prompt_tokens,
            "outputTokens": self._generated,
            "totalTokens": prompt_tokens + self._generated,
        }
        self._tell("usage", usage)
        self._tell("done", {"finishReason": "length" if length else "stop"})

    def _streamer(self, transformers: Any, tokenizer: Any) -> object:  # noqa: ANN401 - as above
        generation = self
        ends = _end_texts(self._pipeline)

        class Streamer(transformers.TextStreamer):  # type: ignore[misc]  # a class of an untyped module
            """Streamer of text that is final, with special tokens, which may be markup."""

            def put(self, value: Any) -> None:  # noqa: ANN401 - a tensor
                if not self.next_tokens_are_prompt:
                    generation.count(int(value.numel()))
                super().put(value)  # pyright: ignore[reportUnknownMemberType]

            def on_finalized_text(self, text: str, stream_end: bool = False) -> None:  # noqa: ARG002, FBT002 - the base class's
                generation.say(text, ends)

        return Streamer(tokenizer, skip_prompt=True, clean_up_tokenization_spaces=False)

    def count(self, tokens: int) -> None:
        """Count generated tokens."""
        self._generated += tokens

    def say(self, text: str, ends: Sequence[str]) -> None:
        """Hand out text without the tokens that end a turn."""
        for end in ends:
            text = text.replace(end, "")
        if text:
            self._tell("text", {"textDelta": text, "partIndex": 0})

    def _tell(self, kind: str, payload: Mapping[str, object]) -> None:
        self._seq += 1
        self._pieces.put(self._encoder.feed(MessageDelta(self._id, self._seq, kind, payload)))


def _end_texts(pipeline: Any) -> list[str]:  # noqa: ANN401 - as above
    """Return the texts of the tokens that end a turn or fill a batch."""
    tokenizer = pipeline.tokenizer
    ends: Any = pipeline.model.generation_config.eos_token_id
    tokens: list[Any] = [*(ends if isinstance(ends, list) else [ends]), tokenizer.pad_token_id]
    texts = (tokenizer.convert_ids_to_tokens(token) for token in tokens if token is not None)
    return [text for text in texts if text]


async def _in_thread(function: Any) -> Any:  # noqa: ANN401 - passes anything through
    """Call a function that blocks, under asyncio or another event loop that anyio knows."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        anyio = import_sdk("anyio", "local")
        return await anyio.to_thread.run_sync(function, abandon_on_cancel=True)
    return await asyncio.to_thread(function)
