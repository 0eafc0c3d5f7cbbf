"""`translate_request`: bytes of one protocol as bytes of another, equal to what the rules make.

In: the requests of the corpus, and generated agent sessions, whole and with faults.  Out: bodies,
notes and errors.

Law: a stencil writes what the rules would have written. Only escapes in texts may differ.
"""

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, Final, NamedTuple, cast

import pytest

import deltafold
from agent_requests import CLIENTS, Session, request_of, written
from any_name import AnyName
from corpus import CORPUS, needs_corpus
from deltafold.dialects import dialect_of
from deltafold.dialects.stencils import Stencils
from deltafold.models import translation
from deltafold.models.json_body import encoded
from samples import sampled

MODELS: Final[dict[str, str]] = {
    "anthropic-messages": "claude-sonnet-4-5",
    "openai-chat": "gpt-5-mini",
    "openai-responses": "gpt-5-mini",
    "gemini": "gemini-3-pro",
    "bedrock-converse": "anthropic.claude-sonnet-4-5-20250929-v1:0",
    "cohere-chat": "command-a",
    "mistral": "mistral-large",
    "ollama": "qwen3",
}


class Outcome(NamedTuple):
    """What becomes of a request."""

    body: object
    notes: list[Any]
    beside: object
    error: str


def _members(pairs: list[tuple[str, object]]) -> object:
    """Keep the order of members, and members that come twice."""
    return ("object", pairs)


def _outcome(body: bytes, notes: Any, *beside: object) -> Outcome:  # noqa: ANN401 - JSON
    read = json.loads(body, object_pairs_hook=_members)
    return Outcome(read, [*notes], beside, "")


def by_rules(body: bytes, source: AnyName, target: AnyName) -> Outcome:
    """Return what the public functions make of a request, one after the other."""
    try:
        parsed = deltafold.parse_request(json.loads(body), source)
        migrated = deltafold.migrate_config(parsed, target, model_id=MODELS[target])
        stream = bool(parsed.stream)
        row = dialect_of(target)
        rendered = row.render(parsed.messages, parsed.tools, migrated.config, stream=stream)
        notes = [*parsed.notes, *migrated.notes, *rendered.notes]
        path = row.request_path(migrated.config, stream=stream)
        facts = (path, stream, parsed.client_tools, rendered.tool_names, rendered.call_ids)
        return _outcome(encoded(rendered.body), notes, *facts)
    except Exception as error:  # noqa: BLE001 - any error has to be the same
        return Outcome(None, [], (), f"{type(error).__name__}: {error}")


def by_bytes(body: bytes, source: AnyName, target: AnyName) -> Outcome:
    """Return what `translate_request` makes of a request."""
    try:
        sent = deltafold.translate_request(body, source, target, model_id=MODELS[target])
        facts = (sent.path, sent.is_streamed, sent.client_tools, sent.tool_names, sent.call_ids)
        return _outcome(sent, sent.notes, *facts)
    except Exception as error:  # noqa: BLE001 - any error has to be the same
        return Outcome(None, [], (), f"{type(error).__name__}: {error}")


@pytest.fixture
def stencils(monkeypatch: pytest.MonkeyPatch) -> Stencils[Any]:
    """Return the stencils of the test alone, without those of other tests."""
    own: Stencils[Any] = Stencils()
    monkeypatch.setattr(translation, "_STENCILS", own)
    return own


def _pairs() -> Iterator[tuple[str, str]]:
    for source in CLIENTS:
        for target in MODELS:
            yield source, target


@sampled(20)
@pytest.mark.parametrize("faulty", [False, True], ids=["whole", "faulty"])
def test_a_session_is_what_the_rules_make_of_it(
    stencils: Stencils[Any], every: int, *, faulty: bool
) -> None:
    all_messages, by_stencil = 0, 0
    for number in range(0, 5_000, every):
        source, target = [*_pairs()][number % (len(CLIENTS) * len(MODELS))]
        body = request_of(number, source, faulty=faulty)
        before = stencils.written
        made = by_bytes(body, source, target)
        assert made == by_rules(body, source, target), (number, source, target)
        if target != "mistral":  # its ids have a form of their own, so that each call is renamed
            all_messages += len(json.loads(body)[CLIENTS[source][1]])
            by_stencil += stencils.written - before
    print(f"{by_stencil} of {all_messages} messages are of stencils")  # noqa: T201 - a count
    if not faulty:
        assert by_stencil / all_messages >= 0.9


