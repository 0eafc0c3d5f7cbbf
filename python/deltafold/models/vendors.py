"""Vendors of known protocols: data only, one row each.

A row states the dialects, their addresses, the environment variable of the key, and the differences
from the dialect.  A vendor that needs code needs an adapter instead of a row.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Required, TypedDict, Unpack


@dataclass(frozen=True, slots=True)
class Vendor:
    """One vendor.

    >>> vendor = deltafold.VENDORS["groq"]
    >>> vendor.dialect, vendor.key_variable
    ('openai-chat', 'GROQ_API_KEY')

    Attributes:
        name: the name that a user writes.
        addresses: the base URL of each dialect of the vendor, the usual dialect first, in the form
            of its SDK; None requires a client of the SDK. Braces mark values of the caller: a
            resource, account, region or workspace.
        key_variable: the environment variable of the key, None if no key is needed.
        defaults: configuration fields that this vendor needs, used in the dialects that have them;
            the caller's values replace them.
        aliases: other names of the same vendor.
        thinking_dialect: the dialect of models that think, None if it is the usual one.
        address_variables: the environment variables that replace the address in the vendor's SDK;
            the first variable that is set is used.
        address_is_host: whether these variables hold a host, as Ollama's do, instead of a base URL.
        earlier_key_variables: variables of a key that the vendor's SDK reads before `key_variable`.
        token_variable: the variable of a bearer token that is sent without a key.
        header_variables: headers, and the variables of their values.
        continuing_segment: last segment of the Chat address, in place of `/v1`, for requests that
            continue an answer marked by `prefix`; "" if the vendor does not continue answers.
        paths: the request path below the address, for dialects whose path differs from the usual
            one. No SDK knows such a path, so that plain HTTP sends these requests.
        follows_schema: whether the models can be held to a schema by the dialect's mechanism.
        schema_beside_tools: whether one request can have a schema and tools.
        takes_tool_choice: whether a request can ask for a call of a tool.
        ends_without_reason: whether its answers have no finish reason, so that an end mark, or a
            body that was closed, ends a whole one.
        sources: origins of the row: URLs of public documentation, "recording", or files of packages
            that hold the same facts.
        checked: month in which the row was compared with its sources, as "YYYY-MM".
    """

    name: str
    addresses: Mapping[str, str | None]
    key_variable: str | None
    defaults: Mapping[str, object] = field(default_factory=dict[str, object])
    aliases: tuple[str, ...] = ()
    thinking_dialect: str | None = None
    address_variables: tuple[str, ...] = ()
    address_is_host: bool = False
    earlier_key_variables: tuple[str, ...] = ()
    token_variable: str | None = None
    header_variables: Mapping[str, str] = field(default_factory=dict[str, str])
    continuing_segment: str = ""
    paths: Mapping[str, str] = field(default_factory=dict[str, str])
    follows_schema: bool = True
    schema_beside_tools: bool = True
    takes_tool_choice: bool = True
    ends_without_reason: bool = False
    sources: tuple[str, ...] = ()
    checked: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """All names of the vendor."""
        return (self.name, *self.aliases)

    @property
    def dialect(self) -> str:
        """The protocol that is spoken unless another one is asked for.

        Models that think have `thinking_dialect` where that is set.
        """
        return next(iter(self.addresses))


# Most vendors accept this member instead of OpenAI's newer max_completion_tokens
# (docs/protocols/openai-chat.md#request).
_OLD_LIMIT: Mapping[str, object] = {"max_tokens_member": "max_tokens"}
# Vendors that want their reasoning back, by their guides of 2026. DeepSeek ("Thinking Mode")
# refuses the turns of a tool loop without their reasoning, later too, and ignores all other
# reasoning. It takes an empty one, over Chat and as a block of the Messages API
# (esengine/DeepSeek-Reasonix #8927).
_REASONING_OF_TOOL_TURNS: Mapping[str, object] = {
    **_OLD_LIMIT,
    "replay_reasoning": "reasoning_content",
    "replay_reasoning_turns": "tool_turns",
    "reasoning_placeholder": "",
}
# Moonshot ("Using thinking models") and Z.ai ("Thinking Mode") want all of it and choose by
# themselves; OpenRouter ("Reasoning Tokens") wants its blocks back unchanged.
_ALL_REASONING: Mapping[str, object] = {
    **_OLD_LIMIT,
    "replay_reasoning": "reasoning_content",
    "replay_reasoning_turns": "all",
}
# Moonshot refuses a tool turn without reasoning, and kimi-k2.5 and k2.6 take an empty one for none
# (theopenco/llmgateway #2093, earendil-works/pi #4178; openclaw/openclaw #70565 for the Messages
# API).
_NO_EMPTY_REASONING: Mapping[str, object] = {**_ALL_REASONING, "reasoning_placeholder": " "}
_ALL_DETAILS: Mapping[str, object] = {**_ALL_REASONING, "replay_reasoning": "reasoning_details"}

_MESSAGES = "anthropic-messages"
_CHAT = "openai-chat"
_RESPONSES = "openai-responses"


class _Facts(TypedDict, total=False):
    """Attributes of a row that `_chat` hands on."""

    aliases: tuple[str, ...]
    continuing_segment: str
    follows_schema: bool
    schema_beside_tools: bool
    takes_tool_choice: bool
    ends_without_reason: bool
    sources: Required[tuple[str, ...]]
    checked: Required[str]


def _chat(
    name: str,
    base_url: str,
    key_variable: str | None,
    defaults: Mapping[str, object] = _OLD_LIMIT,
    *,
    responses: bool = False,
    messages: str | None = None,
    path: str | None = None,
    **facts: Unpack[_Facts],
) -> Vendor:
    """Make the row of a vendor whose usual dialect is Chat; `responses` have the same address."""
    addresses: dict[str, str | None] = {_CHAT: base_url}
    if responses:
        addresses[_RESPONSES] = base_url
    if messages is not None:
        addresses[_MESSAGES] = messages
    paths = {} if path is None else {_CHAT: path}
    return Vendor(name, addresses, key_variable, defaults, paths=paths, **facts)


_ROWS = (
    # Source of all variables: the SDKs themselves, in the versions that requirements/ name.
    Vendor(
        "anthropic",
        {_MESSAGES: "https://api.anthropic.com"},
        "ANTHROPIC_API_KEY",
        address_variables=("ANTHROPIC_BASE_URL",),
        token_variable="ANTHROPIC_AUTH_TOKEN",  # noqa: S106 - the name of a variable
        sources=("anthropic/_client.py",),
        checked="2026-11",
    ),
    Vendor(
        "openai",
        dict.fromkeys((_CHAT, _RESPONSES), "https://api.openai.com/v1"),
        "OPENAI_API_KEY",
        # Chat refuses tools beside an effort from GPT-5.4 on, and has no codex and pro models.
        thinking_dialect=_RESPONSES,
        address_variables=("OPENAI_BASE_URL",),
        header_variables={
            "openai-organization": "OPENAI_ORG_ID",
            "openai-project": "OPENAI_PROJECT_ID",
        },
        sources=("openai/_client.py", "openai/_data_residency.py"),
        checked="2026-11",
    ),
    _chat(
        "azure",
        "https://{resource}.openai.azure.com/openai/v1",
        "AZURE_OPENAI_API_KEY",
        {},
        responses=True,
        messages="https://{resource}.services.ai.azure.com/anthropic",
        sources=("pydantic_ai/providers/azure.py", "anthropic/lib/foundry.py"),
        checked="2026-11",
    ),
    Vendor(
        "bedrock",
        dict.fromkeys(
            ("bedrock-converse", "bedrock-invoke"),
            "https://bedrock-runtime.{region}.amazonaws.com",
        ),
        "AWS_BEARER_TOKEN_BEDROCK",
        address_variables=("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "AWS_ENDPOINT_URL"),
        sources=("anthropic/lib/bedrock/_client.py", "botocore/utils.py"),
        checked="2026-11",
    ),
    _chat(
        "cerebras",
        "https://api.cerebras.ai/v1",
        "CEREBRAS_API_KEY",
        {},
        sources=("pydantic_ai/providers/cerebras.py",),
        checked="2026-11",
    ),
    _chat(
        "cloudflare",
        "https://api.cloudflare.com/client/v4/accounts/{account}/ai/v1",
        "CLOUDFLARE_API_TOKEN",
        sources=(
            "https://developers.cloudflare.com/workers-ai/configuration/open-ai-compatibility",
        ),
        checked="2026-11",
    ),
    Vendor(
        "cohere",
        {"cohere-chat": "https://api.cohere.com"},
        "CO_API_KEY",
        address_variables=("CO_API_URL",),
        sources=("cohere/environment.py", "cohere/client_v2.py"),
        checked="2026-11",
    ),
    _chat(
        "dashscope",
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        "DASHSCOPE_API_KEY",
        aliases=("alibaba", "qwen"),
        sources=(
            "https://www.alibabacloud.com/help/en/model-studio/compatibility-of-openai-with-dashscope",
        ),
        checked="2026-11",
    ),
    _chat(
        "databricks",
        "https://{workspace}.cloud.databricks.com/serving-endpoints",
        "DATABRICKS_TOKEN",
        sources=(
            "https://docs.databricks.com/machine-learning/model-serving/score-foundation-models.html",
        ),
        checked="2026-11",
    ),
    _chat(
        "deepseek",
        "https://api.deepseek.com/v1",
        "DEEPSEEK_API_KEY",
        _REASONING_OF_TOOL_TURNS,
        responses=True,
        messages="https://api.deepseek.com/anthropic",
        continuing_segment="/beta",
        follows_schema=False,
        sources=(
            "litellm/llms/deepseek/chat/transformation.py",
            "litellm/llms/deepseek/messages/transformation.py",
        ),
        checked="2026-11",
    ),
    _chat(
        "fireworks",
        "https://api.fireworks.ai/inference/v1",
        "FIREWORKS_API_KEY",
        sources=("pydantic_ai/providers/fireworks.py",),
        checked="2026-11",
    ),
    # Its token comes from the sign-in of an editor and lives for half an hour.
    _chat(
        "github-copilot",
        "https://api.githubcopilot.com",
        "GITHUB_COPILOT_TOKEN",
        {**_OLD_LIMIT, "joined_choices": True},
        responses=True,
        messages="https://api.githubcopilot.com",
        sources=(
            "litellm/llms/github_copilot/common_utils.py",
            "https://github.com/karthink/gptel/pull/1284",
        ),
        checked="2026-11",
    ),
    Vendor(
        "google",
        dict.fromkeys(
            ("gemini", "gemini-interactions"), "https://generativelanguage.googleapis.com"
        ),
        "GEMINI_API_KEY",
        aliases=("gemini",),
        address_variables=("GOOGLE_GEMINI_BASE_URL",),
        earlier_key_variables=("GOOGLE_API_KEY",),
        sources=("google/genai/_api_client.py",),
        checked="2026-11",
    ),
    Vendor(
        "google-vertex",
        {
            "gemini": "https://{location}-aiplatform.googleapis.com/v1/projects/{project}"
            "/locations/{location}/publishers/google",
            _MESSAGES: None,
        },
        # A token that lives for an hour: `gcloud auth print-access-token`.
        "GOOGLE_OAUTH_ACCESS_TOKEN",
        aliases=("vertex",),
        sources=(
            "https://docs.cloud.google.com/vertex-ai/generative-ai/docs/model-reference/inference",
        ),
        checked="2026-11",
    ),
    _chat(
        "gpustack",
        "http://127.0.0.1/v1",
        "GPUSTACK_API_KEY",
        messages="http://127.0.0.1",
        sources=("https://docs.gpustack.ai/latest/integrations/inference-apis/",),
        checked="2026-11",
    ),
    _chat(
        "groq",
        "https://api.groq.com/openai/v1",
        "GROQ_API_KEY",
        {},
        responses=True,
        schema_beside_tools=False,
        sources=("https://console.groq.com/docs/openai",),
        checked="2026-11",
    ),
    _chat(
        "huggingface",
        "https://router.huggingface.co/v1",
        "HF_TOKEN",
        responses=True,
        sources=("huggingface_hub/inference/_providers/_common.py",),
        checked="2026-11",
    ),
    # Models in this process need no address.
    Vendor(
        "local",
        {_CHAT: None},
        None,
        follows_schema=False,
        takes_tool_choice=False,
        sources=("deltafold/models/local.py",),
        checked="2026-11",
    ),
    _chat(
        "llama-cpp",
        "http://127.0.0.1:8080/v1",
        None,
        messages="http://127.0.0.1:8080",
        sources=("https://huggingface.co/blog/ggml-org/anthropic-messages-api-in-llamacpp",),
        checked="2026-11",
    ),
    _chat(
        "lm-studio",
        "http://127.0.0.1:1234/v1",
        None,
        responses=True,
        messages="http://127.0.0.1:1234",
        aliases=("lmstudio",),
        sources=(
            "https://lmstudio.ai/docs/developer/anthropic-compat",
            "https://lmstudio.ai/docs/api/openai-api",
        ),
        checked="2026-11",
    ),
    Vendor(
        "mistral",
        {"mistral": "https://api.mistral.ai/v1"},
        "MISTRAL_API_KEY",
        sources=("mistralai/client/sdkconfiguration.py",),
        checked="2026-11",
    ),
    _chat(
        "moonshot",
        "https://api.moonshot.ai/v1",
        "MOONSHOT_API_KEY",
        {**_NO_EMPTY_REASONING, "lone_references": True},
        messages="https://api.moonshot.ai/anthropic",
        aliases=("moonshotai",),
        sources=(
            "https://platform.kimi.ai/docs/api/overview",
            "https://github.com/MoonshotAI/walle/blob/main/docs/mfjs-spec.md",
        ),
        checked="2026-11",
    ),
    Vendor(
        "ollama",
        {_CHAT: "http://127.0.0.1:11434/v1", "ollama": "http://127.0.0.1:11434"},
        None,
        _OLD_LIMIT,
        address_variables=("OLLAMA_HOST",),
        address_is_host=True,
        token_variable="OLLAMA_API_KEY",  # noqa: S106 - the name of a variable
        schema_beside_tools=False,
        takes_tool_choice=False,
        sources=("ollama/_client.py", "https://docs.ollama.com/api"),
        checked="2026-11",
    ),
    _chat(
        "openrouter",
        "https://openrouter.ai/api/v1",
        "OPENROUTER_API_KEY",
        _ALL_DETAILS,
        responses=True,
        messages="https://openrouter.ai/api",
        sources=("pydantic_ai/providers/openrouter.py",),
        checked="2026-11",
    ),
    _chat(
        "perplexity",
        "https://api.perplexity.ai",
        "PERPLEXITY_API_KEY",
        sources=("https://docs.perplexity.ai/docs/sonar/openai-compatibility",),
        checked="2026-11",
    ),
    _chat(
        "snowflake",
        "https://{account}.snowflakecomputing.com/api/v2/cortex/v1",
        "SNOWFLAKE_PAT",
        {},
        # Its streams end behind the last usage record, without a finish reason or `[DONE]`.
        ends_without_reason=True,
        sources=(
            "https://docs.snowflake.com/en/user-guide/snowflake-cortex/cortex-rest-api",
            "https://docs.snowflake.com/user-guide/snowflake-cortex/open_ai_sdk",
        ),
        checked="2026-11",
    ),
    _chat(
        "together",
        "https://api.together.ai/v1",
        "TOGETHER_API_KEY",
        sources=("https://docs.together.ai/docs/inference/openai-compatibility",),
        checked="2026-11",
    ),
    _chat(
        "vllm",
        "http://127.0.0.1:8000/v1",
        None,
        responses=True,
        messages="http://127.0.0.1:8000",
        sources=("https://docs.vllm.ai/en/v0.15.0/serving/openai_compatible_server/",),
        checked="2026-11",
    ),
    _chat(
        "watsonx",
        "https://{region}.ml.cloud.ibm.com/ml/gateway/v1",
        "WATSONX_APIKEY",
        sources=(
            "https://www.ibm.com/docs/en/watsonx/saas?topic=generation-inferencing-gateway-models",
        ),
        checked="2026-11",
    ),
    _chat(
        "writer",
        "https://api.writer.com/v1",
        "WRITER_API_KEY",
        path="/chat",
        sources=("https://dev.writer.com/api-reference/completion-api/chat-completion",),
        checked="2026-11",
    ),
    _chat(
        "xai",
        "https://api.x.ai/v1",
        "XAI_API_KEY",
        responses=True,
        sources=(
            "pydantic_ai/providers/xai.py",
            "https://docs.x.ai/developers/model-capabilities/text/comparison",
        ),
        checked="2026-11",
    ),
    _chat(
        "zai",
        "https://api.z.ai/api/paas/v4",
        "ZAI_API_KEY",
        _ALL_REASONING,
        messages="https://api.z.ai/api/anthropic",
        follows_schema=False,
        takes_tool_choice=False,
        sources=(
            "pydantic_ai/providers/zai.py",
            "https://docs.z.ai/scenario-example/develop-tools/claude",
        ),
        checked="2026-11",
    ),
)

VENDORS: Mapping[str, Vendor] = {name: row for row in _ROWS for name in (row.name, *row.aliases)}
"""Every vendor by each of its names.

>>> deltafold.VENDORS["qwen"].name
'dashscope'
"""

# The names that other systems give to specifications.
_SPECIFICATIONS: Mapping[str, str] = {
    "v1": _CHAT,
    "responses": _RESPONSES,
    "messages": _MESSAGES,
    "json": f"{_CHAT}+qwen-json",
    "xml": f"{_CHAT}+qwen-xml",
}


def canonical_specification(name: str) -> str:
    """Return our name of a specification that another system calls "v1", "json" and the like."""
    return _SPECIFICATIONS.get(name, name)
