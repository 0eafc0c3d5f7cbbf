"""State belongs to a model under all of its names, in each dialect.

In: names of models; the answers of signed_answers.py.  Out: whether two names mean the same model,
and whether the secrets of an answer go back to a model under another name.
"""

import json
from itertools import pairwise

import pytest

import deltafold
from conversations import DIALECTS
from deltafold import Message, MessageAssembler, ThinkingPart
from deltafold.dialects.model_names import ModelName, canonical_model, is_state_of, same_model
from deltafold.dialects.model_table import facts_of
from deltafold.dialects.repairs.problems import ProblemCode
from deltafold.dialects.repairs.repair import check, repair
from signed_answers import SIGNED, Signed

SAME = (
    ("claude-sonnet-4-5", "claude-sonnet-4-5-20250929"),
    ("claude-sonnet-4-5", "anthropic/claude-sonnet-4-5"),
    ("claude-sonnet-4-5", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"),
    ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5@20250929"),
    ("claude-sonnet-4-5", "claude-sonnet-4-5@default"),
    ("claude-sonnet-4-5", "claude-sonnet-4-5[1m]"),
    ("claude-sonnet-4-5", "publishers/anthropic/models/claude-sonnet-4-5@20250929"),
    ("claude-sonnet-4-5", "vertex_ai/claude-sonnet-4-5"),
    ("claude-sonnet-4-5", "anthropic/claude-sonnet-4.5"),
    ("claude-sonnet-4-5", "anthropic/claude-4.5-sonnet-20250929"),
    ("claude-sonnet-4-5", "Anthropic/Claude-Sonnet-4.5:nitro"),
    ("claude-sonnet-4-0", "claude-sonnet-4-20250514"),
    ("claude-3-7-sonnet-latest", "us-gov.anthropic.claude-3-7-sonnet-20250219-v1:0"),
    ("claude-opus-4-6", "anthropic.claude-opus-4-6-v1"),
    ("claude-opus-4-6", "global.anthropic.claude-opus-4-6-v1"),
    ("claude-3-haiku-20240307", "anthropic.claude-3-haiku-20240307-v1:0:200k"),
    ("gpt-5", "gpt-5-2025-08-07"),
    ("gpt-5-20250807", "gpt-5-2025-08-07"),
    ("gpt-5.6", "gpt-5.6-sol"),
    ("openai/gpt-5.6", "gpt-5.6-sol-2026-07-09"),
    ("gpt-5-chat-latest", "gpt-5-chat-2025-10-03"),
    ("gpt-4", "gpt-4-0613"),
    ("grok-4", "grok-4-0709"),
    ("grok-4.6", "us-gov.xai.grok-4.6"),
    ("openai.gpt-oss-120b-1:0", "openai/gpt-oss-120b:exacto"),
    ("mistral-large-latest", "mistral-large-2411"),
    ("command-a", "cohere/command-a-03-2025"),
    ("gemini-3-pro", "models/gemini-3-pro"),
    ("gemini-2.0-flash", "publishers/google/models/gemini-2.0-flash-001"),
    ("gemini-2.5-flash-preview", "gemini-2.5-flash-preview-09-2025"),
    ("gemini-2.5-pro-preview", "google/gemini-2.5-pro-preview-06-05"),
    ("z-ai/glm-4.6", "z-ai/glm-4.6:free"),
    ("qwen3", "qwen3:latest"),
    ("a-model-of-next-year", "somewhere/else/a-model-of-next-year-20270101"),
    ("ft:gpt-4.1-2025-04-14:me::1", "openai/ft:gpt-4.1-2025-04-14:me::1"),
)
DIFFERENT = (
    ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5-20251001"),
    ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5-20251001"),
    ("claude-sonnet-4-5", "claude-sonnet-4"),
    ("claude-sonnet-4-5", "claude-haiku-4-5"),
    ("claude-opus-4-6", "claude-opus-4-6-fast"),
    ("claude-fable-5", "claude-fable-5-1"),
    ("anthropic.claude-v2", "anthropic.claude-v1"),
    ("gpt-5", "gpt-5-mini"),
    ("gpt-5", "gpt-5-pro"),
    ("gpt-5", "gpt-5-codex"),
    ("gpt-5", "gpt-5.1"),
    ("gpt-5-2025-08-07", "gpt-5-2025-10-06"),
    ("gpt-5.6-sol", "gpt-5.6-terra"),
    ("gpt-5.6", "gpt-5.6-terra"),
    ("gpt-4.1-2025-04-14", "ft:gpt-4.1-2025-04-14:me::1"),
    ("ft:gpt-4.1-2025-04-14:me::1", "ft:gpt-4.1-2025-04-14:me::2"),
    ("gemini-3-pro", "gemini-3-pro-preview"),
    ("gemini-2.0-flash-001", "gemini-2.0-flash-002"),
    ("gemini-2.5-flash-preview-05-20", "gemini-2.5-flash-preview-09-2025"),
    ("mistral-large-2407", "mistral-large-2411"),
    ("deepseek-v2", "deepseek-v3"),
    ("qwen3:8b", "qwen3:32b"),
    ("qwen3-4096", "qwen3"),
    ("fast", "slow"),
    ("", "-latest"),
    ("@20250929", "-20250929"),
    ("ft:", "ft:x"),
)


@pytest.mark.parametrize("pair", SAME, ids=" = ".join)
def test_names_of_one_model_are_the_same(pair: tuple[str, str]) -> None:
    assert same_model(*pair)
    assert same_model(*reversed(pair))


@pytest.mark.parametrize("pair", DIFFERENT, ids=" / ".join)
def test_names_of_two_models_differ(pair: tuple[str, str]) -> None:
    assert not same_model(*pair)
    assert not same_model(*reversed(pair))


def test_an_alias_is_each_snapshot_and_two_snapshots_stay_different() -> None:
    alias, one, other = "gpt-4o", "gpt-4o-2024-08-06", "gpt-4o-2024-11-20"
    assert same_model(alias, one)
    assert same_model(alias, other)
    assert not same_model(one, other)


def test_a_name_is_taken_apart() -> None:
    profile = "arn:aws:bedrock:us-east-1:1:inference-profile"
    name = f"{profile}/us.anthropic.claude-opus-4-1-20250805-v1:0"
    assert canonical_model(name) == ModelName("claude-opus-4-1", "20250805")


HOSTILE = (
    "",
    "/",
    "//",
    ":",
    "::",
    "@",
    "-latest",
    "\0",
    "\u017f" * 40,
    "é" * 100_000,
    "-" * 100_000,
    "claude-9-" * 20_000,
    "1." * 50_000,
    "a." * 250,
    "[1" * 250,
    "-20250101" * 55,
    "claude-1-1-1" * 40,
)


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_name_means_itself(name: str) -> None:
    assert same_model(name, name)
    assert not same_model(name, "claude-sonnet-4-5")
    assert not same_model(name, f"{name}x")


def test_state_without_a_model_belongs_to_every_model() -> None:
    assert is_state_of({"dialect": "gemini", "data": {}}, "gemini-3-pro")
    assert is_state_of({"dialect": "gemini", "modelId": "", "data": {}}, "gemini-3-pro")
    for odd in (None, 1, ["gemini-3-pro"]):
        assert not is_state_of({"dialect": "gemini", "modelId": odd, "data": {}}, "gemini-3-pro")


def test_spellings_of_claude_are_known() -> None:
    spelled = [facts_of(name) for name in ("anthropic/claude-sonnet-4.5", "claude-sonnet-4-5")]
    assert spelled[0] is spelled[1] is not None


every_signed = pytest.mark.parametrize("answer", SIGNED, ids=lambda answer: answer.name)
both_ways = pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])


