"""Histories that a provider refuses, each with the failure or the rule that it comes from.

In: a dialect.  Out: messages, and the rule that they break.

Sources: the sections of docs/protocols/ that the rows name. `PROBLEMS` is the table of problems,
which were found in recordings of refused requests and in public reports of other libraries.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from conversations import DIALECTS, MODELS, call, own_call, provider_blocks, state, thought
from deltafold import (
    FileRefPart,
    ImagePart,
    Message,
    MessagePart,
    ProviderPart,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from deltafold.dialects.repairs.problems import REFUSED_BY
from deltafold.dialects.repairs.problems import ProblemCode as Code

ASKED = Message.user("Weather?")
HOLOGRAM = ProviderPart(dialect="gemini-interactions", block={"type": "hologram"})
THANKS = Message.user("Thanks")
RAIN = Message.tool_result("a", "rain")
SUN = Message.tool_result("b", "sun")


OPENAI = ("openai-chat", "openai-responses")
PROBLEMS = "docs/requests.md#histories-that-a-provider-would-refuse"


@dataclass(frozen=True)
class Bad:
    """One history, and its problems in the order of its messages."""

    name: str
    source: str
    messages: Callable[[str], Sequence[Message]]
    codes: tuple[Code, ...]
    accepted_in: tuple[str, ...] = ()
    """The dialects in which the model of the tests is known to accept the history."""

    def codes_in(self, dialect: str) -> list[Code]:
        if dialect in self.accepted_in:
            return []
        return [code for code in self.codes if dialect in REFUSED_BY[code]]


def bad(
    name: str,
    source: str,
    *messages: Message,
    codes: Sequence[Code],
    accepted_in: tuple[str, ...] = (),
) -> Bad:
    return Bad(name, source, lambda _dialect: messages, tuple(codes), accepted_in)


def raw(role: Role, *parts: MessagePart) -> Message:
    """Make a message as a file may hold it, whatever its role allows."""
    return Message.model_construct(role=role, parts=list(parts))


def said(*parts: MessagePart | str) -> list[Message]:
    return [ASKED, Message.assistant(*parts)]


def half(call_id: str = "a") -> ToolCallPart:
    return ToolCallPart(
        tool_call_id=call_id, tool_name="weather", raw_args_text='{"ci', incomplete=True
    )


def unnamed() -> ToolCallPart:
    return ToolCallPart(tool_call_id="a", tool_name="", raw_args_text="{}")


_SERVER_TOOLS: Mapping[str, tuple[dict[str, object], dict[str, object] | None]] = {
    "anthropic-messages": (
        {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []},
    ),
    "openai-responses": (
        {"type": "web_search_call", "id": "ws_1", "status": "in_progress"},
        None,
    ),
    "gemini": (
        {"executableCode": {"language": "PYTHON", "code": "print(1)"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
    ),
    "bedrock-converse": (
        {"toolUse": {"toolUseId": "t_1", "name": "search", "input": {}, "type": "server_tool_use"}},
        {"toolResult": {"toolUseId": "t_1", "content": [], "type": "nova_grounding_result"}},
    ),
}


def server_use(dialect: str) -> list[MessagePart]:
    """Make a tool of the provider that has not ended, where there are such tools."""
    block = _SERVER_TOOLS[dialect][0] if dialect in _SERVER_TOOLS else None
    return [] if block is None else [ProviderPart(dialect=dialect, block=block)]


def server_result(dialect: str) -> list[MessagePart]:
    """Make the result of that tool, where the protocol has results apart from their uses."""
    block = _SERVER_TOOLS[dialect][1] if dialect in _SERVER_TOOLS else None
    return [] if block is None else [ProviderPart(dialect=dialect, block=block)]


def pair(dialect: str) -> list[MessagePart]:
    """Make a tool of the provider with its result."""
    return [*server_use(dialect), *server_result(dialect)] if server_result(dialect) else []


BAD = [
    bad("call-last", PROBLEMS, *said(call("a")), codes=[Code.ORPHAN_CALL]),
    bad(
        "call-then-user",
        f"{PROBLEMS}: orphans",
        *said("I look.", call("a")),
        THANKS,
        codes=[Code.ORPHAN_CALL],
        accepted_in=("gemini",),
    ),
    bad(
        "one-result-of-two",
        "docs/protocols/anthropic-messages.md#tool-results: rule 2",
        *said(call("a"), call("b")),
        RAIN,
        THANKS,
        codes=[Code.ORPHAN_CALL],
    ),
    bad(
        "no-result-of-two",
        "docs/protocols/openai-chat.md#request",
        *said(call("a"), call("b")),
        codes=[Code.ORPHAN_CALL, Code.ORPHAN_CALL],
    ),
    bad(
        "call-without-result-before-a-good-turn",
        PROBLEMS,
        *said(call("a")),
        Message.assistant(call("b")),
        SUN,
        codes=[Code.ORPHAN_CALL],
    ),
    bad("result-alone", PROBLEMS, ASKED, RAIN, codes=[Code.ORPHAN_RESULT]),
    bad("result-first", PROBLEMS, RAIN, ASKED, codes=[Code.ORPHAN_RESULT]),
    bad(
        "result-before-its-call",
        "docs/protocols/gemini.md#request: one response right after the call",
        ASKED,
        RAIN,
        Message.assistant(call("a")),
        codes=[Code.ORPHAN_RESULT, Code.ORPHAN_CALL],
    ),
    bad(
        "result-after-an-answer",
        PROBLEMS,
        *said("No tool."),
        Message.tool_result("x", {"sky": "grey"}),
        codes=[Code.ORPHAN_RESULT],
    ),
    bad(
        "two-results-for-one-call",
        f"{PROBLEMS}: duplicates",
        *said(call("a")),
        RAIN,
        Message.tool_result("a", "rain again"),
        codes=[Code.ORPHAN_RESULT],
    ),
    bad(
        "three-results-for-one-call",
        f"{PROBLEMS}: duplicates",
        *said(call("a")),
        RAIN,
        RAIN,
        THANKS,
        RAIN,
        codes=[Code.ORPHAN_RESULT, Code.ORPHAN_RESULT],
    ),
    bad(
        "result-under-the-item-id",
        f"{PROBLEMS}: call_id against id",
        *said(call("call_a")),
        Message.tool_result("fc_a", "rain"),
        codes=[Code.ORPHAN_CALL, Code.ORPHAN_RESULT],
    ),
    bad(
        "no-id",
        f"{PROBLEMS}: over-repair: a good result whose id is empty",
        *said(call("")),
        Message.tool_result("", "rain"),
        codes=[Code.EMPTY_CALL_ID],
    ),
    bad(
        "no-ids",
        PROBLEMS,
        *said(call(""), call("")),
        Message.tool_result("", "rain"),
        Message.tool_result("", "sun"),
        codes=[Code.EMPTY_CALL_ID, Code.EMPTY_CALL_ID],
    ),
    bad(
        "one-id-in-a-turn",
        f"{PROBLEMS}: colliding ids",
        *said(call("a"), call("a")),
        RAIN,
        RAIN,
        codes=[Code.REUSED_CALL_ID],
    ),
    bad(
        "one-id-in-two-turns",
        f"{PROBLEMS}: tool ids: ids reused across turns",
        *said(call("a")),
        RAIN,
        Message.assistant(call("a")),
        RAIN,
        codes=[Code.REUSED_CALL_ID],
        accepted_in=("anthropic-messages",),
    ),
    bad(
        "one-id-in-two-turns-one-result",
        f"{PROBLEMS}: tool ids",
        *said(call("a")),
        Message.assistant(call("a")),
        RAIN,
        codes=[Code.ORPHAN_CALL, Code.REUSED_CALL_ID],
    ),
    bad(
        "user-before-result",
        f"{PROBLEMS}: grouping: the results directly follow the calls",
        *said(call("a")),
        Message.user("Well?"),
        RAIN,
        codes=[Code.LATE_RESULT],
    ),
    bad(
        "answer-before-result",
        "docs/protocols/openai-chat.md#request: directly after that message",
        *said(call("a"), call("b")),
        RAIN,
        Message.assistant("One is here."),
        SUN,
        codes=[Code.LATE_RESULT],
    ),
    bad(
        "system-before-result",
        f"{PROBLEMS}: system placement",
        *said(call("a")),
        Message.system("Be brief."),
        RAIN,
        codes=[Code.LATE_RESULT],
    ),
    bad("half-a-call", f"{PROBLEMS}: truncation", *said("I try.", half()), codes=[Code.HALF_CALL]),
    bad(
        "half-a-call-after-a-whole-one",
        f"{PROBLEMS}: an error in mid-stream",
        *said(call("a"), half("b")),
        RAIN,
        codes=[Code.HALF_CALL],
    ),
    bad(
        "half-a-call-answered",
        PROBLEMS,
        *said(half()),
        RAIN,
        codes=[Code.ARGUMENTS_NOT_AN_OBJECT],
        accepted_in=OPENAI,
    ),
    *(
        bad(
            f"arguments-{name}",
            f"{PROBLEMS}: the shape of arguments; 500 one turn later",
            *said(call("a", raw=text)),
            RAIN,
            codes=[Code.ARGUMENTS_NOT_AN_OBJECT],
            accepted_in=OPENAI,
        )
        for name, text in (
            ("array", "[1]"),
            ("number", "1"),
            ("nonsense", "city: Brest"),
            ("doubled", '{"a":1}{"a":1}'),
            ("cut", '{"city": "Br'),
        )
    ),
    bad(
        "no-tool-name",
        f"{PROBLEMS}: names that never came",
        *said(unnamed()),
        RAIN,
        codes=[Code.EMPTY_TOOL_NAME],
    ),
    bad(
        "assistant-first",
        "docs/protocols/anthropic-messages.md#request: alternation",
        Message.assistant("Welcome."),
        ASKED,
        codes=[Code.ASSISTANT_FIRST],
        accepted_in=("anthropic-messages", "bedrock-converse"),
    ),
    bad(
        "assistant-first-after-system",
        "docs/protocols/bedrock-converse.md#request: roles must alternate",
        Message.system("Be brief."),
        Message.assistant("Welcome."),
        ASKED,
        codes=[Code.ASSISTANT_FIRST],
        accepted_in=("anthropic-messages", "bedrock-converse"),
    ),
    bad(
        "call-first",
        "docs/protocols/gemini.md#request",
        Message.assistant(call("a")),
        RAIN,
        codes=[Code.ASSISTANT_FIRST],
        accepted_in=("anthropic-messages", "bedrock-converse"),
    ),
    bad(
        "nothing",
        "docs/protocols/openai-chat.md#request: messages",
        codes=[Code.EMPTY_HISTORY],
        accepted_in=("openai-responses",),
    ),
    bad(
        "system-alone",
        "docs/protocols/anthropic-messages.md#request: messages",
        Message.system("Be brief."),
        codes=[Code.EMPTY_HISTORY],
        accepted_in=("openai-chat", "openai-responses"),
    ),
    bad("empty-user", PROBLEMS, raw(Role.USER), ASKED, codes=[Code.EMPTY_MESSAGE]),
    bad("empty-assistant", PROBLEMS, *said(), THANKS, codes=[Code.EMPTY_MESSAGE]),
    bad("empty-tool", PROBLEMS, *said("Yes"), raw(Role.TOOL), codes=[Code.EMPTY_MESSAGE]),
    bad(
        "blank-beside-text",
        "docs/protocols/anthropic-messages.md#request: empty text blocks are rejected",
        *said("\n\n", "Yes"),
        codes=[Code.EMPTY_TEXT],
    ),
    bad(
        "blank-user",
        "docs/protocols/bedrock-converse.md#request: blank text blocks are rejected",
        ASKED,
        Message.user(" "),
        codes=[Code.EMPTY_TEXT],
    ),
    bad(
        "unsigned-thinking",
        PROBLEMS,
        *said(ThinkingPart(text="Hm."), "Yes"),
        codes=[Code.UNSIGNED_THINKING],
    ),
    Bad(
        "empty-signature",
        f"{PROBLEMS}: a signature of '' is refused",
        lambda dialect: said(
            ThinkingPart(text="Hm.", provider_state=state(dialect, {"signature": ""})), "Yes"
        ),
        (Code.UNSIGNED_THINKING,),
    ),
    bad(
        "redacted-without-its-secret",
        f"{PROBLEMS}: the redacted form is no escape",
        *said(ThinkingPart(text="", redacted=True), "Yes"),
        codes=[Code.UNSIGNED_THINKING],
    ),
    Bad(
        "thinking-of-another-model",
        f"{PROBLEMS}: signatures are a model's",
        lambda dialect: said(
            ThinkingPart(text="Hm.", provider_state=state(dialect, {"signature": "s"}, "other")),
            "Yes",
        ),
        (Code.FOREIGN_THINKING,),
    ),
    Bad(
        "thinking-of-another-provider",
        f"{PROBLEMS}: model and provider switch",
        lambda dialect: said(
            thought("gemini" if dialect != "gemini" else "anthropic-messages"), "Yes"
        ),
        (Code.FOREIGN_THINKING,),
    ),
    bad(
        "block-of-another-provider",
        f"{PROBLEMS}: model and provider switch",
        *said(HOLOGRAM, "Yes"),
        codes=[Code.FOREIGN_BLOCK],
    ),
    bad(
        "local-file",
        f"{PROBLEMS}: request fidelity",
        Message.user("Read", FileRefPart(path="/home/ada/a.pdf")),
        codes=[Code.LOCAL_FILE],
    ),
    bad(
        "local-file-whose-name-is-no-unicode",
        f"{PROBLEMS}: request fidelity",
        Message.user("Read", FileRefPart(path="/home/ada/\udce9.pdf")),
        codes=[Code.LOCAL_FILE],
    ),
    bad(
        "local-image",
        PROBLEMS,
        Message.user("See", ImagePart(mime_type="image/png", url="file:///home/ada/a.png")),
        codes=[Code.LOCAL_FILE],
    ),
    bad(
        "local-file-in-a-result",
        f"{PROBLEMS}: images in tool results",
        *said(call("a")),
        Message.tool_result("a", [TextPart(text="here:"), FileRefPart(path="C:\\a.pdf")]),
        codes=[Code.LOCAL_FILE],
    ),
    bad(
        "video-for-claude-at-bedrock",
        "a recording of Claude Sonnet 4.5: this model doesn't support the video content block",
        Message.user("Watch", FileRefPart(path="data:video/mp4;base64,AAAA")),
        codes=[Code.REFUSED_MEDIUM],
        accepted_in=tuple(set(DIALECTS) - {"bedrock-converse"}),
    ),
    bad(
        "image-in-s3-for-claude-at-bedrock",
        "a recording of Claude Sonnet 4.5: this model doesn't support the s3Uri field",
        *said(call("a")),
        Message.tool_result("a", [ImagePart(mime_type="image/png", url="s3://bucket/a.png")]),
        codes=[Code.REFUSED_MEDIUM],
        accepted_in=tuple(set(DIALECTS) - {"bedrock-converse"}),
    ),
    bad(
        "audio-for-gpt-5",
        "recordings of GPT-5 mini: content blocks are expected to be either text or image_url",
        Message.user("Listen", FileRefPart(path="data:audio/mpeg;base64,AAAA")),
        codes=[Code.REFUSED_MEDIUM],
        accepted_in=tuple(set(DIALECTS) - set(OPENAI)),
    ),
    Bad(
        "reasoning-alone",
        "docs/protocols/openai-responses.md#replay: reasoning without its following item is a 400",
        lambda dialect: [*said(thought(dialect)), THANKS],
        (Code.LONE_REASONING,),
    ),
    Bad(
        "reasoning-before-a-foreign-block",
        "docs/protocols/openai-responses.md#request: a block of another provider is no item",
        lambda dialect: [*said(thought(dialect)), Message.assistant(HOLOGRAM), THANKS],
        (Code.LONE_REASONING, Code.FOREIGN_BLOCK),
    ),
    Bad(
        "reasoning-before-half-a-call",
        f"{PROBLEMS}: orphans: paired reasoning must go too",
        lambda dialect: [*said(thought(dialect), half()), THANKS],
        (Code.HALF_CALL, Code.LONE_REASONING),
    ),
    Bad(
        "reasoning-and-half-a-call-in-two-messages",
        "clients of Gemini keep each piece of a stream as a message",
        lambda dialect: [*said(thought(dialect)), Message.assistant(half()), THANKS],
        (Code.LONE_REASONING, Code.HALF_CALL),
    ),
    Bad(
        "server-tool-that-was-cut",
        "Anthropic's page on server tools: the result follows in the same turn",
        lambda dialect: [*said("I look.", *server_use(dialect)), THANKS],
        (Code.UNPAIRED_SERVER_TOOL,),
    ),
    Bad(
        "server-tool-after-reasoning",
        "docs/protocols/openai-responses.md#replay: reasoning without its following item is a 400",
        lambda dialect: [*said("Yes", thought(dialect), *server_use(dialect)), THANKS],
        (Code.UNPAIRED_SERVER_TOOL, Code.LONE_REASONING),
    ),
    Bad(
        "result-of-no-server-tool",
        "Anthropic's page on server tools: use and result are paired by tool_use_id",
        lambda dialect: [*said("Yes", *server_result(dialect)), THANKS],
        (Code.UNPAIRED_SERVER_TOOL,),
        accepted_in=("openai-responses",),
    ),
    bad(
        "call-of-the-user",
        "docs/protocols/openai-chat.md#request: calls are the assistant's",
        raw(Role.USER, TextPart(text="Weather?"), call("a")),
        RAIN,
        codes=[Code.MISPLACED_PART],
    ),
    bad(
        "result-of-the-assistant",
        f"{PROBLEMS}: grouping",
        ASKED,
        raw(
            Role.ASSISTANT,
            call("a"),
            ToolResultPart(tool_call_id="a", content="rain"),
            TextPart(text="Rain."),
        ),
        codes=[Code.MISPLACED_PART],
    ),
    bad(
        "image-of-the-system",
        "docs/protocols/anthropic-messages.md#request: system holds text",
        raw(Role.SYSTEM, TextPart(text="See"), ImagePart(mime_type="image/png", data="iVBORw0=")),
        ASKED,
        codes=[Code.MISPLACED_PART],
    ),
    bad(
        "text-of-a-tool",
        "docs/protocols/openai-chat.md#request",
        *said(call("a")),
        raw(Role.TOOL, ToolResultPart(tool_call_id="a", content="rain"), TextPart(text="Ah.")),
        codes=[Code.MISPLACED_PART],
    ),
]
"""All histories."""

GOOD: list[tuple[str, Callable[[str], Sequence[Message]]]] = [
    ("question", lambda _dialect: [ASKED]),
    ("two-users", lambda _dialect: [ASKED, THANKS]),
    ("prefill", lambda _dialect: said("It is ")),
    ("results-out-of-order", lambda _dialect: [*said(call("a"), call("b")), SUN, RAIN]),
    (
        "results-in-one-message",
        lambda _dialect: [
            *said(call("a"), call("b")),
            Message(role=Role.TOOL, parts=[*RAIN.parts, *SUN.parts]),
        ],
    ),
    (
        "signed",
        lambda dialect: [*said(thought(dialect), own_call(dialect, "a"), call("b")), RAIN, SUN],
    ),
    (
        "reasoning-and-its-call-in-two-messages",
        lambda dialect: [*said(thought(dialect)), Message.assistant(own_call(dialect, "a")), RAIN],
    ),
    ("own-block", lambda dialect: said(*provider_blocks(dialect), "Yes")),
    (
        "server-tool-and-its-result",
        lambda dialect: [*said(*pair(dialect), "Yes"), THANKS],
    ),
    (
        "server-tool-and-its-result-after-a-pause",
        lambda dialect: [
            *said("I look.", *pair(dialect)[:1]),
            Message.assistant(*pair(dialect)[1:], "Yes"),
            THANKS,
        ],
    ),
    (
        "signature-on-empty-text",
        lambda dialect: said(
            "Yes", TextPart(text="", provider_state=state(dialect, {"thoughtSignature": "s"}))
        ),
    ),
    ("no-arguments", lambda _dialect: [*said(call("a", raw="")), RAIN]),
    ("empty-result", lambda _dialect: [*said(call("a")), Message.tool_result("a", "")]),
    ("odd-id", lambda _dialect: [*said(call("x/" * 50)), Message.tool_result("x/" * 50, "rain")]),
    ("files", lambda _dialect: [Message.user(FileRefPart(path="https://example.com/a.pdf"))]),
]
"""Histories that nobody refuses."""

__all__ = ["BAD", "GOOD", "MODELS", "Bad"]
