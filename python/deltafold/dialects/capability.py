"""Capabilities of models."""

from enum import StrEnum


class Capability(StrEnum):
    """Capability of a model, for `Model.supports`.

    >>> model.supports(Capability.TOOLS)
    True
    """

    TOOLS = "tools"
    PARALLEL_TOOL_CALLS = "parallel_tool_calls"
    THINKING = "thinking"
    IMAGES = "images"
    CACHING = "caching"
