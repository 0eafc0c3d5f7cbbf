"""Conversations that every dialect must be able to say, one table for all of them.

In: a dialect.  Out: messages, tools and settings; `tests/fixtures/requests/<dialect>/<name>.json`
holds the rendered request.

Law: provider state in a conversation (signatures, encrypted reasoning) has the form that the
decoder of the dialect returns.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from deltafold import (
    CacheConfig,
    FileRefPart,
    ImagePart,
    Message,
    MessagePart,
    ProviderPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolChoice,
    ToolSpec,
)
from deltafold.dialects import (
    DIALECTS as REGISTRY,
)
from deltafold.dialects import dialect_of
from deltafold.dialects.rendered import Rendered
from deltafold.models import ModelConfig

DIALECTS = list(REGISTRY)

MODELS = {
    "anthropic-messages": "claude-opus-4-8",
    "openai-chat": "gpt-5.2",
    "openai-responses": "gpt-5.2",
    "gemini": "gemini-3-pro-preview",
    "bedrock-converse": "anthropic.claude-opus-4-8:0",
    "ollama": "qwen3",
    "cohere-chat": "command-a-03-2026",
    "mistral": "magistral-medium-latest",
}

PNG = "iVBORw0KGgo="
PDF = "data:application/pdf;name=report.pdf;base64,JVBERi0="
WEATHER = ToolSpec(
    name="weather",
    description="The weather in a city",
    parameter_schema={
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    },
)
TIME = ToolSpec(name="time", parameter_schema={"type": "object", "properties": {}})


@dataclass(frozen=True)
class Case:
    """One conversation.

    Attributes:
        messages: the conversation, given the dialect that it is rendered in.
        settings: what all configurations have in common.
        own: further settings of a dialect.
    """

    name: str
    messages: Callable[[str], Sequence[Message]]
    tools: Sequence[ToolSpec] = ()
    settings: Mapping[str, object] = field(default_factory=dict[str, object])
    own: Mapping[str, Mapping[str, object]] = field(default_factory=dict[str, Mapping[str, object]])

    def config(self, dialect: str) -> ModelConfig:
        fields = {"model_id": MODELS[dialect], **self.settings, **self.own.get(dialect, {})}
        return dialect_of(dialect).config_class.model_validate(fields)

    def render(self, dialect: str) -> Rendered:
        module = dialect_of(dialect)
        return module.render(self.messages(dialect), self.tools, self.config(dialect))


def state(dialect: str, data: Mapping[str, object], model_id: str = "") -> dict[str, object]:
    return {"dialect": dialect, "modelId": model_id or MODELS[dialect], "data": dict(data)}


SIGNED: Mapping[str, Mapping[str, object]] = {
    "anthropic-messages": {"signature": "c2ln"},
    "openai-chat": {"reasoning_details": [{"type": "reasoning.encrypted", "data": "c2ln"}]},
    "openai-responses": {
        "id": "rs_1",
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "Both at once."}],
        "encrypted_content": "c2ln",
    },
    "gemini": {"thoughtSignature": "c2ln"},
    "bedrock-converse": {"signature": "c2ln"},
    "cohere-chat": {"type": "tool_plan"},
    "mistral": {"type": "thinking", "signature": "c2ln", "closed": True},
}


def thought(dialect: str, text: str = "Both at once.", model_id: str = "") -> ThinkingPart:
    """Make the reasoning of a model as its decoder leaves it."""
    data = SIGNED.get(dialect)
    signed = None if data is None else state(dialect, data, model_id)
    return ThinkingPart(text=text, provider_state=signed)


def call(call_id: str, name: str = "weather", raw: str = '{"city": "Brest"}') -> ToolCallPart:
    return ToolCallPart(tool_call_id=call_id, tool_name=name, raw_args_text=raw)


def own_call(dialect: str, call_id: str, model_id: str = "") -> ToolCallPart:
    """Make the first call of a turn as the decoder leaves it: Gemini signs it."""
    made = call(call_id)
    if dialect != "gemini":
        return made
    signed = state(dialect, {"thoughtSignature": "c2ln"}, model_id)
    return made.model_copy(update={"provider_state": signed})


def rich(dialect: str) -> list[Message]:
    return [
        Message.system("Be brief."),
        Message.user(
            "What do you see?",
            ImagePart(mime_type="image/png", data=PNG),
            FileRefPart(path=PDF, mime_type="application/pdf"),
        ),
        Message.assistant(
            thought(dialect),
            "Looking.",
            own_call(dialect, "call_1"),
            call("call_2", "time", "{}"),
        ),
        Message.tool_result("call_1", "rain"),
        Message.tool_result("call_2", {"hour": 9}, is_error=True),
    ]


def texts(*said: str) -> list[Message]:
    """Alternate between user and assistant."""
    makers = (Message.user, Message.assistant)
    return [makers[turn % 2](text) for turn, text in enumerate(said)]


def asked(*parts: MessagePart | str) -> list[Message]:
    return [Message.user(*parts)]


def tool_turn(*answer: MessagePart | str, results: Sequence[Message]) -> list[Message]:
    """Ask, answer with calls, give their results."""
    return [Message.user("Weather?"), Message.assistant(*answer), *results]


def image(*, data: str | None = None, url: str | None = None) -> ImagePart:
    return ImagePart(mime_type="image/png", data=data, url=url)


def redacted(dialect: str) -> ThinkingPart:
    data: Mapping[str, Mapping[str, object]] = {
        "anthropic-messages": {"type": "redacted_thinking", "data": "c2Vj"},
        "bedrock-converse": {"redactedContent": "c2Vj"},
    }
    own = state(dialect, data[dialect]) if dialect in data else None
    return ThinkingPart(text="", redacted=True, provider_state=own)


def travelled(_dialect: str) -> list[Message]:
    """Make a conversation that every provider had a turn in."""
    messages = [Message.user("Go round.")]
    for number, dialect in enumerate(DIALECTS):
        call_id = f"call_{number}"
        messages += [
            Message.assistant(thought(dialect, f"I am {dialect}."), own_call(dialect, call_id)),
            Message.tool_result(call_id, "done"),
        ]
    return [*messages, Message.user("And now?")]


def provider_blocks(dialect: str) -> list[ProviderPart]:
    """Make a block of the provider's own, as the decoder leaves it, where there are such."""
    blocks: Mapping[str, dict[str, object]] = {
        "anthropic-messages": {
            "type": "server_tool_use",
            "id": "srvtoolu_1",
            "name": "web_search",
            "input": {"query": "tides"},
        },
        "openai-responses": {
            "type": "web_search_call",
            "id": "ws_1",
            "status": "completed",
            "action": {"type": "search", "query": "tides"},
        },
        "gemini": {"executableCode": {"language": "PYTHON", "code": "print(1)"}},
        "bedrock-converse": {
            "image": {"format": "png", "source": {"s3Location": {"uri": "s3://b/k"}}}
        },
    }
    return [ProviderPart(dialect=dialect, block=blocks[dialect])] if dialect in blocks else []