def test_every_dialect_with_secrets_has_an_answer() -> None:
    # Ollama wants nothing back.
    assert {answer.dialect for answer in SIGNED} == {*DIALECTS} - {"ollama"}


@every_signed
@both_ways
def test_secrets_go_back_to_their_model_under_each_name(answer: Signed, *, stream: bool) -> None:
    message = answer.fold(stream=stream)
    for name in (answer.reported, *answer.aliases):
        body = answer.next_body(message, name)
        assert [secret for secret in answer.secrets if secret not in body] == [], name


@every_signed
@both_ways
def test_secrets_go_to_no_other_model(answer: Signed, *, stream: bool) -> None:
    message = answer.fold(stream=stream)
    for name in answer.others:
        body = answer.next_body(message, name)
        assert [secret for secret in answer.secrets if secret in body] == [], name


@every_signed
@both_ways
def test_secrets_of_an_alias_go_back_to_its_snapshot(answer: Signed, *, stream: bool) -> None:
    for name in answer.aliases:
        body = answer.body(stream=stream)
        message = deltafold.fold(body, answer.dialect, model_id=name)
        sent = answer.next_body(message, answer.reported)
        assert [secret for secret in answer.secrets if secret not in sent] == [], name


@pytest.mark.parametrize("answer", SIGNED, ids=lambda answer: answer.name)
def test_the_history_of_an_alias_has_no_foreign_thinking(answer: Signed) -> None:
    message = answer.fold(stream=True)
    if not any(part.provider_state for part in message.parts if isinstance(part, ThinkingPart)):
        return
    history = answer.next_history(message)
    for name in answer.aliases:
        report = check(history, answer.dialect, model_id=name)
        assert ProblemCode.FOREIGN_THINKING not in report.codes, name
        assert repair(history, answer.dialect, model_id=name)[0] == history
    if answer.dialect in {"anthropic-messages", "bedrock-converse"}:
        found = check(history, answer.dialect, model_id=answer.others[-1])
        assert ProblemCode.FOREIGN_THINKING in found.codes


def test_a_caller_is_kept_beside_its_program_for_the_alias() -> None:
    program = {"type": "program", "id": "prog_1", "call_id": "cp_1", "fingerprint": "f"}
    call = {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "call_1",
        "name": "find",
        "arguments": "{}",
        "status": "completed",
        "caller": {"type": "program", "caller_id": "cp_1"},
    }
    head = {"id": "resp_1", "object": "response", "model": "gpt-5.6-sol", "status": "completed"}
    body = json.dumps({**head, "output": [program, call]}).encode()
    message = deltafold.fold(body, "openai-responses")
    by_name = [SIGNED[1].next_body(message, name) for name in ("gpt-5.6-sol", "gpt-5.6")]
    assert '"caller"' in by_name[0]
    for one, other in pairwise(by_name):
        assert json.loads(one)["input"] == json.loads(other)["input"]


def test_a_message_of_an_official_client_keeps_its_signature() -> None:
    # An official client reports the snapshot, and its caller asks for the alias again.
    answer = SIGNED[0]
    assembler = MessageAssembler()
    for batch in deltafold.stream([answer.body(stream=True)], answer.dialect).batches():
        assembler.consume(batch)
    message = Message.from_json(assembler.build_final_message().to_json())
    assert '"SIGNATURE"' in answer.next_body(message, "claude-sonnet-4-5")
