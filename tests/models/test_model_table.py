"""The table of models: each name of the SDKs is in it, and its facts are those of the models.

In: the names of `tests/fixtures/models/names.txt`, which were in the literals of the SDKs and in
litellm's list of Mistral, Cohere and Bedrock when the table was built.  Out: their facts.
"""

import subprocess
import sys
import zlib
from typing import Final

import pytest

from corpus import ROOT
from deltafold.dialects import DIALECTS
from deltafold.dialects.model_lines import ModelLine, line_of
from deltafold.dialects.model_table import (
    ModelFacts,
    every_model,
    facts_of,
    newest_older,
    table_sources,
)
from deltafold.dialects.portable import PORTABLE
from deltafold.dialects.reasoning import EFFORTS

TABLE: Final = ROOT / "python" / "deltafold" / "dialects" / "model_table.json"
NAMES: Final = ROOT / "tests" / "fixtures" / "models" / "names.txt"

CONDITIONS: Final = {"always", "never", "effort_none", "unless_thinking"}


def sections() -> dict[str, list[str]]:
    """Return the names of each source."""
    found: dict[str, list[str]] = {}
    for section in NAMES.read_text(encoding="utf-8").split("# ")[1:]:
        title, *names = section.splitlines()
        found[title] = names
    return found


def known(name: str) -> ModelFacts:
    """Return the facts of a name that is in the table."""
    facts = facts_of(name)
    assert facts is not None
    return facts


@pytest.mark.parametrize("section", sections())
def test_every_name_of_a_source_is_known(section: str) -> None:
    names = sections()[section]
    assert names
    assert [name for name in names if facts_of(name) is None] == []


def test_the_chat_models_of_each_host_are_chat_models() -> None:
    hosts = [names for title, names in sections().items() if title.startswith("litellm")]
    kinds = {known(name).kind for names in hosts for name in names}
    assert kinds == {"chat"}


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("anthropic/claude-opus-4.8", "claude-opus-4-8"),
        ("claude-opus-4-6[1m]", "claude-opus-4-6"),
        ("openai/gpt-oss-120b:free", "gpt-oss-120b"),
        ("arn:aws:bedrock:r:1:x/global.anthropic.claude-opus-5-5", "claude-opus-5-5"),
        ("gpt-5.6", "gpt-5.6-sol"),
        ("gpt-5-2025-08-07", "gpt-5"),
        ("gpt-4o-2024-05-13", "gpt-4o@20240513"),
        ("ft:gpt-4.1-2025-04-14:me::1", "gpt-4.1"),
        ("openai/ft:gpt-4.1-mini-2025-04-14:me::1", "gpt-4.1-mini"),
        ("models/gemini-3.8-flash", "gemini-3.8-flash"),
        ("us-gov.xai.grok-4.6", "grok-4.6"),
    ],
)  # fmt: skip
def test_a_name_has_the_row_of_its_model(name: str, row: str) -> None:
    assert known(name).name == row


@pytest.mark.parametrize("name", ["", "a-model", "ft:", "ft:a:b", "@", "gpt", "é" * 100_000])
def test_a_name_of_no_model_is_unknown(name: str) -> None:
    assert facts_of(name) is None
    assert newest_older(name) is None


def test_a_snapshot_keeps_the_limit_in_which_it_differs() -> None:
    assert known("gpt-4o").max_output_tokens == 16_384
    assert known("gpt-4o-2024-05-13").max_output_tokens == 4_096


@pytest.mark.parametrize(
    ("name", "condition"),
    [
        ("gpt-5.6-terra", "effort_none"),
        ("gpt-6-sol", "effort_none"),
        ("gpt-6.1-sol", "never"),
        ("gpt-5.4", "unless_effort"),
        ("gpt-5.2", "always"),
        ("gpt-4.1", "always"),
    ],
)
def test_function_tools_on_chat_completions(name: str, condition: str) -> None:
    assert known(name).endpoints == ("openai-chat", "openai-responses")
    assert known(name).chat_tools == condition


