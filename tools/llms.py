"""The list of the documentation for language models: llms.txt, and llms-full.txt with all texts.

In: the navigation of the site, and the text of each page.  Out: the two files in the form of
https://llmstxt.org: a heading, a summary, and a list of links with a sentence for each page.

Law: the sentence is the first of the page, so that no second description can become wrong.
"""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

_SENTENCE: Final = re.compile(r"(.+?[.:])(?=\s|$)", re.DOTALL)
_FENCED: Final = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_NO_PROSE: Final = ("#", "```", "|", "![", ":::", "<", "- ", "    ", "!!!")


class Page(NamedTuple):
    """A page of the site.

    Attributes:
        section: the heading of the navigation that the page belongs to.
        title: its title.
        url: its address below the site.
        text: its Markdown.
    """

    section: str
    title: str
    url: str
    text: str


def first_sentence(text: str) -> str:
    """Return the first sentence of a page that is prose, "" without one."""
    for paragraph in re.split(r"\n\s*\n", _FENCED.sub("", text)):
        if paragraph.strip() and not paragraph.startswith(_NO_PROSE):
            found = _SENTENCE.match(paragraph)
            plain = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", found[1] if found else paragraph)
            return " ".join(plain.split())
    return ""


def listed(name: str, summary: str, pages: Iterable[Page]) -> str:
    """Return llms.txt."""
    lines, section = [f"# {name}", "", f"> {summary}"], ""
    for page in pages:
        if page.section != section:
            section = page.section
            lines += ["", f"## {section}", ""]
        said = first_sentence(page.text)
        lines.append(f"- [{page.title}]({page.url})" + (f": {said}" if said else ""))
    return "\n".join(lines) + "\n"


def whole(name: str, summary: str, pages: Iterable[Page]) -> str:
    """Return llms-full.txt: the text of every page, each below its address."""
    texts = [f"# {name}\n\n> {summary}\n"]
    texts += [f"\n<!-- {page.url} -->\n\n{page.text.strip()}\n" for page in pages]
    return "".join(texts)
