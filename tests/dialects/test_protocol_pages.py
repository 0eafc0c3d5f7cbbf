"""The tables of docs/protocols/ say what the decoders and the encoders do.

In: the tables of the pages.  Out: each word of a table, decoded or written.

Laws: every row of the tables of finish reasons, token counts and error codes is walked. Finish
words and errors are walked in both directions.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias, cast

import pytest

import citations
from any_name import AnyName
from corpus import ROOT
from deltafold import Decoder, dialect_names, encode_error, target_names
from deltafold.contract.kinds import ErrorCode
from deltafold.errors.mapper import RETRYABLE
from deltafold.errors.model_error import model_error_from_fold
from judging import WORDS

PAGES: Final = ROOT / "docs" / "protocols"
INDEX: Final = (PAGES / "index.md").read_text(encoding="utf-8")
DECODING: Final = (PAGES / "decoding.md").read_text(encoding="utf-8")
ENCODING: Final = (PAGES / "encoding.md").read_text(encoding="utf-8")

Wire: TypeAlias = dict[str, Any]
Row: TypeAlias = dict[str, str]

TARGETS: Final = {"gemini-array": "gemini", "ollama-generate": "ollama"}
"""Targets that share a section with another one."""

INCOMPLETE: Final[frozenset[str]] = frozenset(
    {"max_output_tokens", "content_filter", "max_messages", "steered"}
)
"""Reasons of a response with the status `incomplete`."""

BODIES: Final[dict[str, Callable[[str], Wire]]] = {
    "Messages": lambda word: {
        "type": "message",
        "content": [{"type": "text", "text": "a"}],
        "stop_reason": word,
    },
    "Chat": lambda word: {
        "object": "chat.completion",
        "choices": [{"index": 0, "message": {"content": "a"}, "finish_reason": word}],
    },
    "Responses": lambda word: {
        "object": "response",
        "output": [{"type": "message", "content": [{"type": "output_text", "text": "a"}]}],
        "status": "incomplete" if word in INCOMPLETE else word,
        "incomplete_details": {"reason": word} if word in INCOMPLETE else None,
    },
    "Gemini": lambda word: {
        "candidates": [
            {
                "content": {"parts": [{"text": "a"}]},
                "finishReason": int(word) if word.isdigit() else word,
            }
        ]
    },
    "Interactions": lambda word: {
        "object": "interaction",
        "status": word,
        "steps": [{"type": "model_output", "content": [{"type": "text", "text": "a"}]}],
    },
    "Converse": lambda word: {
        "output": {"message": {"content": [{"text": "a"}]}},
        "stopReason": word,
    },
    "InvokeModel": lambda word: {"results": [{"outputText": "a", "completionReason": word}]},
    "Cohere": lambda word: {
        "finish_reason": word,
        "message": {"content": [{"type": "text", "text": "a"}]},
    },
    "Ollama": lambda word: {"message": {"content": "a"}, "done": True, "done_reason": word},
}
"""Whole bodies of the protocols, by the heading of their column."""

DIALECTS: Final[dict[str, AnyName]] = {
    "Messages": "anthropic-messages",
    "Chat": "openai-chat",
    "Responses": "openai-responses",
    "Gemini": "gemini",
    "Interactions": "gemini-interactions",
    "Converse": "bedrock-converse",
    "InvokeModel": "bedrock-invoke",
    "Cohere": "cohere-chat",
    "Ollama": "ollama",
    "`ai`": "ai-sdk",
}


def tables(page: str, anchor: str) -> list[list[Row]]:
    """Return the tables of a section, each row by its headings."""
    section = re.split(rf"^#+ .*\{{ #{anchor} \}}$", page, flags=re.MULTILINE)[1]
    section = re.split(r"^#", section, maxsplit=1, flags=re.MULTILINE)[0]
    found: list[list[Row]] = []
    for lines in re.findall(r"(?:^\|.*\n)+", section, re.MULTILINE):
        heads, _, *rows = [
            [cell.strip() for cell in line.strip("|").split("|")] for line in lines.splitlines()
        ]
        found.append([dict(zip(heads, row, strict=True)) for row in rows])
    return found


def words(cell: str) -> list[str]:
    """Return the words in a cell."""
    return re.findall(r"`(\w+)`", cell)


def plain(cell: str) -> str:
    """Return the only word of a cell."""
    (word,) = words(cell)
    return word


def ended(dialect: AnyName, body: Wire, *, status: int = 200) -> Wire:
    """Return the payload of the terminal of a body."""
    decoder = Decoder(dialect, status=status)
    deltas = [*decoder.feed(json.dumps(body).encode()), *decoder.close()]
    return cast("Wire", deltas[-1].to_dict()["payload"])


def of_word(protocol: str, word: str) -> Wire:
    return ended(DIALECTS[protocol], BODIES[protocol](word))


def finish_words() -> Iterator[tuple[str, str, str]]:
    for row in tables(DECODING, "finish-reasons")[0]:
        for protocol in BODIES:
            for word in words(row[protocol]):
                yield protocol, word, plain(row["contract"])


def failure_words() -> Iterator[tuple[str, str, str]]:
    for row in tables(DECODING, "finish-reasons")[1]:
        pairs = zip(words(row["word"]), words(row["error code"]), strict=True)
        yield from ((row["protocol"], word, code) for word, code in pairs)


@pytest.mark.parametrize(("protocol", "word", "reason"), list(finish_words()))
def test_a_finish_word_has_the_reason_of_its_row(protocol: str, word: str, reason: str) -> None:
    assert of_word(protocol, word)["finishReason"] == reason


@pytest.mark.parametrize(("protocol", "word", "code"), list(failure_words()))
def test_a_word_of_a_failure_has_the_code_of_its_row(protocol: str, word: str, code: str) -> None:
    assert of_word(protocol, word)["errorCode"] == code


def test_the_tables_were_walked() -> None:
    assert len(list(finish_words())) > 60
    assert len(list(failure_words())) > 7
    assert len(list(error_words())) > 60
    assert len(list(counted())) > 25


def codes() -> list[Row]:
    return tables(DECODING, "errors")[0]


def error_words() -> Iterator[tuple[str, str]]:
    for row in codes():
        code = plain(row["code"])
        yield from ((word, code) for word in words(row["words"]))


def refused(status: int, error: Wire) -> str:
    return str(ended("openai-chat", {"error": error}, status=status)["errorCode"])


USAGE_MEMBERS: Final = {"Gemini": "usageMetadata", "Ollama": "", "InvokeModel": ""}
"""Member of a whole body that holds the counts, if it is not `usage`; "" for the body itself."""

COUNTS: Final = {
    "input": "inputTokens",
    "output": "outputTokens",
    "reasoning": "reasoningTokens",
}


def counted() -> Iterator[tuple[str, str, str]]:
    for row in tables(DECODING, "usage")[0]:
        protocol = row["protocol"].partition(",")[0]
        if protocol not in BODIES:
            continue
        for column in COUNTS:
            # Behind "and" are the members that are added.
            alone = re.split(r"\band\b|;", row[column])[0]
            for path in re.findall(r"`([\w.]+)`", alone):
                yield protocol, column, path


def body_with(protocol: str, path: str, count: int) -> Wire:
    """Return a whole body of which one member is a count."""
    record: Wire = {}
    inner = record
    *outer, name = path.split(".")
    for one in outer:
        inner = inner.setdefault(one, {})
    inner[name] = count
    member = USAGE_MEMBERS.get(protocol, "usage")
    return BODIES[protocol](FINISHED[protocol]) | ({member: record} if member else record)


GENERAL_WORDS: Final = {"api_error", "server_error", "internal_server_error"}
"""Words that gateways write for a failure of any kind."""

FINISHED: Final = {
    name: next(word for protocol, word, _ in finish_words() if protocol == name) for name in BODIES
}


@pytest.mark.parametrize(("protocol", "column", "path"), list(counted()))
def test_a_count_is_read_from_the_member_of_its_row(
    protocol: AnyName, column: str, path: str
) -> None:
    decoder = Decoder(DIALECTS[protocol])
    body = json.dumps(body_with(protocol, path, 7)).encode()
    deltas = [delta.to_dict() for delta in (*decoder.feed(body), *decoder.close())]
    (usage,) = [delta["payload"] for delta in deltas if delta["kind"] == "usage"]
    assert cast("Wire", usage)[COUNTS[column]] == 7


@pytest.mark.parametrize(("word", "code"), list(error_words()))
def test_an_error_word_has_the_code_of_its_row(word: str, code: str) -> None:
    status = 500 if word in GENERAL_WORDS else 400
    assert refused(status, {"code": word, "message": "x"}) == code


@pytest.mark.parametrize("word", sorted(GENERAL_WORDS))
@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, "invalid_request"),
        (401, "authentication"),
        (403, "permission"),
        (404, "not_found"),
        (413, "invalid_request"),
        (422, "invalid_request"),
        (429, "rate_limited"),
    ],
)
def test_a_status_of_the_caller_beats_a_word_for_any_failure(
    status: int, code: str, word: str
) -> None:
    assert refused(status, {"type": word, "message": "x"}) == code
    assert refused(status, {"code": "provider_response_error", "type": word}) == code


@pytest.mark.parametrize(("status", "code"), [(500, "server_error"), (503, "overloaded")])
def test_a_failure_of_the_server_beats_a_bare_invalid_request(status: int, code: str) -> None:
    assert refused(status, {"type": "invalid_request_error", "message": "x"}) == code
    specific = {"type": "invalid_request_error", "code": "context_length_exceeded"}
    assert refused(status, specific) == "context_length_exceeded"


@pytest.mark.parametrize(
    "message",
    [
        "image input is not supported - hint: you may need to provide the mmproj",
        "Failed to parse tool call arguments as JSON: [json.exception.parse_error.101]",
        "Failed to parse messages: Missing 'role'",
    ],
)
def test_a_mistake_of_the_caller_with_status_500_is_one(message: str) -> None:
    error = {"code": 500, "type": "server_error", "message": message}
    assert refused(500, error) == "invalid_request"


@pytest.mark.parametrize("row", codes(), ids=lambda row: row["code"])
def test_an_http_status_has_the_code_of_its_row(row: Row) -> None:
    code = plain(row["code"])
    for status in re.findall(r"\d{3}", row["HTTP status"]):
        assert refused(int(status), {"message": "x"}) == code
    for hundred in re.findall(r"other (\d)xx", row["HTTP status"]):
        assert refused(int(f"{hundred}18"), {"message": "x"}) == code
    assert RETRYABLE[ErrorCode(code)] == (row["retryable"] == "yes")


def test_every_error_code_has_a_row_on_both_pages() -> None:
    known = {str(code) for code in ErrorCode}
    assert {plain(row["code"]) for row in codes()} == known
    assert {plain(row["contract"]) for row in tables(ENCODING, "errors")[0]} == known


COLUMNS: Final[dict[str, tuple[AnyName, Callable[[Wire], object]]]] = {
    "OpenAI `code`": ("openai-chat", lambda body: body["error"]["code"]),
    "Messages `type`": ("anthropic-messages", lambda body: body["error"]["type"]),
    "Gemini `status`": ("gemini", lambda body: body["error"]["status"]),
}


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("row", tables(ENCODING, "errors")[0], ids=lambda row: row["contract"])
def test_an_error_is_written_with_the_word_of_its_row(column: str, row: Row) -> None:
    target, of_body = COLUMNS[column]
    if row[column].startswith("see "):
        return
    error = model_error_from_fold(code=plain(row["contract"]), message="x", retryable=None)
    answer = encode_error(error, target)
    written = of_body(json.loads(answer.body))
    # Behind the semicolon is the word of another target.
    wanted = words(row[column].partition(";")[0])
    assert written == (wanted[0] if wanted else None)


@pytest.mark.parametrize("row", tables(ENCODING, "errors")[0], ids=lambda row: row["contract"])
def test_an_error_has_the_http_status_of_its_row(row: Row) -> None:
    # "429; Messages, Ollama 402; Converse 400": the first one is that of all other targets.
    statuses = re.findall(r"(?:(Messages|Ollama|Converse)[, ]*)?(?:\w+ )?(\d{3})", row["HTTP"])
    special = {name: int(status) for name, status in statuses if name}
    error = model_error_from_fold(code=plain(row["contract"]), message="x", retryable=None)
    for name in ("Chat", "Messages", "Converse"):
        wanted = special.get(name, int(statuses[0][1]))
        assert encode_error(error, DIALECTS[name]).status == wanted, name


@pytest.mark.parametrize(
    "row", tables(ENCODING, "finish-reasons")[0], ids=lambda row: row["contract"]
)
def test_the_written_finish_words_are_those_that_the_clients_read(row: Row) -> None:
    reason = plain(row["contract"])
    for column, target in DIALECTS.items():
        word = WORDS.get(target, {}).get(reason)
        if word is not None and column in row:
            assert word in re.split(r"[`\s:]+", row[column]), (column, word)


def test_every_dialect_has_a_page_and_every_target_a_section() -> None:
    linked = dict(re.findall(r"^\| \[`([\w-]+)`\]\(([^)]+)\) \|", INDEX, re.MULTILINE))
    assert set(linked) == set(dialect_names())
    for address in linked.values():
        page, _, anchor = address.partition("#")
        anchors = citations.anchors_of((PAGES / page).read_text(encoding="utf-8"))
        assert not anchor or anchor in anchors
    sections = citations.anchors_of(ENCODING)
    assert {TARGETS.get(name, name) for name in target_names()} <= sections
