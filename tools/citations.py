#!/usr/bin/env python3
"""Citation check: what a comment cites stands in a page of this repository.

In: the Rust, Python, TOML and Markdown files of the repository, as git lists them, and the pages of
`docs/`.
Out: one line `file:line: what is wrong: what to do` for each wrong citation, and exit status 1 if
there is one.

Laws: a cited page is a path from the root, and it exists. A cited anchor exists in its page: the
slug of a heading, an explicit id of a heading, an `<a id>`, or a name that a page of the reference
documents. A document that is not in the repository is no source of a rule. Links between the pages
are not checked here, because mkdocs does. Names in quotation marks outside of `docs/` are data.
Recordings at `../shared/corpus` are input of tests and may be named. Addresses of other hosts may
end in any name. `docs/blueprint.md` quotes the founding documents.
"""

import argparse
import re
import shutil
import subprocess
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple, cast

ROOT: Final = Path(__file__).parents[1]

GIT: Final = shutil.which("git") or "git"

SUFFIXES: Final = frozenset({".rs", ".py", ".pyi", ".toml", ".md"})
QUOTING_PAGE: Final = "docs/blueprint.md"
"""Page that maps the founding documents, and names them."""

REPEATED_NAMES: Final = frozenset({"SOURCE.md"})
"""Names of files that many folders have, which are cited by their name alone."""

# A citation may continue on the next line of a comment.
_GAP = r"\s+(?:(?://[!/]?|\#)\s*)?"

_OUTSIDE: Final = re.compile(
    rf"protocol{_GAP}notes|(?<!docs/)(?<!\]\()(?<!\.\./)\bprotocols/[a-z-]+\.md"
    rf"|history{_GAP}blueprint|core{_GAP}domain{_GAP}model|message{_GAP}schema"
    rf"|message{_GAP}and{_GAP}model{_GAP}abstraction|(?<![\w-])shared/(?!corpus\b)[\w./-]*\w"
)
_NAMED: Final = re.compile(
    r"(?<![\w/.-])(?P<path>docs/(?:[\w-]+/)*[\w-]+\.md|(?<![\"'])(?:[\w-]+/)*[\w-]+\.md)\b"
    r"(?:\#(?P<anchor>[\w-]+(?:\.[\w-]+)*))?"
)
_LINK: Final = re.compile(r"\]\([^)\s]*\)|^\[[^\]]+\]:\s*\S+", re.MULTILINE)

_FENCE: Final = re.compile(r"^(?P<marks>`{3,}|~{3,}).*?^(?P=marks)\s*$", re.MULTILINE | re.DOTALL)
_HEADING: Final = re.compile(
    r"^#{1,6}\s+(?P<title>.*?)(?:\s*\{:?(?P<attributes>[^}]*)\})?\s*$", re.MULTILINE
)
_EXPLICIT: Final = re.compile(r"\#([\w.-]+)")
_ELEMENT: Final = re.compile(r"<\w+[^>]*\b(?:id|name)=\"([^\"]+)\"")
_DOCUMENTED: Final = re.compile(r"^::: ([\w.]+)", re.MULTILINE)
_MARKUP: Final = re.compile(r"\[([^\]]*)\]\([^)]*\)|[`*]|<[^>]+>")


class Fault(NamedTuple):
    """One wrong citation."""

    offset: int
    what: str


def slug(title: str) -> str:
    """Return the id that the `toc` extension of Markdown gives a heading."""
    plain = _MARKUP.sub(lambda found: found[1] or "", title)
    ascii_text = unicodedata.normalize("NFKD", plain).encode("ascii", "ignore").decode()
    kept = re.sub(r"[^\w\s-]", "", ascii_text).strip().lower()
    return re.sub(r"[-\s]+", "-", kept)


def anchors_of(markdown: str) -> set[str]:
    """Return the anchors of a page."""
    text = _FENCE.sub("", markdown)
    found = {*_ELEMENT.findall(text), *_DOCUMENTED.findall(text)}
    for heading in _HEADING.finditer(text):
        explicit = _EXPLICIT.search(heading["attributes"] or "")
        name = explicit[1] if explicit else slug(heading["title"])
        number = 0
        while (unique := name if number == 0 else f"{name}_{number}") in found:
            number += 1
        found.add(unique)
    return found


@dataclass(frozen=True)
class Tree:
    """The files of a repository.

    Attributes:
        root: the folder of the repository.
        files: the files that git lists, as paths from the root.
    """

    root: Path
    files: frozenset[str]

    @classmethod
    def of(cls, root: Path) -> "Tree":
        """List the files of a repository, without those that git ignores."""
        command = [GIT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True)
        names = filter(None, listed.stdout.split("\0"))
        return cls(root, frozenset(name for name in names if (root / name).is_file()))

    @cache  # noqa: B019 - a tree lives as long as the run
    def anchors(self, page: str) -> set[str]:
        """Return the anchors of a page."""
        return anchors_of((self.root / page).read_text(encoding="utf-8"))

    def faults(self, file: str) -> Iterator[Fault]:
        """Yield the wrong citations of a file."""
        text = (self.root / file).read_text(encoding="utf-8")
        if file != QUOTING_PAGE:
            for found in _OUTSIDE.finditer(text):
                words = re.sub(_GAP, " ", found[0])
                yield Fault(found.start(), f"{words!r} is a document outside of the repository")
        for found in _NAMED.finditer(_without_links(text, file)):
            what = self._fault_of(found["path"], found["anchor"], file)
            if what is not None:
                yield Fault(found.start(), what)

    def _fault_of(self, path: str, anchor: str | None, file: str) -> str | None:
        beside = (Path(file).parent / path).as_posix()
        page = beside if path not in self.files and file.endswith(".md") else path
        if page in self.files:
            has_anchor = anchor is None or anchor in self.anchors(page)
            return None if has_anchor else f"{path} has no anchor {anchor!r}"
        if path in REPEATED_NAMES or path.startswith("protocols/"):
            return None  # the second is already a document outside of the repository
        kind = "page" if path.startswith("docs/") else "file"
        return f"{path} is no {kind} of the repository"


def _without_links(text: str, file: str) -> str:
    """Blank the links of a page of `docs/`, which mkdocs checks."""
    if not (file.endswith(".md") and file.startswith("docs/")):
        return text
    return _LINK.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def _advice(what: str) -> str:
    if "has no anchor" in what:
        return "cite a heading of the page, or give it `{ #id }`"
    return "cite a page of docs/ by its path, such as docs/protocols/decoding.md#g6"


def complaints(root: Path) -> Iterator[str]:
    """Yield one line for each wrong citation of a repository."""
    tree = Tree.of(root)
    for file in sorted(tree.files):
        if Path(file).suffix not in SUFFIXES:
            continue
        text = (root / file).read_text(encoding="utf-8")
        for fault in sorted(tree.faults(file)):
            line = text.count("\n", 0, fault.offset) + 1
            yield f"{file}:{line}: {fault.what}: {_advice(fault.what)}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Check the repository; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--root", type=Path, default=ROOT, help="the repository")
    found = list(complaints(cast("Path", parser.parse_args(arguments).root)))
    print("\n".join(found) or "every citation names a page and an anchor of the repository")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
