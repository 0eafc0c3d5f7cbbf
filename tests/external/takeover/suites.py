"""Suites of tests that run with deltafold beneath, and the differences that are accepted.

In: nothing.  Out: `SUITES`, the projects' own; `RECORDED`, the recordings through their models;
`MISSING` and `ACCEPTED`.

Law: the least counts of a suite are near those that were measured. A count of 0 says that the suite
makes no client, or reads no stream, without a network.
"""

from typing import Final, NamedTuple


class Suite(NamedTuple):
    """Tests of a project.

    Attributes:
        name: the name of the suite.
        project: the key of `READINGS`.
        distribution: the distribution that is tested; its source has the tests, unless they are
            recordings.
        environment: the name of the environment.
        arguments: the arguments of pytest: paths of tests and options.
        selection: the selected tests, and the reason why others are left out.
        passed: least number of tests that pass plain.
        clients: least number of accelerated clients.
        faster: least number of streams that accelerated clients read.
        folded: least number of streams that went through `stream`.
    """

    name: str
    project: str
    distribution: str
    environment: str
    arguments: tuple[str, ...]
    selection: str
    passed: int
    clients: int
    faster: int
    folded: int


_UNIT: Final = ("-m", "not integration", "tests")
_LIVE: Final = "all but those with the mark `integration`, which call the provider"

SUITES: Final = (
    Suite(
        "chatlas",
        "chatlas",
        "chatlas",
        "takeover",
        (
            "tests/test_callbacks.py",
            "tests/test_chat.py",
            "tests/test_chat_dangling_tools.py",
            "tests/test_cross_provider_turns.py",
            "tests/test_openai_httpx2.py",
            "tests/test_otel.py",
            *(
                f"tests/test_parallel_chat{of}.py"
                for of in ("", "_errors", "_improved", "_ordering")
            ),
            *(
                f"tests/test_provider_{name}.py"
                for name in (
                    "anthropic",
                    "anthropic_files",
                    "azure",
                    "bedrock",
                    "bedrock_converse",
                    "bedrock_mantle",
                    "cloudflare",
                    "deepseek",
                    "github",
                    "huggingface",
                    "lmstudio",
                    "mistral",
                    "ollama",
                    "openai",
                    "openai_completions",
                    "openai_files",
                    "openrouter",
                    "portkey",
                    "posit",
                    "snowflake",
                    "stream_contract",
                )
            ),
            "tests/test_stream_controller.py",
            "tests/test_stream_thinking.py",
            "tests/test_tool_multi_results.py",
            "tests/test_tools_enhanced.py",
            "tests/test_turn_accumulator.py",
        ),
        "the tests of providers, chats, streams and tools, over the recordings that they ship; not"
        " google's, whose recorded requests differ from those of the installed SDK, not those of"
        " databricks, whose SDK is not installed, and not those of files and displays",
        passed=568,
        clients=800,
        faster=170,
        folded=170,
    ),
    Suite(
        "anthropic-haystack",
        "haystack",
        "anthropic-haystack",
        "takeover",
        _UNIT,
        _LIVE,
        passed=147,
        clients=44,
        faster=0,
        folded=5,
    ),
    Suite(
        "mistral-haystack",
        "haystack",
        "mistral-haystack",
        "takeover",
        _UNIT,
        _LIVE,
        passed=91,
        clients=18,
        faster=0,
        folded=1,
    ),
    Suite(
        "openrouter-haystack",
        "haystack",
        "openrouter-haystack",
        "takeover",
        _UNIT,
        _LIVE,
        passed=43,
        clients=15,
        faster=0,
        folded=0,
    ),
    Suite(
        "llm-anthropic",
        "llm-anthropic",
        "llm-anthropic",
        "llm",
        ("-m", "not vcr", "tests"),
        "all but those with the mark `vcr`, whose recordings the source distribution lacks",
        passed=91,
        clients=1,
        faster=0,
        folded=9,
    ),
    Suite(
        "smolagents",
        "smolagents",
        "smolagents",
        "takeover",
        (
            "--override-ini=addopts=",
            "--import-mode=importlib",
            *(f"tests/test_{name}.py" for name in ("models", "agents", "memory", "monitoring")),
        ),
        "the tests of models, agents, memory and monitoring, with marks of the check in place of"
        " `tests.utils.markers`, which the source lacks; those that call a provider are skipped;"
        " those that need litellm, transformers, MLX, gradio or fixtures that the source lacks"
        " fail plain",
        passed=180,
        clients=0,
        faster=0,
        folded=0,
    ),
)


