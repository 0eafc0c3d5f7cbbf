"""llms.txt names every page with its first sentence, and llms-full.txt has every text."""

import re

from corpus import ROOT
from documentation import text_of
from llms import Page, first_sentence, listed, whole

PAGES = [
    Page("Start", "deltafold", "index.html", "# deltafold\n\nIt folds. It is fast.\n"),
    Page("How-to", "Use tools", "how-to/tools.html", "# Use tools\n\n```python\nx = 1\n```\n"),
    Page(
        "How-to",
        "Cost",
        "how-to/cost.html",
        "# Cost\n\nA [price](https://example.com) of\nan answer: all.",
    ),
]


def test_each_page_is_a_link_with_its_first_sentence() -> None:
    assert listed("deltafold", "Reads streams.", PAGES) == (
        "# deltafold\n\n> Reads streams.\n"
        "\n## Start\n\n- [deltafold](index.html): It folds.\n"
        "\n## How-to\n\n- [Use tools](how-to/tools.html)\n"
        "- [Cost](how-to/cost.html): A price of an answer:\n"
    )


def test_the_whole_has_every_text() -> None:
    text = whole("deltafold", "Reads streams.", PAGES)
    assert all(page.text.strip() in text and f"<!-- {page.url} -->" in text for page in PAGES)


def test_most_pages_of_the_site_begin_with_a_sentence() -> None:
    pages = re.findall(
        r"^\s+- (?:\w+: )?([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE
    )
    texts = [text_of(f"docs/{page}") for page in pages if (ROOT / "docs" / page).exists()]
    assert len(texts) > 50
    assert sum(bool(first_sentence(text)) for text in texts) > 0.9 * len(texts)
