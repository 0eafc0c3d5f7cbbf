"""Conversations that grow: what the last call has written of one serves the next call.

In: a conversation, call by call.  Out: the bodies of the requests.

Laws: each body is the one that the rules write. How many messages are looked at again does not
depend on the length of the conversation.
"""

import asyncio
import gc
import json
import random
import weakref
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Final

import httpx2
import pytest

import deltafold
from agent_requests import CLIENTS, Session, request_of
from any_name import AnyName
from deltafold import (
    ImagePart,
    Message,
    MisuseError,
    ModelError,
    OutputSchema,
    TextPart,
    ToolChoice,
    ToolSpec,
)
from deltafold.dialects import message_rows
from deltafold.message.messages import Meta, Role, ToolCallPart
from deltafold.models import kept_rounds, outlined
from deltafold.models.kept_rounds import KeptRounds
from samples import sampled

MODELS: Final[dict[str, dict[str, Any]]] = {
    "anthropic/claude-sonnet-5-5": {"cache_config": {"strategy": "auto"}},
    "openai/gpt-5.6-terra": {},
    "google/gemini-3-pro": {},
    "deepseek/deepseek-reasoner": {},
    "openrouter/anthropic/claude-sonnet-5-5": {},
    "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0": {"base_url": "http://here.example"},
    "mistral/mistral-large-latest": {},
    "ollama/qwen3": {},
    "cohere/command-a-03-2025": {},
}


@pytest.fixture(autouse=True)
def rounds(monkeypatch: pytest.MonkeyPatch) -> KeptRounds:
    """Return what is kept in the test alone."""
    own = KeptRounds()
    monkeypatch.setattr(outlined, "ROUNDS", own)
    return own


class Provider:
    """A Model whose provider keeps the bodies that it gets, and refuses each."""

    def __init__(self, name: str, **settings: Any) -> None:  # noqa: ANN401 - of any model
        self.bodies: list[Any] = []
        client = httpx2.AsyncClient(transport=httpx2.MockTransport(self._refuse))
        self.model: Any = deltafold.load_model(name, client=client, api_key="k", **settings)

    def _refuse(self, request: httpx2.Request) -> httpx2.Response:
        self.bodies.append(json.loads(request.content))
        return httpx2.Response(400, json={"error": {"message": "no"}})

    def sent(self, messages: object, *arguments: object, **options: object) -> Any:  # noqa: ANN401 - JSON
        """Return the body and the warnings of a call, or its error."""

        async def call() -> ModelError:
            async with self.model.stream(messages, *arguments, **options) as stream:
                with pytest.raises(ModelError) as refused:
                    await stream.final_message()
            return refused.value

        try:
            refused = asyncio.run(call()).partial_message
        except (MisuseError, ValueError) as error:
            return f"{type(error).__name__}: {error}"
        return json.dumps(self.bodies.pop()), refused and refused.meta.warnings


@contextmanager
def rules_alone() -> Generator[None]:
    def none(*_: object) -> None:
        return None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outlined, "written_alike", none)
        yield


@contextmanager
def counted() -> Generator[Counter[str]]:
    """Count the messages that are looked at."""
    count: Counter[str] = Counter()
    read = message_rows.json_of

    def json_of(message: Message) -> str | None:
        count["messages"] += 1
        return read(message)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(message_rows, "json_of", json_of)
        yield count


def conversation(client: AnyName, number: int, *, faulty: bool = False, model_id: str = "") -> Any:  # noqa: ANN401 - of any client
    """Return the messages and the tools of a session."""
    body = json.loads(request_of(number, client, faulty=faulty))
    if model_id:
        body["model"] = model_id
    parsed = deltafold.parse_request(body, client)
    return list(parsed.messages), parsed.tools


def ends(messages: list[Message]) -> list[int]:
    """Return the lengths with which an agent sends the messages."""
    return [
        number
        for number in range(1, len(messages))
        if messages[number - 1].role is not Role.ASSISTANT
        and messages[number].role is not Role.TOOL
    ] + [len(messages)]


