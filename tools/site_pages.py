"""Hooks of mkdocs: pages that are files of the repository's root, and a site without other hosts.

In: the files of docs/, the rendered pages.  Out: the same, one page for each file of `PAGES`, whose
links point to the pages, and the list of all pages for language models (`tools/llms.py`).

Laws: no page loads a script, a style, a font or an image of another host; the build fails if one
does. A text is kept once, where the hosts of repositories look for it. The second word of a fence
(`python langchain`) names the environment that runs the block, and highlighters refuse it.
Source: https://www.mkdocs.org/dev-guide/plugins/#events
"""

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File
from mkdocs.utils import get_relative_url

sys.path.insert(0, str(Path(__file__).parent))  # mkdocs loads a hook as a file
import llms

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.nav import Navigation
    from mkdocs.structure.pages import Page

_SHOWN: "list[tuple[str, Page]]" = []
"""Each page of the navigation with its section, in order; `on_nav` fills it."""

PAGES: Final = {
    "changelog.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
    "security.md": "SECURITY.md",
}
"""Files of the root by the name of their page."""

SHIM: Final = "https://unpkg.com/iframe-worker/shim"
"""Script that the theme loads from another host, so that the search works in pages from files."""

OWN_SHIM: Final = "javascripts/iframe-worker.js"
"""Our copy of the script."""

NAMELESS: Final = 'data-md-component="search" role="dialog"'
"""Attributes of the search, to which the theme gives no name for assistive programs."""

_LOADED: Final = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\bsrc(?:set)?=\"?https?:[^>]*>"
    r"|<link\b(?=[^>]*\brel=\"?(?:stylesheet|preconnect|icon))[^>]*\bhref=\"?https?:[^>]*>"
)


def page_of(file: str, root: Path) -> str:
    """Return the text of a file, with its links to the other files made links to their pages."""
    text = (root / file).read_text(encoding="utf-8")
    for page, other in PAGES.items():
        text = text.replace(f"]({other}", f"]({page}")
    return text.replace("](docs/", "](")


def on_files(files: "Files", config: "MkDocsConfig") -> "Files":
    """Add the pages."""
    root = Path(config.config_file_path).parent
    for page, file in PAGES.items():
        files.append(File.generated(config, page, content=page_of(file, root)))
    return files


def on_nav(nav: "Navigation", **_: object) -> "Navigation":
    """Remember the pages in the order of the navigation."""
    _SHOWN.clear()
    for page in nav.pages:
        top = page.ancestors[-1] if page.ancestors else None
        _SHOWN.append((str(top.title) if top is not None else "Start", page))
    return nav


def on_post_build(config: "MkDocsConfig", **_: object) -> None:
    """Write llms.txt and llms-full.txt of the pages."""
    pages = [
        llms.Page(section, str(page.title), page.url, page.markdown or "")
        for section, page in _SHOWN
    ]
    name, summary = config.site_name, config.site_description or ""
    for file, text in (
        ("llms.txt", llms.listed(name, summary, pages)),
        ("llms-full.txt", llms.whole(name, summary, pages)),
    ):
        Path(config.site_dir, file).write_text(text, encoding="utf-8")


def on_page_markdown(markdown: str, **_: object) -> str:
    """Remove the second word of the fences of Python."""
    return re.sub(r"^```python \w+$", "```python", markdown, flags=re.MULTILINE)


def on_post_page(output: str, *, page: "Page", **_: object) -> str:
    """Load the script from the site itself, and fail if something else comes from another host."""
    return _own(output, get_relative_url(OWN_SHIM, page.url), page.url)


def on_post_template(output_content: str, *, template_name: str, **_: object) -> str:
    """Do the same for pages without a source, such as 404.html."""
    if not template_name.endswith(".html"):
        return output_content
    return _own(output_content, f"/{OWN_SHIM}", template_name)


def _own(output: str, shim: str, name: str) -> str:
    output = output.replace(SHIM, shim)
    output = output.replace(NAMELESS, f'{NAMELESS} aria-label="Search"')
    if loaded := _LOADED.search(output):
        raise PluginError(f"{name} loads from another host: {loaded[0]}")
    return output
