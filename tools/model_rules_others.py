"""Rules of the table of models for Google, xAI, Mistral, DeepSeek, Kimi, GLM, gpt-oss and Bedrock.

In: nothing.  Out: `RULES`, the first match wins.

Laws: those of `model_overlay.py`.
"""

from typing import Final

from model_claims import SMALLEST, Rule

_READ: Final = "2026-11"
_ROUNDED: Final = "litellm: genai-prices rounds the number"
_GOOGLE: Final = "https://ai.google.dev/gemini-api/docs/thinking"
_KNOWN: Final = "Google's list of models"
_XAI: Final = "litellm/llms/xai/chat/transformation.py, tested by its authors"
_XAI_GUIDE: Final = "https://docs.x.ai/docs/guides/reasoning"
_EVERY_EFFORT: Final = "effort.(none|minimal|low|medium|high|xhigh|max)"
_DEEPSEEK: Final = "https://api-docs.deepseek.com/guides/thinking_mode"
_KIMI: Final = "pydantic_ai/providers/moonshotai.py, measured by its authors"
_GLM: Final = "https://docs.bigmodel.cn/cn/guide/capabilities/thinking-mode"
_GLM_HOST: Final = (
    "https://docs.infini-ai.com/gen-studio/api/text-generation/tutorial-reasoning/glm.html"
)
_VENDORS: Final = "python/deltafold/models/vendors.py"

_GOOGLE_RULES: Final = (
    Rule(
        r"gemini-.*-tts(?:-preview)?",
        "kind",
        "google/genai/_gaos/types/interactions/model.py, comments",
        _READ,
        value="speech",
    ),
    Rule(
        r"lyria.*",
        "kind",
        "google/genai/_gaos/types/interactions/model.py, comments",
        _READ,
        value="music",
    ),
    Rule(
        r"gemini-omni.*",
        "kind",
        "google/genai/_gaos/types/interactions/model.py, comments",
        _READ,
        value="video",
    ),
    Rule(
        r"gemini-4-(?:carbon|neon)|gemini-robotics-er-1\.6-preview",
        "kind",
        "google/genai/_gaos/types/interactions/model.py, comments",
        _READ,
        value="chat",
    ),
    Rule(r"gem.*|learnlm.*", "endpoints", "google/genai/models.py", _READ, value=("gemini",)),
    Rule(
        r"gemini-2\.5-flash-lite",
        "thinking",
        f"{_GOOGLE}, as Cline quotes it: off by default",
        _READ,
        value="optional",
    ),
    Rule(
        r"gemini-4-hydrogen",
        "effort.(minimal|xhigh)",
        "litellm, row gemini/gemini-4-hydrogen: the profile has the levels of unlisted models",
        _READ,
        prefer="litellm",
    ),
    Rule(
        r"gemini-\d.*|gemini-(?:flash|flash-lite|pro)",
        "forced_tools",
        "google/genai/types.py, FunctionCallingConfigMode",
        _READ,
        value="always",
    ),
    Rule(
        r"gemini-2\.0-flash(?:-lite)?",
        "max_output_tokens",
        _KNOWN,
        _READ,
        value=8_192,
    ),
    Rule(
        r"gemini-3-pro-preview",
        "max_output_tokens",
        _KNOWN,
        _READ,
        value=65_536,
    ),
    Rule(
        r"gemini-(?:2\.0-flash.*|3-pro-preview)",
        "images",
        _KNOWN,
        _READ,
        value=True,
    ),
    Rule(r"gemini-.*flash.*|gemini-pro", "context_window", _ROUNDED, _READ, prefer="litellm"),
    Rule(
        r"gemini-exp",
        "(context_window|max_output_tokens)",
        "litellm, row gemini/gemini-exp-1206",
        _READ,
        prefer="litellm gemini/gemini-exp-1206",
    ),
)

