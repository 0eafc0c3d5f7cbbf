"""Parts of a document that a measurement rewrites.

In: a document, the name of a part, and its text.  Out: the document with the text between the lines
`<!-- measured: NAME -->` and `<!-- end -->`.
"""

from pathlib import Path
from typing import Final

_END: Final = "<!-- end -->"


def rewrite(docs: Path, part: str, text: str) -> None:
    """Replace the text of a part.

    Raises:
        SystemExit: the document has no such part.
    """
    mark = f"<!-- measured: {part} -->\n"
    before, begin, rest = docs.read_text(encoding="utf-8").partition(mark)
    _, end, after = rest.partition(_END)
    if not begin or not end:
        raise SystemExit(f"{docs} has no place for {part}: {mark.strip()} {_END}")
    docs.write_text(f"{before}{begin}\n{text}\n\n{end}{after}", encoding="utf-8")
