"""Page of inspections: one HTML file that needs nothing else.

In: one inspection, or two and their first difference.  Out: the text of the page; a page back into
its inspections.

Laws: the content of a recording is JSON in an element that is not executed, in which no tag can
end or begin. The policy of the page allows the two inline elements by their hashes: its own script
and style. It forbids network access, and strings as HTML or code (Trusted Types).

The sources are the files of `assets`. Each script is an ES module of its own, for editors and type
checkers; the page holds them as one module, joined in the order of `MODULES` without their imports
and exports. Joining needs no tool, so that the wheel is built without npm, and the script of the
page is the readable source.
"""

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from typing import Final

from deltafold.contract.kinds import json_array, json_object
from deltafold.inspector.comparison import Difference
from deltafold.inspector.inspection import Inspection

MODULES: Final = (
    "text",
    "copying",
    "problems",
    "rows",
    "tree",
    "parts",
    "player",
    "timeline",
    "lines",
    "finding",
    "chosen",
    "link",
    "recording",
    "main",
)
"""The scripts; each one imports only those before it."""

_MODULE_LINE: Final = re.compile(r"^import .*?;\n|^export (?=class|const|function)", re.MULTILINE)
_DATA_START: Final = '<script type="application/json" id="data">'
_DATA_END: Final = "</script>"
_POLICY: Final = (
    "default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; "
    "img-src data:; base-uri 'none'; form-action 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)


def make_page(inspections: Sequence[Inspection], difference: Difference | None = None) -> str:
    """Return the page of one inspection, or of two beside each other.

    >>> page = make_page([inspection])
    >>> page.startswith("<!doctype html>"), read_page(page)[0].name
    (True, 'recording')

    Args:
        inspections: one or two.
        difference: their first disagreement, which the page marks.
    """
    shown = {
        "recordings": [inspection.to_dict() for inspection in inspections],
        "difference": None if difference is None else difference.to_dict(),
    }
    text = json.dumps(shown, ensure_ascii=False, separators=(",", ":"))
    # Nothing in an element of HTML begins or ends without this character. The two others end
    # a line in older JavaScript.
    text = text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    title = " and ".join(inspection.name for inspection in inspections)
    head, middle, tail = _frame()
    return f"{head}{escape(title)}{middle}{_DATA_START}{text}{_DATA_END}{tail}"


def make_index(title: str, links: Mapping[str, str]) -> str:
    """Return a page of links: what each is called, and its address."""
    style = _style()
    rows = "".join(
        f'<li><a href="{escape(address)}">{escape(name)}</a></li>\n'
        for name, address in links.items()
    )
    policy = f"default-src 'none'; style-src 'sha256-{_hash(style)}'; img-src data:"
    page = _asset("index.html").replace("POLICY", policy).replace("STYLE", style)
    before, _, after = page.partition("LINKS")
    return f"{before.replace('TITLE', escape(title))}{rows}{after}"


def is_page(content: bytes) -> bool:
    """Return whether a file is a page of `make_page`."""
    return content.startswith(b"<!doctype html>") and _DATA_START.encode() in content


def read_page(page: str) -> list[Inspection]:
    """Return the inspections of a page, as the version of deltafold that made it saw them.

    Raises:
        ValueError: the text is not a page of `make_page`.
    """
    _, start, rest = page.partition(_DATA_START)
    if not start:
        raise ValueError("not a page of `deltafold inspect`")
    try:
        shown = json_object(json.loads(rest.partition(_DATA_END)[0])) or {}
    except RecursionError as error:
        raise ValueError("the data of the page are nested too deeply") from error
    recordings = [json_object(one) for one in json_array(shown.get("recordings")) or ()]
    if not recordings:
        raise ValueError("the page has no recording")
    return [Inspection.from_dict(one or {}) for one in recordings]


@cache
def _frame() -> tuple[str, str, str]:
    """Return the page around its title and its data."""
    style = _style()
    script = "\n" + "\n".join(_MODULE_LINE.sub("", _asset(f"{name}.js")) for name in MODULES)
    policy = _POLICY.format(script=_hash(script), style=_hash(style))
    page = _asset("page.html").replace("POLICY", policy).replace("STYLE", style)
    before, _, after = page.partition("TITLE")
    middle, _, tail = after.partition("DATA")
    return before, middle, tail.replace("SCRIPT", script)


def _style() -> str:
    return f"\n{_asset('style.css')}"


def _asset(name: str) -> str:
    return (files("deltafold.inspector") / "assets" / name).read_text("utf-8")


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
