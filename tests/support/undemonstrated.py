"""Public names whose docstring has an example that the tests do not run.

Law: the list may only shrink (test_docstring_examples.py). A new name comes with an example.
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
