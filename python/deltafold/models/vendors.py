"""Vendors of known protocols: data only, one row each.

A row states the dialects, their addresses, the environment variable of the key, and the differences
from the dialect.  A vendor that needs code needs an adapter instead of a row.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


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
        address_variables: the environment variables that replace the address in the vendor's SDK;
            the first variable that is set is used.
        address_is_host: whether these variables hold a host, as Ollama's do, instead of a base URL.
        earlier_key_variables: variables of a key that the vendor's SDK reads before `key_variable`.
        token_variable: the variable of a bearer token that is sent without a key.
        header_variables: headers, and the variables of their values.
        continuing_segment: last segment of the Chat address, in place of `/v1`, for requests that
            continue an answer marked by `prefix`; "" if the vendor does not continue answers.
    """

    name: str
    addresses: Mapping[str, str | None]
    key_variable: str | None
    defaults: Mapping[str, object] = field(default_factory=dict[str, object])
    aliases: tuple[str, ...] = ()
    address_variables: tuple[str, ...] = ()
    address_is_host: bool = False
    earlier_key_variables: tuple[str, ...] = ()
    token_variable: str | None = None
    header_variables: Mapping[str, str] = field(default_factory=dict[str, str])
    continuing_segment: str = ""

    @property
    def dialect(self) -> str:
        """The protocol that is spoken unless another one is asked for."""
        return next(iter(self.addresses))


# Most vendors accept this member instead of OpenAI's newer max_completion_tokens (openai-chat.md,
# part 8).
_OLD_LIMIT: Mapping[str, object] = {"max_tokens_member": "max_tokens"}
# Vendors that want their reasoning back, by their guides of 2026. DeepSeek ("Thinking Mode")
# refuses the turns of a tool loop without their reasoning, later too, and ignores all other
# reasoning.
_REASONING_OF_TOOL_TURNS: Mapping[str, object] = {
    **_OLD_LIMIT,
    "replay_reasoning": "reasoning_content",
    "replay_reasoning_turns": "tool_turns",
}
# Moonshot ("Using thinking models") and Z.ai ("Thinking Mode") want all of it and choose by
# themselves; OpenRouter ("Reasoning Tokens") wants its blocks back unchanged.
_ALL_REASONING: Mapping[str, object] = {
    **_OLD_LIMIT,
    "replay_reasoning": "reasoning_content",
    "replay_reasoning_turns": "all",
}
_ALL_DETAILS: Mapping[str, object] = {**_ALL_REASONING, "replay_reasoning": "reasoning_details"}

_MESSAGES = "anthropic-messages"
_CHAT = "openai-chat"
_RESPONSES = "openai-responses"


def _chat(
    name: str,
    base_url: str,
    key_variable: str | None,
    defaults: Mapping[str, object] = _OLD_LIMIT,
    *,
    responses: bool = False,
    messages: str | None = None,
    aliases: tuple[str, ...] = (),
    continuing_segment: str = "",
) -> Vendor:
    """Make the row of a vendor whose usual dialect is Chat; `responses` have the same address."""
    addresses: dict[str, str | None] = {_CHAT: base_url}
    if responses:
        addresses[_RESPONSES] = base_url
    if messages is not None:
        addresses[_MESSAGES] = messages
    return Vendor(
        name,
        addresses,
        key_variable,
        defaults,
        aliases,
        continuing_segment=continuing_segment,
    )


