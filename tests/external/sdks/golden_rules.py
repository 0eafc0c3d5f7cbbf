"""Rules that decide differences from the golden cases of llm-babel.

In: a difference.  Out: the document or the recording that decides it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Difference:
    """A member that differs in a case.

    Attributes:
        kind: the kind of the case.
        case: the case.
        what: the member.
        ours: what deltafold has.
        theirs: what the case expects.
        notes: the notes of a rendered request.
    """

    kind: str
    case: dict[str, Any]
    what: str
    ours: Any
    theirs: Any
    notes: tuple[str, ...] = ()

    def is_of(self, what: str, *dialects: str) -> bool:
        """Return whether a member of an answer of these dialects differs."""
        if self.kind in {"request", "translate"} or self.what != what:
            return False
        return not dialects or self.case["source"] in dialects

    def is_rendered(self, what: str, *targets: str) -> bool:
        """Return whether a member of a request for these targets differs."""
        if self.kind not in {"request", "translate"} or self.what != what:
            return False
        return not targets or self.case["target"] in targets

    def wire(self, *words: str) -> bool:
        """Return whether the body of the case has one of the words."""
        body = str(self.case.get("input_wire", self.case.get("input_events")))
        return any(word in body for word in words)


def _begins_with_user(difference: Difference) -> bool:
    """Return whether the inserted user message is all that differs."""
    theirs = difference.theirs
    has_empty_turn = theirs[0]["content"] == [{"kind": "text", "text": ""}]
    return difference.ours[1:] == (theirs[1:] if has_empty_turn else theirs)


def _without_system(messages: list[Any], texts: list[Any]) -> list[Any]:
    """Return the messages after the system message, which llm-babel reads as the user's."""
    is_system = bool(messages) and messages[0]["content"] == texts
    return messages[1:] if is_system else messages


def _without(difference: Difference, member: str) -> list[Any]:
    """Return our tools without a member."""
    return [
        {name: found for name, found in tool.items() if name != member} for tool in difference.ours
    ]


def _texts(messages: list[Any]) -> str:
    return "".join(str(part.get("text", "")) for one in messages for part in one["content"])


Rule = tuple[str, Callable[[Difference], bool]]

_OF_ANSWERS: tuple[Rule, ...] = (
    (
        (
            "a plain stop after a call is `tool_calls`: Gemini has no other word for it "
            "(`finishReason`), and Cohere sends it by mistake"
        ),
        lambda d: d.is_of("finish reason", "gemini", "cohere") and d.ours == "tool_calls",
    ),
    (
        (
            "Gemini: `candidatesTokenCount` leaves out `thoughtsTokenCount`, and "
            "`toolUsePromptTokenCount` belongs to the prompt (`totalTokenCount` is the sum of all)"
        ),
        lambda d: d.is_of("usage", "gemini"),
    ),
    (
        "Cohere: `usage.cached_tokens` counts prompt tokens that came from the cache (recorded)",
        lambda d: d.is_of("usage", "cohere") and "cache_read_tokens" in d.ours,
    ),
    (
        (
            "Anthropic: `message_start` has the first counts, `message_delta` replaces those that "
            "it has"
        ),
        lambda d: d.is_of("usage", "anthropic-messages") and d.kind == "stream",
    ),
    (
        "reasoning tokens are a part of the output tokens and never exceed them (13 recordings)",
        lambda d: d.is_of("usage") and d.ours.get("reasoning_tokens") == d.ours["output_tokens"],
    ),
    (
        "Anthropic: a `compaction` block is not text of the answer; it goes back unchanged",
        lambda d: d.is_of("content", "anthropic-messages") and d.wire("compaction"),
    ),
    (
        "OpenAI: the text of a refusal is text of the answer, marked `refusal`",
        lambda d: d.is_of("content", "openai-chat", "openai-responses") and d.wire("refusal"),
    ),
    (
        "OpenAI Responses: a blank line separates the parts of a summary",
        lambda d: d.is_of("content", "openai-responses") and d.wire("summary_text"),
    ),
    (
        (
            "DeepSeek: `insufficient_system_resource` means that the answer was interrupted: an "
            "error, `overloaded`"
        ),
        lambda d: d.is_of("finish reason", "deepseek") and d.ours == "none",
    ),
    (
        "Mistral: the finish reason `error` is `error`",
        lambda d: d.is_of("finish reason", "mistral") and d.ours == "error",
    ),
    (
        "a numeric `error.code` is the HTTP status and no code of the provider",
        lambda d: d.is_of("provider code") and str(d.theirs).isdigit(),
    ),
    (
        "`error.code` is more specific than `error.type`, and decides",
        lambda d: d.is_of("code", "deepseek") and d.wire("invalid_request_error"),
    ),
    (
        "Google: the status `CANCELLED` is `cancelled` (google.rpc.Code)",
        lambda d: d.is_of("code", "gemini") and d.ours == "cancelled",
    ),
    (
        (
            "Bedrock: a message without a name is not evidence, and an unknown failure is "
            "`server_error`"
        ),
        lambda d: d.is_of("code", "bedrock-converse"),
    ),
)