@sampled(9)
@pytest.mark.parametrize("faulty", [False, True], ids=["whole", "faulty"])
@pytest.mark.parametrize("name", MODELS)
def test_each_call_is_what_the_rules_write(name: str, every: int, *, faulty: bool) -> None:
    provider = Provider(name, **MODELS[name])
    before = outlined.STENCILS.written
    for seed in range(0, 27, every):
        client: Any = [*CLIENTS][seed // every % 3] if every > 1 else [*CLIENTS][seed % 3]
        own = provider.model.model_id if client == provider.model.dialect else ""
        try:
            messages, tools = conversation(client, seed, faulty=faulty, model_id=own)
        except ValueError:
            continue
        chosen = random.Random(seed)  # noqa: S311 - no secret
        for length in ends(messages)[::2]:
            said = messages[:length]
            if chosen.random() < 0.2:
                said.append(Message.user(f"A reminder: {length}"))
            system = {"system_prompt": f"Be brief: {length}"} if chosen.random() < 0.3 else {}
            options: Any = {"repair": chosen.choice(("none", "auto")), **system}
            made = provider.sent(said, tools, **options)
            with rules_alone():
                assert made == provider.sent(said, tools, **options), (client, seed, length)
    # Mistral's ids have a form of their own, so that each call is renamed.
    assert faulty or "mistral" in name or outlined.STENCILS.written > before


PICTURE: Final = ImagePart(mime_type="image/png", data="AA==")

TEXTS: Final = [f"text {number}" for number in range(41)]

CHAT: Final[list[Any]] = [
    {"role": ("user", "assistant")[number % 2], "content": text}
    for number, text in enumerate(TEXTS)
]

OTHER_FORMS: Final[dict[str, Any]] = {
    "chat": CHAT,
    "a tuple": tuple(CHAT),
    "texts": TEXTS,
    "wire forms": [
        Message(role=one["role"], parts=[TextPart(text=one["content"])]).to_dict() for one in CHAT
    ],
    "messages and a last one of another form": [
        *(Message(role=one["role"], parts=[TextPart(text=one["content"])]) for one in CHAT[:-1]),
        CHAT[-1],
    ],
    "other forms and a last message": [*CHAT[:-1], Message.user("Go on.")],
    "no message": [*CHAT, 7],
    "no message before the last one": [*CHAT[:-1], 7, Message.user("Go on.")],
}


@pytest.mark.parametrize("form", OTHER_FORMS)
def test_long_conversations_of_other_forms_are_what_the_rules_write(form: str) -> None:
    provider = Provider("openai/gpt-5.6-terra")
    for _ in range(2):
        made = provider.sent(OTHER_FORMS[form])
        with rules_alone():
            assert made == provider.sent(OTHER_FORMS[form])
        assert ("no message" in form) == isinstance(made, str), made


def grown(turns: int = 40) -> tuple[list[Message], Any]:
    parsed = deltafold.parse_request(CLIENTS["openai-chat"][0](Session(8), turns), "openai-chat")
    messages = list(parsed.messages)
    return messages[: ends(messages)[-2]], parsed.tools


def test_a_call_looks_at_what_is_new(rounds: KeptRounds) -> None:
    provider = Provider("anthropic/claude-sonnet-5-5")
    messages, tools = grown(200)
    looked_at: list[int] = []
    for length in ends(messages):
        with counted() as count:
            provider.sent(messages[:length], tools)
        looked_at.append(count["messages"])
    assert len(rounds) == 1
    # Further ends of a conversation, and further rounds, are learned from examples.
    assert sorted(looked_at[60:])[len(looked_at[60:]) // 2] < 20
    for text in ("More.", "Once more.", "And again."):
        messages += [Message.assistant("It is so."), Message.user(text)]
        with counted() as count:
            provider.sent(messages, tools)
        last = count["messages"]
    assert last < 12


CHANGES: Final[dict[str, Callable[[list[Message], int], object]]] = {
    "a part is added": lambda said, at: said[at].parts.append(TextPart(text="More.")),
    "parts are replaced": lambda said, at: setattr(said[at], "parts", [TextPart(text="Other.")]),
    "a part is replaced": lambda said, at: said[at].parts.__setitem__(0, TextPart(text="Other.")),
    "all parts are removed": lambda said, at: said[at].parts.clear(),
    "another role": lambda said, at: setattr(said[at], "role", Role.USER),
    "an answer has failed": lambda said, at: setattr(said[at].meta, "is_api_error_message", True),
    "an answer of another model": lambda said, at: setattr(said[at].meta, "model_id", "gpt-4"),
    "other metadata": lambda said, at: setattr(said[at], "meta", Meta()),
    "a message is replaced": lambda said, at: said.__setitem__(at, Message.assistant("Other.")),
    "an equal message": lambda said, at: said.__setitem__(at, said[at].model_copy(deep=True)),
    "a message is left out": lambda said, at: said.pop(at),
    "a message is inserted": lambda said, at: said.insert(at, Message.user("Wait.")),
    "a picture": lambda said, at: said[at - 1].parts.append(
        ImagePart(mime_type="image/png", data="AA==")
    ),
    "the beginning": lambda said, _: said.__setitem__(0, Message.system("Be brief.")),
    "an earlier beginning": lambda said, _: said.insert(0, Message.user("Hello.")),
    "no beginning": lambda said, _: said.pop(0),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", ["anthropic/claude-sonnet-5-5", "openai/gpt-5.6-terra"])
def test_a_change_of_what_was_sent_is_seen(name: str, change: str) -> None:
    provider = Provider(name)
    messages, tools = grown()
    place = next(i for i in range(20, 40) if messages[i].role is Role.ASSISTANT)
    said = [*messages]
    provider.sent(said, tools)
    CHANGES[change](said, place)
    said += [Message.assistant("Yes."), Message.user("Go on.")]
    made = provider.sent(said, tools)
    with rules_alone():
        assert made == provider.sent(said, tools)


def test_calls_with_an_id_of_a_call_before_are_paired_by_the_rules() -> None:
    provider = Provider("anthropic/claude-sonnet-5-5")
    messages, tools = grown()
    provider.sent(messages, tools)
    used = next(part for one in messages for part in one.parts if isinstance(part, ToolCallPart))
    again = Message.assistant(TextPart(text="Again."), used)
    messages += [again, Message.tool_result(used.tool_call_id, "once more")]
    made = provider.sent(messages, tools)
    with rules_alone():
        assert made == provider.sent(messages, tools)


def test_branches_models_and_settings_have_rounds_of_their_own() -> None:
    first = Provider("anthropic/claude-sonnet-5-5")
    second = Provider("openai/gpt-5.6-terra")
    messages, tools = grown()
    branches = [[*messages], [*messages], [*messages]]
    for number in range(4):
        for place, said in enumerate(branches):
            said += [Message.assistant(f"Answer {number} {place}"), Message.user("Go on.")]
            for provider in (first, second):
                for options in ({}, {"temperature": 0.5}, {"tool_choice": "none"}):
                    made = provider.sent(said, tools, **options)
                    with rules_alone():
                        assert made == provider.sent(said, tools, **options)
    other = first.sent(branches[0], tools[:1])
    with rules_alone():
        assert other == first.sent(branches[0], tools[:1])


def spec(**members: Any) -> ToolSpec:  # noqa: ANN401 - JSON
    schema: Any = {"type": "object", "properties": {"day": {"default": 1}, "place": {}, **members}}
    return ToolSpec(name="tide", parameter_schema=schema)


def function() -> Callable[..., object]:
    def tide(day: int) -> str:
        """The tide of a day."""
        return f"{day}: 17:42"

    return tide


def _describe(tools: list[Any]) -> None:
    tools[0]["function"]["description"] = "The tide, in metres."


def _redescribe(tools: list[Any]) -> None:
    tools[0].__doc__ = "The tide of a day, in metres."


def _turn_around(tools: list[Any]) -> None:
    properties = tools[0].parameter_schema["properties"]
    properties["day"] = properties.pop("day")


TOOLS: Final[dict[str, tuple[Callable[[], list[Any]], Callable[[list[Any]], object]]]] = {
    "one more": (lambda: [spec()], lambda tools: tools.append(ToolSpec(name="other"))),
    "a member of a schema": (
        lambda: [spec()],
        lambda tools: tools[0].parameter_schema["properties"].update(time={}),
    ),
    "the order of a schema": (lambda: [spec()], _turn_around),
    "a value that is equal": (
        lambda: [spec()],
        lambda tools: tools.__setitem__(0, spec(day={"default": True})),
    ),
    "the JSON of a tool": (
        lambda: [{"type": "function", "function": {"name": "tide", "parameters": {}}}],
        _describe,
    ),
    "the docstring of a function": (lambda: [function()], _redescribe),
}


@pytest.mark.parametrize("change", TOOLS)
def test_tools_that_were_changed_are_sent(change: str) -> None:
    provider = Provider("openai/gpt-5.6-terra")
    messages, _ = grown()
    make, change_of = TOOLS[change]
    tools = make()
    before = provider.sent(messages, tools)
    assert provider.sent(messages, tools) == before
    change_of(tools)
    made = provider.sent(messages, tools)
    with rules_alone():
        assert made == provider.sent(messages, tools)
    assert made != before


LONG: Final = "A long description of what is wanted. " * 9

SETTINGS: Final[dict[str, Callable[[str], Any]]] = {
    "output_schema": lambda text: {
        "output_schema": OutputSchema(json_schema={"type": "object", "description": LONG + text})
    },
    "tool_choice": lambda text: {
        "tool_choice": ToolChoice(mode="auto", allowed_tools=(*"abcdefgh", text))
    },
    "extra_body": lambda text: {"extra_body": {"user": Unnamed(text)}},
}


class Unnamed(str):
    """A text that no log shows."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "***"


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_are_told_apart_to_their_end(name: str) -> None:
    provider = Provider("openai/gpt-5.6-terra")
    messages, _ = grown()
    tools = [ToolSpec(name=letter) for letter in "abcdefghxy"]
    before = provider.sent(messages, tools, **SETTINGS[name]("x"))
    made = provider.sent(messages, tools, **SETTINGS[name]("y"))
    with rules_alone():
        assert made == provider.sent(messages, tools, **SETTINGS[name]("y"))
    assert made != before


@pytest.mark.parametrize("name", ["tool_specs", "system_prompt_content"])
def test_what_can_be_read_once_is_read_once(name: str) -> None:
    provider = Provider("openai/gpt-5.6-terra")
    messages, _ = grown()
    messages[9].parts.append(PICTURE)
    value = [spec()] if name == "tool_specs" else [TextPart(text="Be brief.")]
    made = provider.sent(messages, **{name: iter(value)})
    assert made == provider.sent(messages, **{name: value})


class Desk:
    """An object with a conversation, and a tool."""

    def __init__(self) -> None:
        self.messages, _ = grown()

    def tide(self, day: int) -> str:
        """The tide of a day."""
        return f"{day}: {len(self.messages)}"


@pytest.mark.parametrize("content", [[], [PICTURE]], ids=["plain", "not plain"])
def test_tools_do_not_keep_their_conversation(rounds: KeptRounds, content: list[Any]) -> None:
    provider = Provider("openai/gpt-5.6-terra")
    desk = Desk()
    desk.messages[0].parts += content
    desk.messages[9].parts += content
    provider.sent(desk.messages, [desk.tide])
    assert len(rounds) == 1
    alive = weakref.ref(desk)
    del desk
    gc.collect()
    assert alive() is None
    assert len(rounds) == 0


@pytest.mark.parametrize("window", [40, 10_000], ids=["the last messages", "all messages"])
def test_one_conversation_keeps_little(rounds: KeptRounds, window: int) -> None:
    provider = Provider("anthropic/claude-sonnet-5-5")
    messages: list[Message] = []
    for number in range(60):
        messages += [Message.user("Go on."), Message.assistant(f"Answer {number}")]
        options = {} if window < len(messages) else {"temperature": number / 100}
        provider.sent([*messages[-window:], Message.user("And now?")], **options)
    assert 0 < len(rounds) <= 4


def test_what_is_kept_goes_with_the_conversation(rounds: KeptRounds) -> None:
    provider = Provider("anthropic/claude-sonnet-5-5")
    messages, tools = grown()
    for _ in range(3):
        messages += [Message.assistant("Yes."), Message.user("Go on.")]
        provider.sent(messages, tools)
    assert len(rounds) == 1
    provider.sent([Message.user("Hi")])
    del messages
    gc.collect()
    assert len(rounds) == 0


def test_what_is_kept_has_a_bound(rounds: KeptRounds, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_rounds, "_MOST_BYTES", 50_000)
    own = KeptRounds()
    monkeypatch.setattr(outlined, "ROUNDS", own)
    provider = Provider("anthropic/claude-sonnet-5-5")
    conversations = [grown() for _ in range(20)]
    for messages, tools in conversations:
        provider.sent(messages, tools)
    assert 0 < len(own) < len(conversations)
    assert 0 < own.size <= 50_000
    messages, tools = conversations[0]
    made = provider.sent(messages, tools)
    with rules_alone():
        assert made == provider.sent(messages, tools)
    conversations.clear()
    del messages
    gc.collect()
    assert (len(own), own.size, len(rounds)) == (0, 0, 0)


def test_threads_may_share_a_conversation() -> None:
    messages, tools = grown()
    with rules_alone():
        wanted = Provider("anthropic/claude-sonnet-5-5").sent(messages, tools)

    async def call() -> list[Any]:
        def one(_: int) -> Any:  # noqa: ANN401 - JSON
            return Provider("anthropic/claude-sonnet-5-5").sent(messages, tools)

        return await asyncio.gather(*(asyncio.to_thread(one, number) for number in range(8)))

    assert all(made == wanted for made in asyncio.run(call()))


def test_a_conversation_that_no_stencil_writes_is_not_tried_each_time() -> None:
    provider = Provider("anthropic/claude-sonnet-5-5")
    messages, tools = grown()
    messages[1].parts.append(PICTURE)
    looked_at = 0
    for _ in range(6):
        messages += [Message.assistant("Yes."), Message.user("Go on.")]
        with counted() as count:
            provider.sent(messages, tools)
        looked_at += count["messages"]
    assert looked_at <= 3
