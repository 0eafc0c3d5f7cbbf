"""A model in this process: tiny, randomly initialised, made here, and streamed like any other.

`make check NAME=local` runs this in an environment that has transformers and torch.
"""

import asyncio
import threading
from typing import Any

import pytest

from deltafold import ErrorCode, FinishReason, Message, MisuseError, ModelError, ToolSpec
from deltafold.models import LocalModel, load_model

transformers: Any = pytest.importorskip(
    "transformers", reason="transformers is not installed; `make check NAME=local` installs it"
)
torch: Any = pytest.importorskip(
    "torch", reason="torch is not installed; see `make check NAME=local`"
)

TEMPLATE = (
    "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}{% endfor %}"
    "{% if tools %}<|tools|>{{ tools | tojson }}{% endif %}<|assistant|>"
)


@pytest.fixture(scope="module")
def pipeline() -> Any:  # noqa: ANN401 - of an untyped module
    """Make a model of bytes: 256 of them, a beginning and an end."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers  # noqa: PLC0415

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: place for place, letter in enumerate(alphabet)}
    inner: Any = Tokenizer(models.BPE(vocabulary, []))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, eos_token="<|end|>", pad_token="<|pad|>"
    )
    tokenizer.chat_template = TEMPLATE
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=4096,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
    )
    model = transformers.LlamaForCausalLM(config).eval()
    return transformers.pipeline("text-generation", model=model, tokenizer=tokenizer)


class Scripted:
    """Makes the model say one text, token by token, whatever its weights say."""

    def __init__(self, tokens: list[int]) -> None:
        self.tokens = tokens
        self.at = 0

    def __call__(self, _input: Any, scores: Any) -> Any:  # noqa: ANN401 - tensors
        forced = torch.full_like(scores, -1e9)
        forced[:, self.tokens[min(self.at, len(self.tokens) - 1)]] = 0
        self.at += 1
        return forced


@pytest.fixture
def saying(pipeline: Any, monkeypatch: pytest.MonkeyPatch) -> Any:  # noqa: ANN401
    """Return a function that makes the pipeline say a text and end its turn."""
    kind: Any = pipeline.model.__class__
    generate: Any = kind.generate

    def say(text: str) -> Any:  # noqa: ANN401
        tokens = [*pipeline.tokenizer.encode(text), pipeline.tokenizer.eos_token_id]

        def scripted(**given: Any) -> Any:  # noqa: ANN401
            return generate(pipeline.model, logits_processor=[Scripted(tokens)], **given)

        monkeypatch.setattr(pipeline.model, "generate", scripted)
        return pipeline

    return say


def ask(pipeline: object, way: str = "synchronous", **settings: Any) -> Message:  # noqa: ANN401
    model = LocalModel({"model_id": "tiny"}, client=pipeline)
    if way == "synchronous":
        return model.send_message_sync("Hello", output=None, **settings)
    return asyncio.run(model.send_message("Hello", output=None, **settings))


@pytest.mark.parametrize("way", ["synchronous", "asynchronous"])
def test_a_random_model_streams_what_it_generates(pipeline: Any, way: str) -> None:  # noqa: ANN401
    message = ask(pipeline, way, max_tokens=12)
    prompt = pipeline.tokenizer.apply_chat_template(
        [{"role": "user", "content": "Hello"}],
        add_generation_prompt=True,
        return_tensors="pt",
        return_dict=True,
    )
    tokens = pipeline.model.generate(**prompt, max_new_tokens=12, do_sample=False)[0]
    generated = tokens[prompt["input_ids"].shape[-1] :]
    said = pipeline.tokenizer.decode(generated).replace("<|end|>", "").replace("<|pad|>", "")
    assert message.text == said
    usage = message.meta.usage
    assert usage is not None
    assert usage.output_tokens == len(generated)
    assert usage.input_tokens == prompt["input_ids"].shape[-1]


def test_text_comes_as_it_is_generated(saying: Any) -> None:  # noqa: ANN401
    model = LocalModel({"model_id": "tiny"}, client=saying("one two three four"))
    with model.stream_sync("Hello") as stream:
        pieces = list(stream.text())
    assert "".join(pieces) == "one two three four"
    assert len(pieces) > 2


def test_the_end_of_a_turn_is_no_text_and_the_limit_is_a_reason(saying: Any) -> None:  # noqa: ANN401
    whole = ask(saying("done"))
    assert (whole.text, whole.meta.finish_reason) == ("done", FinishReason.STOP)
    cut = ask(saying("a long answer"), max_tokens=6)
    assert (cut.text, cut.meta.finish_reason) == ("a long", FinishReason.LENGTH)


def test_markup_becomes_thinking_and_calls(saying: Any) -> None:  # noqa: ANN401
    text = (
        "<think>hm</think>Looking.<tool_call>\n"
        '{"name": "look_up", "arguments": {"place": "Brest"}}\n</tool_call>'
    )
    model = LocalModel({"model_id": "tiny"}, client=saying(text), markup="hermes")
    with model.stream_sync("Hello", [ToolSpec(name="look_up")]) as stream:
        message = stream.final_message()
    assert (message.thinking, message.text.strip()) == ("hm", "Looking.")
    assert [(call.tool_name, call.arguments) for call in message.tool_calls] == [
        ("look_up", {"place": "Brest"})
    ]


@pytest.mark.parametrize("way", ["synchronous", "asynchronous"])
def test_leaving_early_stops_generating(saying: Any, way: str) -> None:  # noqa: ANN401
    model = LocalModel({"model_id": "tiny"}, client=saying("word " * 500))
    before = threading.active_count()
    if way == "synchronous":
        with model.stream_sync("Hello", max_tokens=3000) as stream:
            next(stream.text())
    else:

        async def main() -> Any:  # noqa: ANN401
            async with model.stream("Hello", max_tokens=3000) as opened:
                await anext(opened.text())
                return opened

        stream = asyncio.run(main())
    assert stream.error is not None
    assert stream.error.code is ErrorCode.CANCELLED
    assert stream.snapshot().text.startswith("word")
    assert threading.active_count() <= before


def test_what_a_model_raises_ends_its_stream(
    pipeline: Any,  # noqa: ANN401
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(**_: object) -> None:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(pipeline.model, "generate", fail)
    with pytest.raises(ModelError, match="out of memory") as raised:
        ask(pipeline)
    assert raised.value.code is ErrorCode.SERVER_ERROR


def test_a_name_loads_a_local_model_and_checks_what_it_is_given() -> None:
    model = load_model("local/tiny", specification="openai-chat+hermes", client=None, top_k=5)
    assert isinstance(model, LocalModel)
    assert model.model_info().specification == "openai-chat+hermes"
    with pytest.raises(MisuseError, match="pipeline"):
        LocalModel({"model_id": "tiny"}, client=object())
    with pytest.raises(MisuseError, match="markup"):
        load_model("local/tiny", specification="gemini")