_ROWS = (
    # Source of all variables: the SDKs themselves, in the versions that requirements/ name.
    Vendor(
        "anthropic",
        {_MESSAGES: "https://api.anthropic.com"},
        "ANTHROPIC_API_KEY",
        address_variables=("ANTHROPIC_BASE_URL",),
        token_variable="ANTHROPIC_AUTH_TOKEN",  # noqa: S106 - the name of a variable
    ),
    Vendor(
        "openai",
        dict.fromkeys((_CHAT, _RESPONSES), "https://api.openai.com/v1"),
        "OPENAI_API_KEY",
        address_variables=("OPENAI_BASE_URL",),
        header_variables={
            "openai-organization": "OPENAI_ORG_ID",
            "openai-project": "OPENAI_PROJECT_ID",
        },
    ),
    _chat(
        "azure",
        "https://{resource}.openai.azure.com/openai/v1",
        "AZURE_OPENAI_API_KEY",
        {},
        responses=True,
        messages="https://{resource}.services.ai.azure.com/anthropic",
    ),
    Vendor(
        "bedrock",
        dict.fromkeys(
            ("bedrock-converse", "bedrock-invoke"),
            "https://bedrock-runtime.{region}.amazonaws.com",
        ),
        "AWS_BEARER_TOKEN_BEDROCK",
        address_variables=("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "AWS_ENDPOINT_URL"),
    ),
    _chat("cerebras", "https://api.cerebras.ai/v1", "CEREBRAS_API_KEY", {}),
    _chat(
        "cloudflare",
        "https://api.cloudflare.com/client/v4/accounts/{account}/ai/v1",
        "CLOUDFLARE_API_TOKEN",
    ),
    Vendor(
        "cohere",
        {"cohere-chat": "https://api.cohere.com"},
        "CO_API_KEY",
        address_variables=("CO_API_URL",),
    ),
    _chat(
        "dashscope",
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        "DASHSCOPE_API_KEY",
        aliases=("alibaba", "qwen"),
    ),
    _chat(
        "databricks",
        "https://{workspace}.cloud.databricks.com/serving-endpoints",
        "DATABRICKS_TOKEN",
    ),
    _chat(
        "deepseek",
        "https://api.deepseek.com/v1",
        "DEEPSEEK_API_KEY",
        _REASONING_OF_TOOL_TURNS,
        responses=True,
        messages="https://api.deepseek.com/anthropic",
        continuing_segment="/beta",
    ),
    _chat("fireworks", "https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"),
    # Its token comes from the sign-in of an editor and lives for half an hour.
    _chat(
        "github-copilot",
        "https://api.githubcopilot.com",
        "GITHUB_COPILOT_TOKEN",
        responses=True,
        messages="https://api.githubcopilot.com",
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
    ),
    _chat("gpustack", "http://127.0.0.1/v1", "GPUSTACK_API_KEY", messages="http://127.0.0.1"),
    _chat("groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY", {}, responses=True),
    _chat("huggingface", "https://router.huggingface.co/v1", "HF_TOKEN", responses=True),
    # Models in this process need no address.
    Vendor("local", {_CHAT: None}, None),
    _chat("llama-cpp", "http://127.0.0.1:8080/v1", None, messages="http://127.0.0.1:8080"),
    _chat(
        "lm-studio",
        "http://127.0.0.1:1234/v1",
        None,
        responses=True,
        messages="http://127.0.0.1:1234",
        aliases=("lmstudio",),
    ),
    Vendor("mistral", {"mistral": "https://api.mistral.ai/v1"}, "MISTRAL_API_KEY"),
    _chat(
        "moonshot",
        "https://api.moonshot.ai/v1",
        "MOONSHOT_API_KEY",
        _ALL_REASONING,
        messages="https://api.moonshot.ai/anthropic",
        aliases=("moonshotai",),
    ),
    Vendor(
        "ollama",
        {_CHAT: "http://127.0.0.1:11434/v1", "ollama": "http://127.0.0.1:11434"},
        None,
        _OLD_LIMIT,
        address_variables=("OLLAMA_HOST",),
        address_is_host=True,
        token_variable="OLLAMA_API_KEY",  # noqa: S106 - the name of a variable
    ),
    _chat(
        "openrouter",
        "https://openrouter.ai/api/v1",
        "OPENROUTER_API_KEY",
        _ALL_DETAILS,
        responses=True,
        messages="https://openrouter.ai/api",
    ),
    _chat("perplexity", "https://api.perplexity.ai", "PERPLEXITY_API_KEY"),
    _chat("together", "https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    _chat(
        "vllm", "http://127.0.0.1:8000/v1", None, responses=True, messages="http://127.0.0.1:8000"
    ),
    _chat("watsonx", "https://{region}.ml.cloud.ibm.com/ml/gateway/v1", "WATSONX_APIKEY"),
    _chat("writer", "https://api.writer.com/v1", "WRITER_API_KEY"),
    _chat("xai", "https://api.x.ai/v1", "XAI_API_KEY", responses=True),
    _chat(
        "zai",
        "https://api.z.ai/api/paas/v4",
        "ZAI_API_KEY",
        _ALL_REASONING,
        messages="https://api.z.ai/api/anthropic",
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
