"""Content of one protocol in another one: the form that each rule of rendering gives it.

In: the smallest body that shows a rule.  Out: a piece of the body of another dialect, and the codes
of the notes.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import pytest

from any_name import AnyName
from conversations import MODELS
from deltafold import Message, Rendered, TextPart, parse_request
from deltafold.dialects import dialect_of
from normal_form import normal
from wire_bodies import BODIES
from wire_contents import CONTENTS, PNG


def rendered_in(target: str, source: AnyName, body: Mapping[str, Any]) -> Rendered:
    request = parse_request(body, source, model_id="m")
    row = dialect_of(target)
    config = row.config_class.model_validate({"model_id": MODELS[target]})
    return row.render(request.messages, request.tools, config)


def values_in(value: object) -> Iterator[object]:
    yield value
    if isinstance(value, dict):
        for member in cast("dict[str, object]", value).values():
            yield from values_in(member)
    elif isinstance(value, list):
        for item in cast("list[object]", value):
            yield from values_in(item)


def codes_of(rendered: Rendered) -> set[object]:
    return {note["code"] for note in rendered.notes}


PDF_BLOCK = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}
PDF_AT = "https://example.com/report.pdf"

FORMS: list[tuple[str, str, str, str, object, set[str]]] = [
    # Base64 in the alphabet for addresses is for Gemini only.
    (
        "gemini",
        "user",
        "image-url-safe",
        "openai-chat",
        {"url": "data:image/jpeg;base64,/9j/4AAQ"},
        set(),
    ),
    ("gemini", "user", "image-url-safe", "bedrock-converse", {"bytes": "/9j/4AAQ"}, set()),
    (
        "gemini",
        "result",
        "image-url-safe",
        "mistral",
        "data:image/jpeg;base64,/9j/4AAQ",
        {"member_dropped"},
    ),
    # A document's address is not a video's.
    (
        "gemini",
        "user",
        "video-url",
        "anthropic-messages",
        "[https://youtu.be/1 left out: it cannot be sent here]",
        {"part_replaced"},
    ),
    (
        "gemini",
        "user",
        "video-url",
        "mistral",
        "[https://youtu.be/1 left out: it cannot be sent here]",
        {"part_replaced"},
    ),
    # A medium whose form has further members is a medium all the same.
    (
        "anthropic-messages",
        "user",
        "document-url",
        "openai-responses",
        {"type": "input_file", "file_url": PDF_AT},
        {"member_dropped"},
    ),
    (
        "anthropic-messages",
        "result",
        "document-file",
        "openai-chat",
        {"type": "file", "file": {"file_id": "file_1"}},
        {"member_dropped", "part_moved"},
    ),
    ("mistral", "user", "document-url", "anthropic-messages", PDF_AT, {"member_dropped"}),
    (
        "mistral",
        "user",
        "audio-url",
        "gemini",
        {"mimeType": "audio/mpeg", "fileUri": "https://example.com/a.mp3"},
        set(),
    ),
    ("mistral", "user", "audio-object", "openai-chat", {"data": "SUQz", "format": "mp3"}, set()),
    ("openai-chat", "user", "file-unnamed", "anthropic-messages", PDF_BLOCK, set()),
    ("openai-chat", "user", "file-id", "openai-responses", "file-1", set()),
    ("openai-chat", "user", "file-url", "openai-responses", PDF_AT, set()),
    (
        "openai-chat",
        "user",
        "audio-flac",
        "gemini",
        {"mimeType": "audio/flac", "data": "ZkxhQw=="},
        set(),
    ),
    (
        "openai-chat",
        "user",
        "video",
        "gemini",
        {"mimeType": "video/mp4", "fileUri": "https://example.com/cat.mp4"},
        set(),
    ),
    (
        "openai-responses",
        "user",
        "audio",
        "openai-chat",
        {"data": "UklGRg==", "format": "wav"},
        set(),
    ),
    ("openai-responses", "user", "file-id-named", "openai-chat", {"file_id": "file-1"}, set()),
    (
        "bedrock-converse",
        "user",
        "document-text",
        "anthropic-messages",
        {"type": "text", "media_type": "text/plain", "data": "The sky is grey."},
        set(),
    ),
    ("bedrock-converse", "user", "document-cited", "anthropic-messages", PDF_BLOCK, set()),
    (
        "bedrock-converse",
        "user",
        "audio",
        "gemini",
        {"mimeType": "audio/wav", "data": "UklGRg=="},
        set(),
    ),
    (
        "openai-chat",
        "assistant",
        "images",
        "gemini",
        {"mimeType": "image/png", "data": PNG},
        set(),
    ),
    # An image in no form that the API takes.
    (
        "ollama",
        "user",
        "image-of-no-type",
        "anthropic-messages",
        "[image/* left out: it cannot be sent here]",
        {"part_replaced"},
    ),
    # A block in a result is sent or noted, like a block beside it.
    ("cohere-chat", "result", "document", "openai-chat", '{"sky": "grey"}', set()),
    ("openai-chat", "result", "unknown", "anthropic-messages", "call00001", {"part_dropped"}),
    ("openai-responses", "result", "unknown", "gemini", "c", {"part_dropped"}),
    ("mistral", "result", "reference", "openai-chat", "call00001", {"part_dropped"}),
    # A block without a text leaves no empty text.
    ("openai-chat", "user", "unknown", "openai-responses", "See:", {"part_dropped"}),
    ("anthropic-messages", "user", "container-upload", "openai-chat", "See:", {"part_dropped"}),
    # Two texts in a result keep their border.
    ("mistral", "result", "texts", "ollama", "Grey\n\n.", set()),
    ("anthropic-messages", "result", "texts", "gemini", {"output": "Grey\n\n."}, set()),
    (
        "openai-chat",
        "result",
        "texts",
        "openai-responses",
        [{"type": "input_text", "text": "Grey"}, {"type": "input_text", "text": "."}],
        set(),
    ),
]


@pytest.mark.parametrize(("source", "place", "kind", "target", "piece", "notes"), FORMS)
def test_a_content_has_the_form_of_the_other_dialect(
    source: str, place: str, kind: str, target: str, piece: object, notes: set[str]
) -> None:
    body = BODIES[source](place, CONTENTS[source][place][kind])
    rendered = rendered_in(target, source, body)
    assert piece in list(values_in(rendered.body)), json.dumps(rendered.body)
    assert codes_of(rendered) - {"tool_added", "part_moved"} == notes - {"part_moved"}


NOVEL = {"type": "novel", "text": "Grey.", "score": 0.3}
NOVELS: Mapping[str, object] = {
    "anthropic-messages": {"content": [NOVEL]},
    "bedrock-converse": [{"novel": {"text": "Grey.", "score": 0.3}}],
    "cohere-chat": [NOVEL],
    "mistral": [NOVEL],
    "openai-chat": [NOVEL],
    "openai-responses": [NOVEL],
}


@pytest.mark.parametrize("dialect", NOVELS)
def test_an_unknown_content_with_text_in_a_result_is_noted(dialect: AnyName) -> None:
    """Another dialect sends its text alone, so that the note is the only sign of the rest."""
    body = BODIES[dialect]("result", NOVELS[dialect])
    request = parse_request(body, dialect, model_id="m")
    assert [note["code"] for note in request.notes] == ["unknown_member"]
    target = "openai-chat" if dialect != "openai-chat" else "ollama"
    assert "Grey." in list(values_in(rendered_in(target, dialect, body).body))
    assert NOVEL["score"] in list(values_in(rendered_in(dialect, dialect, body).body))


SCHEMAS = [
    ({"type": "STRING", "nullable": True}, {"type": ["string", "null"]}),
    (
        {"type": "STRING", "nullable": True, "enum": ["a"]},
        {"type": ["string", "null"], "enum": ["a", None]},
    ),
    ({"type": 5, "items": {"type": 3}}, {"type": "array", "items": {"type": "integer"}}),
    ({"type": "ARRAY", "minItems": "1"}, {"type": "array", "minItems": 1}),
]


@pytest.mark.parametrize(("own", "json_schema"), SCHEMAS)
def test_a_schema_of_gemini_becomes_json_schema(own: object, json_schema: object) -> None:
    parameters = {"type": "OBJECT", "properties": {"type": own}}
    declaration = {"name": "f", "parameters": parameters}
    body = {"contents": [], "tools": [{"functionDeclarations": [declaration]}]}
    request = parse_request(body, "gemini")
    assert request.tools[0].parameter_schema["properties"] == {"type": json_schema}
    again = dialect_of("gemini").render(
        [], request.tools, dialect_of("gemini").config_class.model_validate({"model_id": "m"})
    )
    assert again.body["tools"][0]["functionDeclarations"] == [declaration]


def test_reasoning_under_two_names_is_reasoning_twice() -> None:
    said: Sequence[Mapping[str, object]] = [
        {"role": "user", "content": "Hello."},
        {"role": "assistant", "content": "A", "reasoning_content": "I see."},
        {"role": "user", "content": "Go on."},
        {"role": "assistant", "content": "B", "reasoning": "I see more."},
        {"role": "user", "content": "Go on."},
    ]
    body = {"model": "m", "messages": said}
    rendered = rendered_in("anthropic-messages", "openai-chat", body)
    assert [note["code"] for note in rendered.notes] == ["thinking_dropped"] * 2
    request = parse_request(body, "openai-chat")
    row = dialect_of("openai-chat")
    config = row.config_class.model_validate(request.config)
    home = row.render(request.messages, request.tools, config, stream=False)
    assert normal("openai-chat", home.body) == normal("openai-chat", body)


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("QQ", "QQ=="),
        ("QUI", "QUI="),
        ("QUJD", "QUJD"),
        ("Q-_", "Q+/="),
        ("QQ==", "QQ=="),
        # This is not base64, and the lines differ in length.
        ("JVBER", "JVBER"),
        ("QUJDRA==\nQQ", "QUJDRA==\nQQ"),
    ],
)
def test_base64_gets_its_alphabet_and_padding(given: str, sent: str) -> None:
    image = {"inlineData": {"mimeType": "image/png", "data": given}}
    body = {"contents": [{"role": "user", "parts": [image]}]}
    assert {"bytes": sent} in values_in(rendered_in("bedrock-converse", "gemini", body).body)


@pytest.mark.parametrize(
    ("value", "shown"),
    [("22C sunny", "22C sunny"), ({"sky": "grey"}, '{"sky":"grey"}'), ([1], "[1]")],
)
def test_the_json_of_a_result_is_text_elsewhere(value: object, shown: str) -> None:
    use: dict[str, Any] = {"toolUse": {"toolUseId": "a", "name": "f", "input": {}}}
    result = {"toolResult": {"toolUseId": "a", "content": [{"json": value}]}}
    body: dict[str, Any] = {
        "messages": [
            {"role": "user", "content": [{"text": "Hello"}]},
            {"role": "assistant", "content": [use]},
            {"role": "user", "content": [result]},
        ]
    }
    assert shown in values_in(rendered_in("openai-chat", "bedrock-converse", body).body)


def test_only_texts_that_citations_split_are_joined() -> None:
    cited: list[object] = [{"type": "char_location", "cited_text": "x"}]
    pieces = [
        TextPart(text="One "),
        TextPart(text="two", annotations=cited),
        TextPart(text=" three."),
        TextPart(text="Four."),
    ]
    row = dialect_of("openai-chat")
    config = row.config_class.model_validate({"model_id": "m"})
    rendered = row.render([Message.user("Hello"), Message.assistant(*pieces)], [], config)
    assert {"type": "text", "text": "One two three."} in values_in(rendered.body)
    assert {"type": "text", "text": "Four."} in values_in(rendered.body)


SIGNED = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}


@pytest.mark.parametrize(("parsed_for", "kept"), [(None, True), ("m", True), ("other", False)])
def test_state_of_a_body_without_a_model_goes_to_every_model(
    parsed_for: str | None, kept: bool
) -> None:
    body = {
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [SIGNED, {"type": "text", "text": "ho"}]},
        ]
    }
    row = dialect_of("anthropic-messages")
    request = parse_request(body, row.name, model_id=parsed_for)
    rendered = row.render(request.messages, (), row.config_class.model_validate({"model_id": "m"}))
    sent: Any = rendered.body["messages"]
    assert (SIGNED in sent[1]["content"]) is kept
    assert codes_of(rendered) == (set() if kept else {"thinking_dropped"})


def test_an_unknown_member_beside_results_is_sent_home() -> None:
    result = {"type": "tool_result", "tool_use_id": "c", "content": "21 C"}
    given = {"role": "user", "content": [result], "turn": 3}
    row = dialect_of("anthropic-messages")
    request = parse_request({"messages": [given]}, row.name, model_id="m")
    rendered = row.render(request.messages, (), row.config_class.model_validate({"model_id": "m"}))
    sent: Any = rendered.body["messages"]
    assert sent == [given]


def test_an_unknown_member_of_a_source_is_sent_home() -> None:
    source = {"type": "url", "url": "https://example.org/a.png", "region": "eu"}
    given = {"role": "user", "content": [{"type": "image", "source": source}]}
    row = dialect_of("anthropic-messages")
    request = parse_request({"messages": [given]}, row.name, model_id="m")
    rendered = row.render(request.messages, (), row.config_class.model_validate({"model_id": "m"}))
    assert rendered.body["messages"] == [given]