def _recorded(project: str, distribution: str, environment: str, least: int) -> Suite:
    return Suite(
        f"{distribution}: recordings",
        project,
        distribution,
        environment,
        (f"test_{project}_models.py",),
        "every eighth recording of the protocols that its models read",
        passed=least,
        clients=least,
        faster=least,
        folded=least,
    )


RECORDED: Final = (
    _recorded("agno", "agno", "takeover", 100),
    _recorded("gptme", "gptme", "gptme", 100),
    _recorded("haystack", "haystack-ai", "takeover", 149),
    _recorded("langroid", "langroid", "takeover", 98),
    _recorded("smolagents", "smolagents", "takeover", 49),
)

MISSING: Final = {
    "agno": "none of its tests runs",
    "gptme": "none of its tests runs: the source has tests of hooks alone, which call no model",
    "haystack-ai": "the tests of three integrations run, whose generators inherit from its"
    " `OpenAIChatGenerator` or are written for it",
    "langroid": "none of its tests runs",
    "llm-anthropic": "its tests run without those whose recordings the source lacks",
    "smolagents": "its tests run without those whose data the source lacks",
}
"""Projects whose released sources lack tests of their models, and the consequence."""


class Accepted(NamedTuple):
    """Tests that pass plain, and fail or answer something else with deltafold beneath.

    Attributes:
        suite: the name of the suite.
        mode: `accelerated` or `folded`.
        tests: their node ids, or the tests whose answers differ.
        reason: who is right, and by which document; links are paths of the repository.
    """

    suite: str
    mode: str
    tests: tuple[str, ...]
    reason: str


_NO_REASON: Final = "req-llm__openrouter.minimax_minimax_m1.object_streaming.sse"

ACCEPTED: Final = (
    Accepted(
        "llm-anthropic",
        "folded",
        tuple(
            f"tests/test_anthropic.py::{name}"
            for name in (
                "test_no_stream_uses_streaming_transport",
                "test_async_no_stream_uses_streaming_transport",
                "test_redacted_thinking_stream_preserved",
                "test_redacted_thinking_no_stream_preserved",
                "test_async_redacted_thinking_stream_preserved",
                "test_async_redacted_thinking_no_stream_preserved",
                "test_omitted_thinking_stream_preserved",
                "test_async_omitted_thinking_stream_preserved",
                "test_redacted_thinking_survives_log_store_round_trip",
            )
        ),
        "The streams that the tests make up have no `message_stop`. deltafold is right: by"
        " [the protocol](docs/protocols/anthropic-messages.md#stream) each stream ends with this"
        " event. One without it was cut, and the fold raises `connection_lost` at its end.",
    ),
    *(
        Accepted(
            f"{distribution}: recordings",
            "folded",
            tuple(f"test_{project}_models.py::{test}[{_NO_REASON}]" for test in tests),
            "The stream is empty: no text, no finish reason, and `[DONE]` at its end. Its bytes are"
            " a whole answer. The SDK does not hand out `[DONE]`, so that its objects are those of"
            " a cut one; [objects have what the SDK's class keeps](docs/choose.md#response)."
            " Accelerated clients read the bytes, and answer as the project does.",
        )
        for project, distribution, tests in (
            ("agno", "agno", ("test_chat",)),
            ("gptme", "gptme", ("test_chat",)),
            ("haystack", "haystack-ai", ("test_chat", "test_chat_async")),
            ("smolagents", "smolagents", ("test_chat",)),
        )
    ),
)