_XAI_RULES: Final = (
    Rule(
        r"grok-(?!.*multi-agent)\d.*|grok-(?:code|build).*",
        "endpoints",
        _VENDORS,
        _READ,
        value=("openai-chat", "openai-responses"),
    ),
    Rule(
        r"grok-3-mini-fast",
        "effort.none",
        "pydantic_ai/profiles/grok.py, measured by its authors",
        _READ,
        prefer="pydantic-ai grok-3-mini-fast",
    ),
    Rule(
        r"grok-3-mini-fast",
        "thinking",
        "pydantic_ai/profiles/grok.py, measured by its authors",
        _READ,
        prefer="pydantic-ai grok-3-mini-fast",
    ),
    Rule(
        r"grok-4\.7",
        "effort.xhigh",
        "pydantic_ai/profiles/grok.py, from xAI's page on reasoning",
        _READ,
        value=True,
    ),
    Rule(
        r"grok-4(?!.*non-reasoning).*|grok-code-fast.*|grok-3-mini.*",
        "sampling.stop_sequences",
        f"{_XAI}; {_XAI_GUIDE}",
        _READ,
        value="never",
    ),
    Rule(
        r"grok-4(?!.*non-reasoning).*|grok-code-fast.*",
        "sampling.(frequency|presence)_penalty",
        f"{_XAI}; {_XAI_GUIDE}",
        _READ,
        value="never",
    ),
    Rule(
        r"grok-(?:3|3-fast|4|4-fast.*|4-1-fast.*|4\.20(?!.*multi-agent).*|code-fast.*)",
        _EVERY_EFFORT,
        f"{_XAI_GUIDE}: an error; measured in NousResearch/hermes-agent #23435",
        _READ,
        value=False,
    ),
    Rule(
        r"grok-(?:3|3-fast|4.*non-reasoning.*)",
        "thinking",
        f"{_XAI_GUIDE}; xai_sdk/types/model.py: the name says so",
        _READ,
        value="never",
    ),
    Rule(
        r"grok-(?:4|4-fast.*|4-1-fast.*|4\.20.*|code-fast.*)",
        "thinking",
        f"{_XAI_GUIDE}: without any configuration",
        _READ,
        value="always",
    ),
)

MISTRAL: Final = (
    r"(?:open-)?(?:mistral|ministral|magistral|devstral|codestral|pixtral|voxtral|mixtral)(?:-.*)?"
    r"|labs-.*"
)
"""Names of Mistral's own models; the rule of their API has those that it hosts too."""

_MISTRAL_RULES: Final = (
    Rule(
        rf"{MISTRAL}|zai-glm.*|glm-5-2|deepseek-v4-1-flash",
        "endpoints",
        _VENDORS,
        _READ,
        value=("mistral",),
    ),
    Rule(
        r"magistral-.*",
        "effort.(none|high)",
        "https://github.com/anomalyco/models.dev/pull/1986, measured",
        _READ,
        value=True,
    ),
    Rule(
        r"magistral-.*",
        "effort.(minimal|low|medium|xhigh|max)",
        "https://github.com/anomalyco/models.dev/pull/1986, measured",
        _READ,
        value=False,
    ),
    Rule(
        r"mistral-small",
        "(context_window|max_output_tokens)",
        "litellm, row mistral/mistral-small-latest",
        _READ,
        prefer="litellm mistral/mistral-small-latest",
    ),
    Rule(
        r"ministral.*|open-mistral.*|codestral.*|pixtral.*|voxtral.*|mistral-tiny|mistral-large(?:-3)?",
        "thinking",
        "pydantic_ai/providers/mistral.py: not in its list of models that reason",
        _READ,
        value="never",
    ),
)

_DEEPSEEK_THINKERS: Final = r"deepseek-(?:flash|v4-(?:flash|pro).*)"

