"""Names of protocols and of markup for type checkers, so that an editor shows a misspelled one.

Law: the extension and the registry of requests have the same names; a test compares them.
"""

from typing import Literal, TypeAlias

WrittenProtocol: TypeAlias = Literal[
    "anthropic-messages",
    "bedrock-converse",
    "gemini",
    "ollama",
    "openai-chat",
    "openai-responses",
]
"""Protocol whose requests and answers are read and written: what clients of a gateway speak."""

RequestProtocol: TypeAlias = Literal[
    WrittenProtocol,
    "cohere-chat",
    "mistral",
]
"""Protocol that requests are rendered in and read from."""

ProtocolName: TypeAlias = Literal[RequestProtocol, "bedrock-invoke", "gemini-interactions"]
"""Protocol whose answers are read, a name of `deltafold.dialect_names()`."""

TargetName: TypeAlias = Literal[
    WrittenProtocol, "ag-ui", "ai-sdk", "gemini-array", "langchain", "ollama-generate"
]
"""Protocol that answers are written in, a name of `deltafold.target_names()`."""

MarkupName: TypeAlias = Literal[
    "claude",
    "cohere",
    "deepseek",
    "gemma",
    "glm",
    "harmony",
    "hermes",
    "kimi",
    "lfm2",
    "llama",
    "minimax",
    "mistral",
    "olmo",
    "qwen-json",
    "qwen-xml",
    "think",
]
"""Markup of reasoning and calls in plain text, a name of `deltafold.markup_names()`."""
