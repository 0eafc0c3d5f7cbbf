"""Type checker over the examples of the documentation, as a user's strict pyright reads them.

In: the Python blocks of README.md and of the pages in docs/.  Out: the errors, with the lines of
the pages; the exit code is 1 if there is one.

Laws: a page is one module, whose lines are those of the page. Names that its text introduces are
declared before it. The rules are those of pyright's strict mode, but for `LEFT_OUT`. Every wrong
name of `MISSPELLED` is an error, and no right one is.
"""

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from documentation import pages, python_of  # noqa: E402 - after the path
from given_to_documents import TYPES, TYPES_OF_PAGES  # noqa: E402 - after the path

LEFT_OUT: Final = {
    "reportDuplicateImport": "a page shows several programs, each with its imports",
    "reportMissingModuleSource": "the extension has no source",
    "reportRedeclaration": "a page shows several programs, whose functions have the same names",
    "reportUnusedExpression": "an example shows the value of an expression",
}
"""Rules of the strict mode that a page does not follow, and why."""

UNTYPED: Final = {
    "docs/migrate/hand-written.md": "the code that people have, which states no types",
    "docs/scale.md": "pyarrow has no types",
}
"""Pages that are left out, and why."""

AWAITED: Final = (
    '"await" allowed only within async function',
    'Use of "async" not allowed outside of async function',
)
"""Errors that no notebook has, where examples await outside of functions."""

_GIVEN: Final = (
    "import deltafold, openai, anthropic, typing",
    "from deltafold import conversation",
)
"""Imports of the first line: what `documentation.surround` gives, and what its types need."""

MISSPELLED: Final = (
    ('deltafold.load_model("openai/x", {}=5)', "max_tokns", "max_tokens"),
    ('deltafold.load_model("openai/x").stream_sync("x", {}=1)', "temperatur", "temperature"),
    (
        'deltafold.load_model("openai/x").send_message_sync("x", output=str, {}=[])',
        "stop_sequence",
        "stop_sequences",
    ),
    ('deltafold.OpenAIChatModel({{"model_id": "x"}}, markup="{}")', "qwen", "qwen-xml"),
    ('deltafold.fold(b"", "{}")', "openai-chta", "openai-chat"),
    ('deltafold.fold_many([], "{}")', "openai_chat", "openai-chat"),
    ('deltafold.fold_choices(b"", "{}")', "anthropic", "anthropic-messages"),
    ('deltafold.stream(b"", "{}")', "gemni", "gemini"),
    ('deltafold.Decoder("{}")', "olama", "ollama"),
    ('deltafold.Decoder("openai-chat", choice="all", markup="{}")', "deep-seek", "deepseek"),
    ('deltafold.Fold("openai-chat", markup="{}")', "qwen", "qwen-xml"),
    ('deltafold.Encoder("{}")', "ai_sdk", "ai-sdk"),
    ('deltafold.Transcoder("openai-chat", "{}")', "ai-skd", "ai-sdk"),
    ('deltafold.transcode(b"", "{}", "gemini")', "antropic-messages", "anthropic-messages"),
    ('deltafold.parse_request({{}}, "{}")', "openai-chta", "openai-chat"),
    ('deltafold.Message.user("x").to_api("{}")', "openai-chta", "openai-chat"),
    ('deltafold.render_messages([], "{}")', "x", "mistral"),
    ('deltafold.testing.answer("{}")', "langchain", "gemini"),
)
"""Calls, each with a wrong name, which a type checker must show, and with the right one."""


class Finding(NamedTuple):
    """An error of the checker."""

    module: str
    line: int
    text: str


def module_of(page: str) -> str:
    """Return the source of a page: each block at the lines that it has there."""
    declared = {**TYPES, **TYPES_OF_PAGES.get(page, {})}
    given = (f'{name} = typing.cast("{kind}", None)' for name, kind in declared.items())
    lines = ["; ".join((*_GIVEN, *given))]
    for block in python_of(page):
        lines += [""] * (block.line - 1 - len(lines))
        lines += block.code.splitlines()
    return "\n".join(lines) + "\n"


def found_in(folder: Path) -> Iterator[Finding]:
    """Yield the errors of the modules of a folder."""
    settings = {
        "typeCheckingMode": "strict",
        "pythonVersion": "3.11",
        "include": ["."],
        "extraPaths": [str(ROOT / "python")],
        "venvPath": str(Path(sys.prefix).parent),
        "venv": Path(sys.prefix).name,
        **dict.fromkeys(LEFT_OUT, "none"),
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    checker = Path(sys.prefix) / "bin" / "basedpyright"
    ran = subprocess.run(
        [checker, "--project", folder, "--outputjson"], capture_output=True, check=False
    )
    told: dict[str, Any] = json.loads(ran.stdout)
    for one in told["generalDiagnostics"]:
        line = one["range"]["start"]["line"] + 1
        is_error = one["severity"] == "error" and line > 1
        if is_error and not one["message"].startswith(AWAITED):
            text = f"{one['message']} ({one.get('rule', 'syntax')})"
            yield Finding(Path(one["file"]).stem, line, text)


def source_of(names: Iterable[tuple[str, str]]) -> str:
    """Return the source of a module with one call on each line from the second one."""
    return "\n".join(("import deltafold", *(call.format(name) for call, name in names), ""))


def main() -> int:
    """Check the pages and the misspelled calls, and print what is not as it should be."""
    shown = [page for page in pages() if page not in UNTYPED and python_of(page)]
    sources = {f"page_{number}": module_of(page) for number, page in enumerate(shown)}
    sources["right"] = source_of((call, right) for call, _, right in MISSPELLED)
    sources["wrong"] = source_of((call, wrong) for call, wrong, _ in MISSPELLED)
    with TemporaryDirectory() as name:
        folder = Path(name).resolve()
        for module, source in sources.items():
            (folder / f"{module}.py").write_text(source, encoding="utf-8")
        found = list(found_in(folder))
    places = {f"page_{number}": page for number, page in enumerate(shown)} | {"right": "a call"}
    refused = {one.line for one in found if one.module == "wrong"}
    problems = [
        *(f"{places[one.module]}:{one.line}: {one.text}" for one in found if one.module in places),
        *(
            f"no error: {call.format(wrong)}"
            for line, (call, wrong, _) in enumerate(MISSPELLED, 2)
            if line not in refused
        ),
    ]
    for problem in problems:
        print(problem)
    print(f"{len(problems)} errors in the examples of {len(shown)} pages")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