@pytest.mark.parametrize(
    "name", ["gpt-5-codex", "gpt-5.1-codex", "gpt-5-pro", "gpt-5.5-pro", "o3-pro"]
)
def test_models_without_a_chat_endpoint(name: str) -> None:
    assert known(name).endpoints == ("openai-responses",)
    assert known(name).chat_tools is None


@pytest.mark.parametrize(
    ("name", "api", "efforts"),
    [
        ("gpt-5-mini", "openai-chat", "minimal low medium high"),
        ("gpt-4.1", "openai-chat", ""),
        ("gpt-5-pro", "openai-responses", "high"),
        ("gpt-5.2", "openai-chat", "none low medium high xhigh"),
        ("gpt-6-sol", "openai-responses", "none low medium high xhigh max"),
        ("gpt-6-sol", "openai-chat", "none low medium high xhigh"),
        ("gpt-6.1-sol", "openai-responses", "low medium high xhigh max"),
        ("o4-mini", "openai-chat", "low medium high"),
        ("claude-opus-4-5", "anthropic-messages", "low medium high"),
        ("claude-opus-4-6", "anthropic-messages", "low medium high max"),
        ("claude-sonnet-5", "anthropic-messages", "low medium high xhigh max"),
        ("claude-haiku-4-5", "anthropic-messages", ""),
        ("gemini-3.8-flash", "gemini", "low medium high"),
        ("gemini-2.5-pro", "gemini", ""),
        ("grok-4.5", "openai-chat", "low medium high"),
        ("grok-4.3", "openai-responses", "none low medium high"),
        ("mistral-medium-latest", "mistral", "none high"),
        ("deepseek-v4-pro", "openai-chat", "low high max"),
        ("kimi-k3", "openai-chat", "low high max"),
        ("glm-5.3", "openai-chat", "low high max"),
        ("openai/gpt-oss-120b", "openai-chat", "low medium high"),
    ],
)
def test_efforts_of_an_api(name: str, api: str, efforts: str) -> None:
    assert (known(name).efforts or {})[api] == tuple(efforts.split())


@pytest.mark.parametrize(
    ("name", "thinking", "off"),
    [
        ("claude-sonnet-5", "default", "disabled"),
        ("claude-opus-5", "default", "disabled"),
        ("claude-opus-5-5", "always", None),
        ("claude-fable-5", "always", None),
        ("claude-sonnet-5-5", "default", "between_tools"),
        ("claude-opus-4-8", "optional", "disabled"),
        ("claude-3-5-sonnet-20241022", "never", None),
        ("gpt-5.4", "optional", "effort_none"),
        ("gpt-5.6-sol", "default", "effort_none"),
        ("gpt-5-mini", "always", None),
        ("gpt-4.1", "never", None),
        ("gemini-2.5-flash", "default", "budget_zero"),
        ("gemini-2.5-pro", "always", None),
        ("kimi-k2.6", "default", "disabled"),
    ],
)
def test_how_thinking_is_stopped(name: str, thinking: str, off: str | None) -> None:
    assert (known(name).thinking, known(name).thinking_off) == (thinking, off)


def test_thinking_of_claude_by_generation() -> None:
    forms = [known(f"claude-opus-{version}").thinking_forms for version in ("4-5", "4-6", "4-7")]
    assert forms == [("budget",), ("adaptive", "budget"), ("adaptive",)]
    assert known("claude-opus-5").efforts_when_off == ("low", "medium", "high")
    assert known("claude-sonnet-5").efforts_when_off is None


@pytest.mark.parametrize(
    ("name", "condition"),
    [
        ("claude-fable-5", "always"),
        ("claude-fable-5-1", "never"),
        ("claude-mythos-5-1", "never"),
        ("claude-opus-5", "always"),
        ("claude-opus-5-5", "never"),
        ("claude-sonnet-5-5", "never"),
        ("claude-haiku-5-5", "always"),
        ("claude-haiku-4-5", "unless_thinking"),
        ("deepseek-v4-pro", "unless_thinking"),
        ("kimi-k3", "never"),
    ],
)
def test_forced_tools(name: str, condition: str) -> None:
    assert known(name).forced_tools == condition


