"""Lines of code of the agent loops.

In: the folder of each package.  Out: for each module of a loop, its number of lines.

Laws: blank lines, comments and docstrings are not counted. A module is counted whole. The choice is
the same for each library: the loop, its entry points, the execution of tools, retries, approvals,
limits, and the state of a run with its storage in a file. The definitions of tools, messages and
models, and telemetry, are not counted.
"""

import ast
import io
import tokenize
from pathlib import Path

MODULES: dict[str, tuple[str, tuple[str, ...]]] = {
    "deltafold": (
        "deltafold",
        (
            "conversation/agent/agent.py",
            "conversation/agent/tool_turn.py",
            "conversation/agent/model_turn.py",
            "conversation/agent/deadline.py",
            "conversation/agent/executor.py",
            "conversation/agent/run*.py",
            "conversation/agent/given_messages.py",
            "conversation/agent/settings.py",
            "conversation/context/run_state.py",
            "conversation/context/state.py",
            "conversation/history/entries.py",
            "conversation/history/run_entries.py",
            "conversation/history/call_table.py",
            "conversation/history/log.py",
            "conversation/history/log_file.py",
        ),
    ),
    "pydantic-ai": (
        "pydantic_ai",
        (
            "_agent_graph.py",
            "agent/__init__.py",
            "agent/abstract.py",
            "run.py",
            "_run_context.py",
            "_tool_execution.py",
            "tool_manager.py",
            "_deferred.py",
            "_cancel.py",
            "retries.py",
            "usage.py",
            "conversation_store.py",
        ),
    ),
    "openai-agents": (
        "agents",
        (
            "run.py",
            "run_config.py",
            "run_context.py",
            "run_state.py",
            "run_internal/*.py",
            "_tool_invocation.py",
            "retry.py",
            "usage.py",
            "memory/session.py",
            "memory/sqlite_session.py",
        ),
    ),
    "strands": (
        "strands",
        (
            "agent/agent.py",
            "agent/_concurrency.py",
            "agent/_continuation.py",
            "agent/agent_result.py",
            "agent/state.py",
            "event_loop/*.py",
            "tools/executors/*.py",
            "interrupt.py",
            "types/interrupt.py",
            "session/session_manager.py",
            "session/session_repository.py",
            "session/repository_session_manager.py",
            "session/file_session_manager.py",
        ),
    ),
}
"""Package and patterns of the modules of each loop."""

_NO_CODE = frozenset(
    {
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
    }
)


def lines_of(source: str) -> int:
    """Count the lines with code of a module."""
    documentation = set[int]()
    for node in ast.walk(ast.parse(source)):
        # A text as a statement: a docstring, or the description of an attribute.
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            documentation.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    code = set[int]()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _NO_CODE:
            code.update(range(token.start[0], token.end[0] + 1))
    return len(code - documentation)


def modules_of(library: str, folder: Path) -> dict[str, int]:
    """Return the counted modules of a library, by their path in the package.

    Raises:
        FileNotFoundError: a pattern matches no module, because the library moved it.
    """
    _, patterns = MODULES[library]
    counts: dict[str, int] = {}
    for pattern in patterns:
        found = sorted(folder.glob(pattern))
        if not found:
            raise FileNotFoundError(f"{library}: no module {pattern} in {folder}")
        for path in found:
            counts[path.relative_to(folder).as_posix()] = lines_of(path.read_text("utf-8"))
    return counts


def section(folders: dict[str, Path], names: dict[str, str]) -> str:
    """Write the section of the report."""
    rows, lists = list[str](), list[str]()
    for library, folder in folders.items():
        counts = modules_of(library, folder)
        total = sum(counts.values())
        rows.append(f"| {names[library]} | {len(counts)} | {total:,} |")
        listed = ", ".join(f"`{path}` {count:,}" for path, count in counts.items() if count)
        lists.append(f"- {names[library]}: {listed}.")
    return (
        "## Lines of code\n\n"
        "Lines without blank lines, comments and docstrings. Counted are whole modules: the loop,\n"
        "its entry points, the execution of tools, retries, approvals, limits, and the state of a\n"
        "run with its storage in a file. The definitions of tools, messages and models, and\n"
        "telemetry, are not counted. The loops of the peers have features that this one does not\n"
        "have, for example handoffs, guardrails and other agents as tools.\n\n"
        "| loop | modules | lines |\n|---|---:|---:|\n" + "\n".join(rows) + "\n\n"
        "The modules:\n\n" + "\n".join(lists) + "\n"
    )
