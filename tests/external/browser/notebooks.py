"""A notebook that shows a message, a stream that is being read, and a failure.

In: nothing.  Out: the executed notebook, and each update of a display that its kernel sent.
"""

from typing import Any

import nbformat
from nbclient import NotebookClient

CELLS = (
    """
    import time
    import deltafold
    from recordings import ROOT
    recordings = ROOT / "python/deltafold/cli/demo/recordings"
    body = (recordings / "anthropic-messages.tool-call.sse").read_bytes()
    cut = (recordings / "anthropic-messages.cut.sse").read_bytes()
    """,
    'deltafold.fold(body, "anthropic-messages")',
    """
    def slowly(body):
        for event in body.split(b"\\n\\n")[:-1]:
            time.sleep(0.02)
            yield event + b"\\n\\n"

    stream = deltafold.stream(slowly(body), "anthropic-messages")
    display(stream)
    print(len(list(stream)), "deltas")
    """,
    'deltafold.stream(slowly(cut), "anthropic-messages").final_message()',
)


class Watching(NotebookClient):
    """A client that keeps the updates of displays, which the notebook itself replaces."""

    def __init__(self, notebook: nbformat.NotebookNode) -> None:
        super().__init__(notebook, timeout=60, kernel_name="python3", allow_errors=True)
        self.updates: list[str] = []

    def process_message(self, msg: dict[str, Any], cell: Any, cell_index: int) -> Any:  # noqa: ANN401
        """Take a message of the kernel."""
        if msg["msg_type"] == "update_display_data":
            self.updates.append(msg["content"]["data"]["text/html"])
        return super().process_message(msg, cell, cell_index)


def executed() -> Watching:
    """Execute the notebook."""
    notebook = nbformat.v4.new_notebook()
    for source in CELLS:
        lines = [line.removeprefix("    ") for line in source.strip("\n").splitlines()]
        notebook.cells.append(nbformat.v4.new_code_cell("\n".join(lines).strip()))
    client = Watching(notebook)
    client.execute()
    return client