@pytest.mark.parametrize(
    ("name", "setting", "condition"),
    [
        ("gpt-5.2", "temperature", "effort_none"),
        ("gpt-5-mini", "temperature", "never"),
        ("gpt-5-mini", "stop_sequences", "never"),
        ("gpt-4.1", "stop_sequences", "always"),
        ("gpt-5.4", "logprobs", "effort_none"),
        ("claude-opus-4-6", "temperature", "unless_thinking"),
        ("claude-opus-4-7", "top_p", "never"),
        ("gemini-3.8-flash", "temperature", "never"),
        ("grok-4.5", "stop_sequences", "never"),
        ("kimi-k2.6", "temperature", "never"),
    ],
)
def test_settings_of_sampling(name: str, setting: str, condition: str) -> None:
    assert (known(name).sampling or {})[setting] == condition


def test_histories_that_a_claude_model_takes() -> None:
    late = {name: known(name).late_system for name in ("claude-sonnet-5", "claude-opus-5")}
    assert late == {"claude-sonnet-5": False, "claude-opus-5": True}
    prefill = [known(name).prefill for name in ("claude-haiku-4-5", "claude-opus-4-6")]
    assert prefill == [True, False]
    binding = ("claude-fable-5", "claude-fable-5-1", "claude-mythos-5-1", "claude-opus-5-5")
    assert [known(name).binds_thinking for name in binding] == [False, True, False, True]


def test_limits() -> None:
    assert known("claude-opus-5").max_output_tokens == 128_000
    assert known("claude-opus-5").context_window == 1_000_000
    assert known("gpt-5.6-sol").context_window == 1_050_000
    assert known("gpt-5-pro").max_output_tokens == 272_000
    shared = ("claude-sonnet-4-20250514", "claude-sonnet-4-5")
    assert [known(name).fits_window for name in shared] == [True, False]
    assert known("claude-opus-4-1").max_unstreamed_tokens == 8_192


def test_retirement_and_successor() -> None:
    facts = known("gpt-5-mini")
    assert (facts.retired, facts.successor) == ("2026-12-11", "gpt-5.6-terra")
    assert known("claude-mythos-preview").retired == "2026-06-30"
    assert known("gpt-5.6-terra").retired is None


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("text-embedding-3-small", "embedding"),
        ("gpt-image-2", "image"),
        ("whisper-1", "transcription"),
        ("gpt-realtime-2", "realtime"),
        ("omni-moderation-latest", "moderation"),
        ("grok-imagine-video", "video"),
        ("gemini-3.8-flash-tts", "speech"),
        ("lyria-3.5", "music"),
        ("gpt-audio-mini", "chat"),
    ],
)
def test_models_of_other_tasks_have_their_kind(name: str, kind: str) -> None:
    facts = known(name)
    assert facts.kind == kind
    assert facts.is_established is (kind == "chat" and facts.thinking is not None)


@pytest.mark.parametrize(
    ("name", "older"),
    [
        ("gpt-6.4-sol", "gpt-6.1-sol"),
        ("openai/gpt-6.4-sol-2027-03-01", "gpt-6.1-sol"),
        ("gpt-7", "gpt-5.5"),
        ("gpt-7-mini", "gpt-5.4-mini"),
        ("gpt-7-nova", "gpt-6.1-sol"),
        ("o5-mini", "o4-mini"),
        ("claude-opus-6", "claude-opus-5-5"),
        ("us.anthropic.claude-haiku-6-v1:0", "claude-haiku-5-5"),
        ("claude-zenith-6", "claude-opus-5-5"),
        ("claude-next", "claude-opus-5-5"),
        ("gemini-4-pro", "gemini-3.1-pro-preview"),
        ("gemini-5-flash-preview", "gemini-3.8-flash"),
        ("grok-6", "grok-4.7"),
        ("mistral-large-5", "mistral-large-4"),
        ("deepseek-v5-pro", "deepseek-v4-pro"),
        ("kimi-k4", "kimi-k3.1"),
        ("glm-6", "glm-5.3"),
        ("llama-9", None),
        ("gpt-7-realtime", None),
        ("gpt-image-9", None),
        ("nova-7-lite", None),
        ("a-model-7", None),
        ("claude-haiku-1", None),
        ("claude-v2", None),
        ("claude-2.1", None),
        ("claude-instant-1", None),
        ("gemini-2.5-flash-preview-05-20", "gemini-2.5-flash"),
    ],
)
def test_the_newest_older_member_of_a_line(name: str, older: str | None) -> None:
    assert newest_older(name) == older