def own_items(dialect: str) -> list[Message]:
    """Make an answer whose parts all carry what their provider wants back."""
    data: Mapping[str, Mapping[str, object]] = {
        "openai-responses": {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "phase": "commentary",
        },
        "gemini": {"thoughtSignature": "c2ln"},
    }
    said = TextPart(text="One", provider_state=state(dialect, data.get(dialect, {})))
    called = own_call(dialect, "call_1")
    if dialect == "openai-responses":
        item = {"id": "fc_1", "type": "function_call", "call_id": "call_1", "name": "weather"}
        own = state(dialect, {**item, "status": "completed"})
        called = call("call_1").model_copy(update={"provider_state": own})
    answer = Message.assistant(thought(dialect), said, "Two", called)
    return [Message.user("Weather?"), answer, Message.tool_result("call_1", "rain")]


LIFETIMES = ("1h", "5m", "1h", "5m", "5m")


def marked(dialect: str) -> list[Message]:
    """Make a conversation with a cache mark in every turn: one too many, the second too long.

    The last is on an empty text, as all are in Converse, whose marks have blocks of their own.
    """
    marks: Mapping[str, Callable[[str], dict[str, object]]] = {
        "anthropic-messages": lambda ttl: {
            "members": {"cache_control": {"type": "ephemeral", "ttl": ttl}}
        },
        "bedrock-converse": lambda ttl: {"block": {"cachePoint": {"type": "default", "ttl": ttl}}},
    }
    messages: list[Message] = []
    for number, lifetime in enumerate(LIFETIMES):
        parts: list[MessagePart] = [TextPart(text=f"Part {number}.")]
        if dialect in marks:
            own = state(dialect, marks[dialect](lifetime))
            text = (
                "" if dialect == "bedrock-converse" or number == len(LIFETIMES) - 1 else "Marked."
            )
            parts.append(TextPart(text=text, provider_state=own))
        messages += [Message.user(*parts), Message.assistant("Yes.")]
    return [*messages, Message.user("On.")]