_CHINESE_RULES: Final = (
    Rule(
        _DEEPSEEK_THINKERS,
        "endpoints",
        _VENDORS,
        _READ,
        value=("anthropic-messages", "openai-chat", "openai-responses"),
    ),
    Rule(_DEEPSEEK_THINKERS, "thinking_off", _DEEPSEEK, _READ, value="disabled"),
    Rule(
        _DEEPSEEK_THINKERS,
        "effort.(low|high|max)",
        "pydantic_ai/providers/deepseek.py: the native efforts",
        _READ,
        value=True,
    ),
    Rule(
        _DEEPSEEK_THINKERS,
        "effort.none@openai-responses",
        f"{_DEEPSEEK}: it disables thinking",
        _READ,
        value=True,
    ),
    Rule(
        _DEEPSEEK_THINKERS,
        "effort.(none|minimal|medium|xhigh)",
        "pydantic_ai/providers/deepseek.py: the native efforts",
        _READ,
        value=False,
    ),
    Rule(
        _DEEPSEEK_THINKERS,
        "sampling.(temperature|top_p|presence_penalty|frequency_penalty)",
        f"{_DEEPSEEK}: taken and without effect",
        _READ,
        value="unless_thinking",
    ),
    Rule(
        r"kimi-k.*|moonshot-.*",
        "endpoints",
        _VENDORS,
        _READ,
        value=("anthropic-messages", "openai-chat"),
    ),
    Rule(
        r"kimi-k2\.7-code",
        "effort.(none|minimal|low|medium|high|xhigh|max)",
        f"{_KIMI}: no effort",
        _READ,
        value=False,
    ),
    Rule(
        r"kimi-k(?:2\.[567]|3).*",
        "sampling.temperature",
        "litellm/llms/moonshot/chat/transformation.py: every temperature but 1 is refused",
        _READ,
        value="never",
    ),
    Rule(
        r"glm-(?:4\.[67]|5(?:\.\d)?)",
        "max_output_tokens",
        "https://docs.z.ai/api-reference/llm/chat-completion",
        _READ,
        value=131_072,
    ),
    Rule(
        r"kimi-k2\.[56]",
        "sampling.(top_p|presence_penalty|frequency_penalty)",
        "https://platform.kimi.ai/docs/api/models-overview: cannot be modified",
        _READ,
        value="never",
    ),
    Rule(
        r"(?:qwen|qwq).*",
        "forced_tools",
        "QwenLM/qwen-code #7659: refused in thinking mode",
        _READ,
        value="unless_thinking",
    ),
    Rule(
        r"glm-\d(?:\.\d)?(?:v.*|-[a-z].*|-4.*)?",
        "forced_tools",
        "https://docs.z.ai/api-reference/llm/chat-completion: auto alone",
        _READ,
        value="never",
    ),
    Rule(
        r"glm-\d(?:\.\d)?(?:v.*|-[a-z].*|-4.*)?",
        "endpoints",
        _VENDORS,
        _READ,
        value=("anthropic-messages", "openai-chat"),
    ),
    Rule(
        r"glm-(?:4\.7|5|5\.1)(?:-.*)?",
        "thinking",
        f"{_GLM}; {_GLM_HOST}: on by default",
        _READ,
        value="default",
    ),
    Rule(
        r"glm-(?:4\.[567]|5|5\.[12])(?:v.*|-.*)?",
        "thinking_off",
        f"{_GLM}; pydantic_ai/profiles/zai.py: from GLM-5.3 on refused",
        _READ,
        value="disabled",
    ),
)

_HOST_RULES: Final = (
    Rule(r"gpt-oss-.*", "endpoints", _VENDORS, _READ, value=("openai-chat", "openai-responses")),
    Rule(
        r".*",
        "(context_window|max_output_tokens)",
        "hosts differ: a request within the smallest number fits all",
        _READ,
        prefer=SMALLEST,
    ),
)

RULES: Final = (*_GOOGLE_RULES, *_XAI_RULES, *_MISTRAL_RULES, *_CHINESE_RULES, *_HOST_RULES)