def test_a_name_that_only_a_literal_has_says_nothing_of_the_model() -> None:
    facts = known("gpt-6.2-sol")
    assert not facts.is_established
    told = (facts.thinking, facts.efforts, facts.sampling, facts.forced_tools, facts.tools)
    assert told == (None,) * 5
    assert newest_older("gpt-6.2-sol") == "gpt-6.1-sol"


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("gpt-6.1-sol", ModelLine("gpt", "sol", (6, 1))),
        ("claude-opus-4-8", ModelLine("claude", "opus", (4, 8))),
        ("gemini-3.1-flash-lite", ModelLine("gemini", "flash-lite", (3, 1))),
        ("gemini-3.1-pro-preview", ModelLine("gemini", "pro", (3, 1))),
        ("o4-mini", ModelLine("o", "mini", (4, 0))),
        ("grok-4.20", ModelLine("grok", "", (4, 2))),
        ("grok-4-1-fast", ModelLine("grok", "fast", (4, 1))),
        ("mistral-large-4-0", ModelLine("mistral", "large", (4, 0))),
        ("gpt-4o", None),
        ("gpt-oss-120b", None),
        ("text-embedding-3-small", None),
    ],
)
def test_the_line_in_a_name(name: str, line: ModelLine | None) -> None:
    assert line_of(name) == line


def test_facts_are_words_of_the_project() -> None:
    rows = list(every_model())
    assert {api for row in rows for api in row.endpoints or ()} <= {*DIALECTS}
    for row in rows:
        assert {*(row.efforts or {})} <= {*(row.endpoints or ())}
        for words in (*(row.efforts or {}).values(), row.efforts_when_off or ()):
            assert list(words) == sorted(words, key=EFFORTS.index)
        assert {*(row.sampling or {})} <= {*PORTABLE}
        assert {*(row.sampling or {}).values()} <= CONDITIONS
        assert row.forced_tools in {None, *CONDITIONS}
        assert row.chat_tools in {None, "always", "unless_effort", "effort_none", "never"}
        assert row.thinking in {None, "never", "optional", "default", "always"}
        assert row.thinking_off in {None, "disabled", "between_tools", "effort_none", "budget_zero"}
        assert {*(row.thinking_forms or ())} <= {"adaptive", "budget", "effort", "level"}


def test_every_successor_that_chats_is_in_the_table() -> None:
    named = {row.successor for row in every_model() if row.successor}
    assert named
    assert [name for name in named if facts_of(name) is None] == []


def test_the_table_names_its_month_and_its_sources() -> None:
    sources = table_sources()
    assert sources["month"] >= "2026-11"
    assert {"openai", "anthropic", "google-genai", "groq", "xai-sdk", "litellm"} <= {*sources}


def test_the_wheel_grows_by_little() -> None:
    package = ROOT / "python" / "deltafold" / "dialects"
    grown = [TABLE, package / "model_table.py", package / "model_lines.py"]
    assert sum(len(zlib.compress(file.read_bytes(), 9)) for file in grown) < 20_000


def test_nothing_is_read_before_the_first_name_and_nothing_is_imported_for_it() -> None:
    program = """
import sys
import deltafold, deltafold.dialects.model_table as table
assert table._table.cache_info().currsize == 0
before = set(sys.modules)
assert table.facts_of("gpt-5") and table.newest_older("gpt-9")
assert table._table.cache_info().misses == 1
assert set(sys.modules) == before, set(sys.modules) - before
"""
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert answer.returncode == 0, answer.stderr
