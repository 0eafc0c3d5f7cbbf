"""Pages of the site that are files of the repository's root: a hook of mkdocs.

In: the files of docs/.  Out: the same, and one page for each file of `PAGES`, whose links point to
the pages.

Laws: a text is kept once, where the hosts of repositories look for it. The second word of a fence
(`python langchain`) names the environment that runs the block, and highlighters refuse it.
Source: https://www.mkdocs.org/dev-guide/plugins/#events
"""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

PAGES: Final = {
    "changelog.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
    "security.md": "SECURITY.md",
}
"""Files of the root by the name of their page."""


def page_of(file: str, root: Path) -> str:
    """Return the text of a file, with its links to the other files made links to their pages."""
    text = (root / file).read_text(encoding="utf-8")
    for page, other in PAGES.items():
        text = text.replace(f"]({other}", f"]({page}")
    return text.replace("](docs/", "](")


def on_files(files: "Files", config: "MkDocsConfig") -> "Files":
    """Add the pages."""
    from mkdocs.structure.files import File  # noqa: PLC0415 - only the site has mkdocs

    root = Path(config.config_file_path).parent
    for page, file in PAGES.items():
        files.append(File.generated(config, page, content=page_of(file, root)))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Remove the second word of the fences of Python."""
    return re.sub(r"^```python \w+$", "```python", markdown, flags=re.MULTILINE)
