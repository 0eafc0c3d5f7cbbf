"""Settings of clients for the gateway.

In: the address of the gateway and the name of a model, as `{url}` and `{model}`.  Out: text.

Source: the documents of each client (read 2026-11).
"""

from typing import Final

CLIENTS: Final = {
    "codex": """\
# ~/.codex/config.toml; then: codex --model NAME
model_provider = "deltafold"

[model_providers.deltafold]
name = "deltafold"
base_url = "{url}/v1"
wire_api = "responses"
""",
    "claude-code": """\
export ANTHROPIC_BASE_URL={url}
export ANTHROPIC_AUTH_TOKEN=unused
export ANTHROPIC_MODEL={model}
""",
    "gemini-cli": """\
export GOOGLE_GEMINI_BASE_URL={url}
export GEMINI_API_KEY=unused
# then: gemini --model {model}
""",
    "opencode": """\
{{
  "$schema": "https://opencode.ai/config.json",
  "provider": {{
    "deltafold": {{
      "npm": "@ai-sdk/openai-compatible",
      "options": {{ "baseURL": "{url}/v1", "apiKey": "unused" }},
      "models": {{ "{model}": {{}} }}
    }}
  }}
}}
""",
    "aider": """\
export OPENAI_API_BASE={url}/v1
export OPENAI_API_KEY=unused
# then: aider --model openai/{model}
""",
}
