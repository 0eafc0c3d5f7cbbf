"""Names of models: whether two names mean the same model.

In: names as requests, responses, clouds and gateways write them.  Out: the model, its snapshot, and
whether two names mean the same model.

Laws: two names are compared as a pair. An alias without a snapshot is each snapshot of its model,
and two different snapshots are different models; the relation is therefore not transitive. A word
that is neither a place, a snapshot nor a tag belongs to the model: `-mini`, `-fast`, `-preview`.
The work is linear in the length of a name, and a name of any length and content is accepted.
Sources: Anthropic, "Models overview" (aliases, names at Bedrock and Vertex AI) and "Refusals and
fallback"; AWS, "Supported foundation models" and "Inference profiles"; Google Cloud, "Model
versions and lifecycle" (a preview is another version than the stable one); OpenRouter, "Model
variants"; OpenAI, Mistral, xAI, Cohere and Volcano Engine, the lists of models; read 2026-11.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple, cast

_LONGEST: Final = 512
"""Most characters of a name that is taken apart and cached; a longer one means only itself."""

_ROUTED: Final[Mapping[str, str]] = {
    "gpt-5.6": "gpt-5.6-sol",
    "claude-opus-4-0": "claude-opus-4",
    "claude-sonnet-4-0": "claude-sonnet-4",
}
"""Aliases that their providers route to a model with another name, without snapshots.

Sources: Anthropic, "Models overview", row "Claude API alias"; for GPT-5.6 the model lists of
resellers, since OpenAI's pages name `gpt-5.6-sol` (read 2026-11).
"""

_MARK: Final = re.compile(r"\[\d+[km]\]$")
"""Size of the context window, such as `[1m]`, which Claude Code takes off before a request.

Source: Claude Code, "Model configuration", alias `sonnet[1m]` (read 2026-11).
"""

BEDROCK_PLACE: Final = re.compile(
    r"(?:[a-z]+(?:-[a-z]+)?\.)?"
    r"(?:ai21|amazon|anthropic|cohere|deepseek|google|luma|meta|minimax|mistral|moonshot|moonshotai"
    r"|nvidia|openai|qwen|stability|twelvelabs|writer|xai|zai)\."
)
"""Region and vendor before a name of Bedrock, such as `us.anthropic.` and `global.anthropic.`."""

_BEDROCK_VERSION: Final = re.compile(r"-v?\d{1,3}:\d{1,3}(?::[a-z0-9]{1,8})?$")
_CLAUDE_VERSION: Final = re.compile(r"(?<=\d)-v\d{1,3}$")
"""Version of a name of Bedrock: `-v1:0`, `-1:0`; of Claude also `-v1`.

Other models have such a word in their own names: `deepseek-v3`.
"""

_TAGS: Final = frozenset(
    {
        "batch",
        "beta",
        "exacto",
        "extended",
        "floor",
        "free",
        "latest",
        "nitro",
        "online",
        "thinking",
    }
)
"""Words after a colon that name an offer of the same model: its price, speed, limits or tools.