CITED = TextPart(
    text="Tides rise.",
    annotations=[
        {
            "type": "char_location",
            "cited_text": "Tides",
            "document_index": 0,
            "document_title": None,
            "start_char_index": 0,
            "end_char_index": 5,
        }
    ],
)
RAIN = Message.tool_result("call_1", "rain")
PATCH = ToolCallPart(
    tool_call_id="call_1", tool_name="patch", raw_args_text="*** Begin", input_format="text"
)
HALF = ToolCallPart(
    tool_call_id="call_1", tool_name="weather", raw_args_text='{"ci', incomplete=True
)


def same(messages: Sequence[Message]) -> Callable[[str], Sequence[Message]]:
    return lambda _dialect: messages


def turns(*said: str) -> Callable[[str], Sequence[Message]]:
    return same(texts(*said))


CASES = [
    Case(
        "rich",
        rich,
        (WEATHER, TIME),
        {
            "temperature": 0.5,
            "max_tokens": 2048,
            "top_p": 0.9,
            "stop_sequences": ("END",),
            "tool_choice": ToolChoice.tool("weather"),
            "cache_config": CacheConfig(lifetime="1h"),
        },
        {
            "anthropic-messages": {
                "top_k": 40,
                "thinking": {"type": "adaptive"},
                "output_config": {
                    "effort": "high",
                    "format": {"type": "json_schema", "schema": {"type": "object"}},
                },
                "metadata": {"user_id": "u"},
                "parallel_tool_calls": True,
            },
            "openai-chat": {
                "reasoning_effort": "high",
                "seed": 7,
                "response_format": {"type": "json_object"},
                "metadata": {"user": "u"},
                "parallel_tool_calls": True,
            },
            "openai-responses": {
                "reasoning": {"effort": "high", "summary": "auto"},
                "text": {"format": {"type": "json_object"}},
                "metadata": {"user": "u"},
                "parallel_tool_calls": True,
            },
            "gemini": {
                "top_k": 40,
                "seed": 7,
                "thinking": {"includeThoughts": True, "thinkingLevel": "HIGH"},
                "response_schema": {"type": "object"},
            },
            "bedrock-converse": {
                "additional_model_request_fields": {"thinking": {"type": "adaptive"}},
                "request_metadata": {"user": "u"},
            },
            "ollama": {"top_k": 40, "seed": 7, "think": "high", "format": "json"},
            "cohere-chat": {
                "top_k": 40,
                "seed": 7,
                "thinking": {"type": "enabled", "token_budget": 1024},
                "response_format": {"type": "json_object"},
            },
            "mistral": {
                "seed": 7,
                "prompt_mode": "reasoning",
                "response_format": {"type": "json_object"},
                "metadata": {"user": "u"},
            },
        },
    ),
    Case("text", turns("Hello")),
    Case("turns", turns("Hello", "Yes?", "The time?")),
    Case("texts-in-a-message", same(asked("One.", "Two."))),
    Case("unicode", turns("Größe 𝄞 \u2028 \x00 end")),
    Case("system", same([Message.system("Be brief.", "Be kind."), *texts("Hello")])),
    Case("system-twice", same([Message.system("A."), Message.system("B."), *texts("Hello")])),
    Case(
        "system-in-the-middle",
        same([*texts("Hello", "Yes?"), Message.system("Now in French."), *texts("Time?")]),
    ),
    Case("assistant-first", same([Message.assistant("Welcome."), *texts("Hello")])),
    Case("assistant-last", turns("Finish: once upon", "a time ")),
    Case("users-in-a-row", same([*texts("One"), *texts("Two")])),
    Case(
        "assistants-in-a-row",
        same([*texts("Hello", "Yes"), Message.assistant("and no."), *texts("Ah")]),
    ),
    Case("empty-text", same([*texts("Hello", ""), *texts(" ", "Yes?", "Time?")])),
    Case("call", same(tool_turn(call("call_1"), results=[RAIN])), (WEATHER,)),
    Case(
        "parallel-calls",
        same(
            tool_turn(
                "Both.",
                call("call_1"),
                call("call_2", "time", ""),
                results=[RAIN, Message.tool_result("call_2", "9 h")],
            )
        ),
        (WEATHER, TIME),
    ),
    Case(
        "results-out-of-order",
        same(
            tool_turn(
                call("call_1"),
                call("call_2"),
                results=[Message.tool_result("call_2", "sun"), RAIN],
            )
        ),
        (WEATHER,),
    ),
    Case(
        "user-before-results",
        same(tool_turn(call("call_1"), results=[Message.user("Well?"), RAIN])),
        (WEATHER,),
    ),
    Case(
        "two-rounds",
        same(
            [
                *tool_turn(call("call_1"), results=[RAIN]),
                Message.assistant("And later?", call("call_2")),
                Message.tool_result("call_2", "sun"),
                Message.assistant("Rain, then sun."),
                *texts("Thanks"),
            ]
        ),
        (WEATHER,),
    ),
    Case(
        "arguments-odd",
        same(
            tool_turn(
                call("call_1", raw="[1]"),
                call("call_2", raw="null"),
                call("call_3", raw='"{\\"city\\": \\"Brest\\"}"'),
                results=[
                    Message.tool_result(f"call_{number}", "no", is_error=True)
                    for number in (1, 2, 3)
                ],
            )
        ),
        (WEATHER,),
    ),
    Case("call-of-free-text", same(tool_turn(PATCH, results=[RAIN]))),
    Case("half-a-call", same([*tool_turn("I try.", HALF, results=[]), *texts("Go on")])),
    Case(
        "half-a-call-answered",
        same(tool_turn(HALF, results=[Message.tool_result("call_1", "never ran", is_error=True)])),
        (WEATHER,),
    ),
    Case(
        "result-object",
        same(tool_turn(call("call_1"), results=[Message.tool_result("call_1", {"sky": ["grey"]})])),
        (WEATHER,),
    ),
    Case(
        "result-empty",
        same(tool_turn(call("call_1"), results=[Message.tool_result("call_1", "")])),
        (WEATHER,),
    ),
    Case(
        "result-with-image",
        same(
            tool_turn(
                call("call_1"),
                results=[
                    Message.tool_result(
                        "call_1",
                        [TextPart(text="The map:"), image(data=PNG), TextPart(text="done")],
                    )
                ],
            )
        ),
        (WEATHER,),
    ),
    Case(
        "images",
        same(asked("What?", image(data=PNG), image(url="https://example.com/a.png"))),
    ),
    Case(
        "files",
        same(
            asked(
                "Compare.",
                FileRefPart(path=PDF),
                FileRefPart(path="data:text/plain;name=notes.txt,Hello%21", mime_type="text/plain"),
                FileRefPart(path="https://example.com/a.pdf", mime_type="application/pdf"),
                FileRefPart(path="file_abc", mime_type="application/pdf"),
                FileRefPart(path="gs://bucket/a.pdf", mime_type="application/pdf"),
                FileRefPart(path="s3://bucket/a.pdf", mime_type="application/pdf"),
                FileRefPart(path="data:audio/wav;base64,UklGRg==", mime_type="audio/wav"),
            )
        ),
    ),
    Case("file-alone", same(asked(FileRefPart(path=PDF)))),
    Case(
        "thinking-and-call",
        lambda dialect: tool_turn(thought(dialect), own_call(dialect, "call_1"), results=[RAIN]),
        (WEATHER,),
    ),
    Case(
        "thinking-of-a-closed-turn",
        lambda dialect: [
            *texts("Hello"),
            Message.assistant(thought(dialect), "Yes?"),
            *texts("Ah"),
        ],
    ),
    Case(
        "thinking-redacted",
        lambda dialect: [
            *texts("Hello"),
            Message.assistant(redacted(dialect), "Yes?"),
            *texts("Ah"),
        ],
    ),
    Case(
        "thinking-unsigned",
        same([*texts("Hello"), Message.assistant(ThinkingPart(text="Hm."), "Yes?"), *texts("Ah")]),
    ),
    Case(
        "thinking-of-another-model",
        lambda dialect: tool_turn(
            thought(dialect, model_id="other"),
            own_call(dialect, "call_1", model_id="other"),
            results=[RAIN],
        ),
        (WEATHER,),
    ),
    Case("every-provider", travelled, (WEATHER,)),
    Case("own-items", own_items, (WEATHER,)),
    Case(
        "own-block",
        lambda dialect: [*texts("Hello"), Message.assistant(*provider_blocks(dialect), "Yes?")],
    ),
    Case(
        "foreign-blocks",
        same(
            [
                *texts("Hello"),
                Message.assistant(
                    ProviderPart(dialect="gemini-interactions", block={"type": "hologram"}), "Yes?"
                ),
                *texts("Ah"),
            ]
        ),
    ),
    Case("refusal", same([*texts("Help"), Message.assistant(TextPart(text="No.", refusal=True))])),
    Case("citations", same([*texts("Tides?"), Message.assistant(CITED), *texts("Ah")])),
    Case(
        "image-of-the-model",
        same([*texts("Draw"), Message.assistant("So:", image(data=PNG)), *texts("Ah")]),
    ),
    Case(
        "odd-ids-and-names",
        same(
            tool_turn(
                call("toolu/" + "9" * 60, "get weather!"),
                call("", "x" * 70),
                results=[
                    Message.tool_result("toolu/" + "9" * 60, "rain"),
                    Message.tool_result("", "sun"),
                ],
            )
        ),
        (ToolSpec(name="get weather!"), ToolSpec(name="x" * 70)),
        {"tool_choice": ToolChoice.tool("get weather!")},
    ),
    *(
        Case(f"choice-{choice}", turns("Hello"), (WEATHER,), {"tool_choice": choice})
        for choice in ("auto", "required", "none")
    ),
    Case(
        "choice-among-tools",
        turns("Hello"),
        (WEATHER, TIME, ToolSpec(name="search")),
        {"tool_choice": ToolChoice(mode="required", allowed_tools=("weather", "time"))},
    ),
    Case(
        "choice-among-tools-or-none",
        turns("Hello"),
        (WEATHER, TIME, ToolSpec(name="search")),
        {"tool_choice": ToolChoice(mode="auto", allowed_tools=("weather", "time"))},
    ),
    Case(
        "effort-and-schema",
        turns("Hello"),
        settings={
            "reasoning_effort": "high",
            "output_schema": {
                "json_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
                "name": "place",
                "description": "A place.",
            },
        },
    ),
    Case(
        "choice-none-after-calls",
        same(tool_turn(call("call_1"), results=[RAIN])),
        (WEATHER,),
        {"tool_choice": "none"},
    ),
    Case("tools-no-more", same(tool_turn(call("call_1"), results=[RAIN]))),
    Case("strict-tool", turns("Hello"), (WEATHER.model_copy(update={"strict": True}),)),
    Case(
        "tool-of-another-dialect",
        turns("Hello"),
        (WEATHER.model_copy(update={"extra": {"strictly": True}, "dialect": "another"}),),
    ),
    Case("cache", turns("Hello", "Yes?", "Time?"), (WEATHER,), {"cache_config": CacheConfig()}),
    Case("cache-marks", marked),
]
"""All conversations."""
