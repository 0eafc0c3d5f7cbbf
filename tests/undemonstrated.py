"""Public names whose docstring has no example that runs.

Laws: both lists may only shrink (test_docstring_examples.py). A new name comes with an example.
"""

from typing import Final

NOT_RUN: Final = frozenset(
    {
        "deltafold.Logprobs",
        "deltafold.OutputError",
        "deltafold.compat.aframes",
        "deltafold.compat.anthropic.events",
        "deltafold.conversation.ModelOutputAccumulator",
        "deltafold.conversation.ProviderRouter",
        "deltafold.conversation.ToolArgumentParser",
        "deltafold.decode_response",
        "deltafold.transcode_response",
    }
)
"""Names whose example uses an object of the caller that the tests do not make."""

WITHOUT_EXAMPLE: Final = frozenset(
    {
        "deltafold.JsonDefect",
        "deltafold.ToolCallBuffer",
        "deltafold.__version__",
        "deltafold.dialect_names",
        "deltafold.markup_names",
        "deltafold.target_names",
    }
)
"""Names without an example; most are in the compiled extension."""