@sampled(10)
@needs_corpus
@pytest.mark.parametrize("target", MODELS)
def test_a_request_of_the_corpus_is_what_the_rules_make_of_it(
    stencils: Stencils[Any], target: AnyName, every: int
) -> None:
    found: Counter[str] = Counter()
    with gzip.open(CORPUS / "requests.jsonl.gz", "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            if number % every:
                continue
            one = json.loads(line)
            body = json.dumps(one["body"]).encode()
            source = one["dialect"]
            made = by_bytes(body, source, target)
            assert made == by_rules(body, source, target), one["id"]
            found["errors" if made.error else "bodies"] += 1
    print(target, dict(found), stencils.written)  # noqa: T201 - counts
    assert found["bodies"] > 10 * found["errors"]


def test_a_history_is_a_prefix_of_the_next_request_whoever_writes_it(
    stencils: Stencils[Any],
) -> None:
    session = Session(7)
    body = CLIENTS["openai-chat"][0](session, 30)
    shown: list[list[Any]] = []
    messages = body["messages"]
    for end in range(12, len(messages) + 1):
        if messages[end - 1]["role"] != "user":
            continue
        if end % 2:  # a member of the newest message that only the rules take
            messages[end - 1]["content"] = [{"type": "text", "text": "Go on.", "unknown": 1}]
        raw = json.dumps({**body, "messages": messages[:end]}).encode()
        sent = deltafold.translate_request(
            raw, "openai-chat", "anthropic-messages", model_id="claude-sonnet-4-5"
        )
        shown.append(json.loads(sent)["messages"])
    assert len(shown) > 4
    assert stencils.written
    for earlier, later in pairwise(shown):
        assert later[: len(earlier)] == earlier


@pytest.mark.parametrize(
    ("tool", "name", "arguments"),
    [
        ({"type": "custom", "name": "apply_patch"}, "apply_patch", {"input": "+1"}),
        (
            {"type": "namespace", "name": "ns", "tools": [{"type": "function", "name": "do"}]},
            "ns__do",
            {"n": 1},
        ),
        ({"type": "tool_search", "execution": "client"}, "tool_search", {"query": "files"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_function_call_of_a_tool_with_a_form_of_its_own_has_that_form(
    stencils: Stencils[Any], tool: dict[str, object], name: str, arguments: dict[str, object]
) -> None:
    body = CLIENTS["openai-responses"][0](Session(11), 12)
    body["tools"].append(tool)
    assert _is_same_as_by_rules(body, "openai-responses", "openai-responses")
    assert stencils.written  # a declaration alone changes no other call
    for item in body["input"]:
        if item.get("type") == "function_call":
            item |= {"name": name, "arguments": json.dumps(arguments)}
    for target in MODELS:
        assert _is_same_as_by_rules(body, "openai-responses", target)


@pytest.mark.usefixtures("stencils")
@pytest.mark.parametrize("blank", [{"content": ""}, {"content": None}, {}])
def test_a_message_that_says_nothing_is_counted_in_the_places_of_notes(
    blank: dict[str, object],
) -> None:
    body = CLIENTS["openai-chat"][0](Session(12), 12)
    said: list[Any] = []
    for message in body["messages"]:
        said.append(message)
        if message["role"] == "assistant":
            said.append({"role": "assistant", **blank})
    body["messages"] = [*said, {"role": "user", "content": "Go on."}]
    for target in MODELS:
        assert _is_same_as_by_rules(body, "openai-chat", target)


@pytest.mark.usefixtures("stencils")
def test_a_cache_mark_with_an_escape_in_its_name_is_counted() -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    body = CLIENTS["anthropic-messages"][0](Session(13), 1)
    said: list[Any] = [{"role": "user", "content": "x"}]
    for _ in range(3):
        said.append({"role": "assistant", "content": "y"})
        said.append({"role": "user", "content": [{"type": "text", "text": "x", **mark}]})
    body["messages"] = [*said, {"role": "assistant", "content": "y"}, said[0]]
    body["tools"][0] |= mark | {"description": "Reads a file. " * 200}
    raw = json.dumps(body).replace("cache_control", "cache\\u005fcontrol", 1).encode()
    source = "anthropic-messages"
    made, wanted = by_bytes(raw, source, source), by_rules(raw, source, source)
    assert made == wanted
    assert [note["code"] for note in wanted.notes] == ["cache_mark_dropped"]


def test_the_time_of_a_request_grows_with_its_messages(stencils: Stencils[Any]) -> None:
    user, answer = {"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}
    odd = {"role": "user", "content": [{"type": "text", "text": "x", "unknown": 1}]}
    body = {"model": "m", "messages": [*([user, answer] * 4 + [odd, answer]) * 1_000, user]}
    raw = json.dumps(body).encode()
    deltafold.translate_request(raw, "openai-chat", "openai-chat", model_id="gpt-5-mini")
    assert not stencils.written  # a sample of all these stretches would cost more than it saves


def _is_same_as_by_rules(body: Any, source: AnyName, target: AnyName) -> bool:  # noqa: ANN401 - JSON
    raw = json.dumps(body).encode()
    return by_bytes(raw, source, target) == by_rules(raw, source, target)


def test_stencils_keep_nothing_of_a_client(stencils: Stencils[Any]) -> None:
    session = Session(3)
    body = CLIENTS["openai-chat"][0](session, 8)
    for message in body["messages"]:
        message["content"] = f"SECRET {message.get('content')}"
    raw = json.dumps(body).encode()
    deltafold.translate_request(raw, "openai-chat", "gemini", model_id="gemini-3-pro")
    assert stencils.written
    kept = repr(cast("dict[str, object]", vars(vars(stencils)["_recent"])))
    assert "read_file" in kept, "the tools are there to be seen"
    assert "SECRET" not in kept


def test_stencils_have_a_bound(stencils: Stencils[Any]) -> None:
    for number in range(600):
        session = Session(number)
        body = CLIENTS["openai-chat"][0](session, 3) | {"user": f"user {number}"}
        raw = written(session, body)
        deltafold.translate_request(raw, "openai-chat", "gemini", model_id="gemini-3-pro")
    assert len(stencils) == 256
    assert 256 * 1_000 < stencils.size < 16 << 20


def test_threads_translate_at_once(stencils: Stencils[Any]) -> None:
    bodies = [request_of(number, "openai-chat", faulty=False) for number in range(64)]
    with ThreadPoolExecutor(8) as threads:
        made = [threads.submit(by_bytes, body, "openai-chat", "gemini") for body in bodies]
        for body, outcome in zip(bodies, made, strict=True):
            assert outcome.result() == by_rules(body, "openai-chat", "gemini")
    assert stencils.written


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b"", "Expecting value"),
        (b"[]", "the body must be an object, not list"),
        (b'{"model":"m","messages":[{"role":1}]}', r"messages\[0\].role: text was expected"),
        (b'{"model":"m","messages":' + b"[" * 100_000, "nested too deeply"),
    ],
)
def test_a_wrong_body_is_an_error_that_names_it(body: bytes, error: str) -> None:
    with pytest.raises((ValueError, deltafold.MisuseError), match=error):
        deltafold.translate_request(body, "openai-chat", "gemini", model_id="gemini-3-pro")


def test_a_model_is_needed() -> None:
    with pytest.raises(deltafold.MisuseError, match="model_id="):
        deltafold.translate_request(b"{}", "openai-chat", "gemini", model_id="")


def test_a_vendor_gets_its_settings() -> None:
    body = json.dumps(CLIENTS["openai-chat"][0](Session(1), 4)).encode()
    sent = deltafold.translate_request(
        body, "openai-chat", "openai-chat", model_id="deepseek-reasoner", vendor="deepseek"
    )
    answers = [one for one in json.loads(sent)["messages"] if one["role"] == "assistant"]
    assert all(one["reasoning_content"] == "" for one in answers)
    with pytest.raises(deltafold.MisuseError, match="nobody"):
        deltafold.translate_request(
            body, "openai-chat", "openai-chat", model_id="x", vendor="nobody"
        )