_OF_REQUESTS: tuple[Rule, ...] = (
    (
        "OpenAI Responses: a system message stays a message (docs/requests.md, Order)",
        lambda d: (
            (d.is_rendered("system", "openai-responses") and d.ours is None)
            or (
                d.is_rendered("messages", "openai-responses")
                and _without_system(d.ours, d.ours[0]["content"]) == d.theirs
            )
        ),
    ),
    (
        "OpenAI Responses: functions are strict unless `strict` is false; elsewhere they are not",
        lambda d: d.is_rendered("tools", "openai-responses") and _without(d, "strict") == d.theirs,
    ),
    (
        "a parsed request keeps its empty texts; `repair` removes them (docs/requests.md)",
        lambda d: (
            d.is_rendered("messages")
            and d.wire("'text': ''")
            and _texts(d.ours) == _texts(d.theirs)
        ),
    ),
    (
        "two texts of a message stay two texts (docs/requests.md, Texts)",
        lambda d: (
            d.is_rendered("messages", "deepseek", "openai-chat")
            and _texts(d.ours) == _texts(d.theirs)
        ),
    ),
    (
        "Anthropic: a `compaction` block is not text of the answer; other dialects note it",
        lambda d: (
            d.is_rendered("messages") and d.wire("'compaction'") and "part_dropped" in d.notes
        ),
    ),
    (
        "Anthropic: `max_tokens` is required; deltafold's default is 4096",
        lambda d: (
            d.is_rendered("params", "anthropic-messages")
            and {**d.theirs, "max_tokens": 4096} == d.ours
        ),
    ),
    (
        (
            "a request begins with a user message; the inserted one is not empty, because "
            "providers refuse empty texts (docs/requests.md)"
        ),
        lambda d: d.is_rendered("messages") and "turn_added" in d.notes and _begins_with_user(d),
    ),
    (
        (
            "Bedrock: tool blocks need `toolConfig`; tools of earlier calls are declared "
            "(docs/requests.md)"
        ),
        lambda d: d.is_rendered("tools", "bedrock-converse") and "tool_added" in d.notes,
    ),
    (
        "a choice of tools without tools is refused; it is dropped with a note",
        lambda d: (
            d.is_rendered("tool_choice") and "setting_dropped" in d.notes and not d.wire("'tools'")
        ),
    ),
    (
        "Anthropic: a mark may not live longer than an earlier one (docs/requests.md, cache marks)",
        lambda d: d.is_rendered("messages") and "cache_mark_lowered" in d.notes,
    ),
    (
        "Bedrock has no choice `none`: the tools are left out (API reference, `ToolChoice`)",
        lambda d: d.is_rendered("tools", "bedrock-converse") and "setting_dropped" in d.notes,
    ),
    (
        (
            "OpenAI refuses `tool_choice` and `parallel_tool_calls` without tools; both are "
            "dropped with a note"
        ),
        lambda d: (
            d.is_rendered("params", "openai-chat")
            and "setting_dropped" in d.notes
            and {**d.ours, "parallel_tool_calls": d.theirs.get("parallel_tool_calls")} == d.theirs
        ),
    ),
    (
        "OpenAI refuses `tool_choice` without tools; a tool that Anthropic runs is not one there",
        lambda d: d.is_rendered("tool_choice", "openai-chat") and d.wire("memory_20250818"),
    ),
    (
        "Mistral: reasoning of earlier answers goes back (docs.mistral.ai, Reasoning)",
        lambda d: d.is_rendered("messages", "mistral") and d.wire("'thinking'"),
    ),
    (
        "reasoning without a signature is not sent to Anthropic, with a note (docs/requests.md)",
        lambda d: d.is_rendered("messages", "anthropic-messages") and "thinking_dropped" in d.notes,
    ),
    (
        (
            "OpenAI Chat: `input_audio` takes wav and mp3; other audio is a file, and its type is "
            "not changed"
        ),
        lambda d: d.is_rendered("messages", "openai-chat") and d.wire("audio/mp4"),
    ),
    (
        (
            "the API refuses a value outside of its range, and so does the parser (OpenAI, "
            "`top_p`, `frequency_penalty`)"
        ),
        lambda d: d.is_rendered("refused") and "less than or equal to" in d.ours,
    ),
    (
        (
            "the API refuses this type, and so does the parser (Google: `response` is an object; "
            "Anthropic and OpenAI: a result is a text or a list, `text` is a text)"
        ),
        lambda d: d.is_rendered("refused") and "expected, not" in d.ours,
    ),
    (
        "OpenAI sends usage only if the request asks for it (docs/requests.md)",
        lambda d: (
            d.is_rendered("provider_ext", "openai-chat")
            and d.ours == {"openai-chat": {"stream_options": {"include_usage": True}}}
        ),
    ),
    (
        "settings with a counterpart migrate (docs/requests.md, settings into another dialect)",
        lambda d: (
            (
                d.is_rendered("provider_ext")
                and d.theirs is None
                and d.case["source"] != d.case["target"]
            )
            or (d.is_rendered("params") and {**d.theirs, "top_k": d.ours.get("top_k")} == d.ours)
        ),
    ),
    (
        "DeepSeek is a vendor of openai-chat; deltafold writes the protocol's `json_schema`",
        lambda d: d.is_rendered("response_format", "deepseek"),
    ),
    (
        (
            "deltafold has no table of what single models refuse: settings and roles are sent as "
            "the caller gave them"
        ),
        lambda d: d.kind == "translate",
    ),
)

RULES: tuple[Rule, ...] = (*_OF_ANSWERS, *_OF_REQUESTS)