They are the variants of OpenRouter, and Ollama's `latest`. Other words after a colon are models of
their own, such as the sizes of Ollama (`qwen3:8b`).
"""

_AT: Final = re.compile(r"(?<=.)@(default|latest|\d{3}|\d{8})$")
"""Version of a name of Vertex AI."""

_YEAR: Final = r"20\d\d"
_MONTH: Final = r"(?:0[1-9]|1[0-2])"
_DAY: Final = r"(?:0[1-9]|[12]\d|3[01])"

_SNAPSHOT: Final = re.compile(
    r"-("
    rf"{_YEAR}{_MONTH}{_DAY}"  # claude-sonnet-4-5-20250929
    rf"|{_YEAR}-{_MONTH}-{_DAY}"  # gpt-5-2025-08-07
    rf"|{_MONTH}-{_YEAR}"  # command-a-03-2025
    rf"|(?<=-preview-){_MONTH}-{_DAY}"  # gemini-2.5-pro-preview-06-05
    rf"|{_MONTH}{_DAY}"  # grok-4-0709
    rf"|2\d{_MONTH}"  # mistral-large-2411
    rf"|2\d{_MONTH}{_DAY}"  # doubao-seed-1-6-250615
    r"|00[1-9]"  # gemini-2.0-flash-001
    r")$"
)

_CLAUDE_NUMBER_FIRST: Final = re.compile(r"claude-(\d{1,3}(?:-\d{1,3})?)-([a-z]+)")
_DECIMAL_POINT: Final = re.compile(r"(?<=\d)\.(?=\d)")


class ModelName(NamedTuple):
    """A name, taken apart.

    Attributes:
        model: the model, in one spelling for all of its names.
        snapshot: the date or number of a snapshot without separators, "" for an alias.
    """

    model: str
    snapshot: str = ""


def same_model(name: str, other: str) -> bool:
    """Return whether two names mean the same model.

    >>> same_model(
    ...     "us.anthropic.claude-sonnet-4-5-20250929-v1:0", "anthropic/claude-sonnet-4.5"
    ... )
    True
    >>> same_model("gpt-5-2025-08-07", "gpt-5-mini")
    False
    """
    if name == other:
        return True
    one, two = canonical_model(name), canonical_model(other)
    return one.model == two.model and (
        one.snapshot == two.snapshot or not one.snapshot or not two.snapshot
    )


def is_state_of(state: Mapping[str, object], model_id: str) -> bool:
    """Return whether a provider state belongs to a model.

    State without a model belongs to every model of its dialect: the caller wrote it, or no response
    named the model.
    """
    owner = state.get("modelId", "")
    return isinstance(owner, str) and (not owner or same_model(owner, model_id))


def canonical_model(name: str) -> ModelName:
    """Take a name apart.

    >>> canonical_model("us.anthropic.claude-sonnet-4-5-20250929-v1:0")
    ModelName(model='claude-sonnet-4-5', snapshot='20250929')
    """
    return ModelName(name) if len(name) > _LONGEST else _canonical(name)


def without_place(name: str) -> str:
    """Return a name in lower case without the place of its vendor, region and cloud.

    A place ends with a slash: `openrouter/anthropic/`, `models/`, `publishers/google/models/`, and
    the ARNs of Bedrock.
    """
    name = name.lower()
    last = name[name.rfind("/") + 1 :] or name
    found = BEDROCK_PLACE.match(last)
    return last[found.end() :] if found is not None and found.end() < len(last) else last


def hyphenated(name: str) -> str:
    """Return a name of Claude with hyphens in its version: OpenRouter and Copilot write `4.5`."""
    return _DECIMAL_POINT.sub("-", name) if "claude" in name else name


@lru_cache(maxsize=1024)
def _canonical(name: str) -> ModelName:
    model = without_place(name)
    # A fine-tune is a model of its own, whatever its name says about the model that it was made of.
    if model.startswith("ft:"):
        return ModelName(model)
    model = _MARK.sub("", model)
    before, colon, tag = model.rpartition(":")
    if colon and tag in _TAGS:
        model = before
    model = _BEDROCK_VERSION.sub("", model)
    if "claude" in model:
        model = _CLAUDE_VERSION.sub("", model)
    snapshot = ""
    version = _AT.search(model)
    if version is not None:
        model = model[: version.start()]
        snapshot = version[1] if version[1].isdecimal() else ""
    model = model.removesuffix("-latest") or model
    dated = _SNAPSHOT.search(model)
    if dated is not None and not snapshot and dated.start():
        model, snapshot = model[: dated.start()], cast("str", dated[1]).replace("-", "")
    model = _CLAUDE_NUMBER_FIRST.sub(r"claude-\2-\1", hyphenated(model))
    return ModelName(_ROUTED.get(model, model), snapshot)
