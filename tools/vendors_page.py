"""Writes docs/vendors.md, the page of all vendors and servers, from the table of the code.

In: `deltafold.VENDORS`.  Out: the page: a table of hosted vendors, a table of servers that a user
runs, and the sources of the rows.

Law: the same table gives the same bytes; nothing of a row is written by hand.

    python tools/vendors_page.py
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from deltafold import VENDORS, Vendor

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "docs" / "vendors.md"

OWN_MACHINE: Final = "http://127.0.0.1"

NAMES: Final = "models.md#names"
"""Section of the documentation about the names of models."""

HEAD: Final = f"""\
# Vendors and servers

A model is named `vendor/model`. The first column has the vendor's name, and the names that mean
the same:

```python
import deltafold

model = deltafold.load_model("groq/openai/gpt-oss-120b", api_key="...")
own = deltafold.load_model("vllm/my-model", base_url="http://10.0.0.5:8000/v1")
```

The key comes from the first variable of the row that is set, or from `api_key`. The first protocol
is the usual one; `load_model(name, specification="anthropic-messages")` picks another
([names]({NAMES})). `base_url` replaces the address. `deltafold models` prints the table, and which
keys are set.

A server or a proxy that is not listed is called under the name of one that speaks its protocol. For
Chat Completions, such as that of SGLang, this is `vllm/my-model` with the `base_url` of the
server, and with `api_key` if the server has one.

"""

HOSTED: Final = """\
## Vendors

Braces in an address mark your own resource, account, region or workspace: pass the whole address as
`base_url`. A protocol without an address (`-`) needs a client of the vendor's SDK.

"""

OWN: Final = """\
## Servers that you run

The addresses are those of a server on the same machine. `local` is a model of transformers in the
process itself, without a server.

"""

SOURCES: Final = """\
## Sources

Each row was compared with public documentation, or with files of packages that hold the same facts,
in the month of the last column.

"""


def page() -> str:
    """Return the page."""
    vendors = list({vendor.name: vendor for vendor in VENDORS.values()}.values())
    own = [vendor for vendor in vendors if _is_own(vendor)]
    hosted = [vendor for vendor in vendors if not _is_own(vendor)]
    head = ("name", "protocols", "key", "address, notes")
    tables = [_table(head, [_row(vendor) for vendor in found]) for found in (hosted, own)]
    sources = _table(
        ("name", "sources", "compared"),
        [(f"`{one.name}`", "<br>".join(map(_source, one.sources)), one.checked) for one in vendors],
    )
    return f"{HEAD}{HOSTED}{tables[0]}\n{OWN}{tables[1]}\n{SOURCES}{sources}"


def _is_own(vendor: Vendor) -> bool:
    """Return whether a vendor is a server of the user's machine, or a model in its process."""
    addresses = [address for address in vendor.addresses.values() if address is not None]
    return all(address.startswith(OWN_MACHINE) for address in addresses)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _row(vendor: Vendor) -> tuple[str, ...]:
    """Return the cells of a vendor."""
    addresses = dict.fromkeys(vendor.addresses.values())
    return (
        ", ".join(f"`{name}`" for name in vendor.names),
        "<br>".join(f'<code class="whole">{dialect}</code>' for dialect in vendor.addresses),
        _key(vendor),
        "<br>".join([*map(_address, addresses), *_notes(vendor)]),
    )


def _address(address: str | None) -> str:
    """Return an address that a narrow column may break behind its slashes and dots."""
    if address is None:
        return "-"
    return f"<code>{re.sub(r'(?<=[/.])(?=[^/])', '<wbr>', address)}</code>"


def _key(vendor: Vendor) -> str:
    """Return the variables of a key, in the order in which they are read."""
    if vendor.key_variable is None:
        token = vendor.token_variable
        return "none" if token is None else f"none; `{token}` is sent if it is set"
    named = (*vendor.earlier_key_variables, vendor.key_variable, vendor.token_variable)
    return ", ".join(f"`{variable}`" for variable in named if variable is not None)


def _notes(vendor: Vendor) -> Iterator[str]:
    """Yield what else a caller should know."""
    if vendor.thinking_dialect is not None:
        yield f"models that think: `{vendor.thinking_dialect}`"
    if vendor.address_variables:
        variables = ", ".join(f"`{variable}`" for variable in vendor.address_variables)
        yield f"address also from {variables}"
    if not vendor.follows_schema:
        yield "does not hold an output to a schema"
    elif not vendor.schema_beside_tools:
        yield "a schema or tools, not both in one request"
    if not vendor.takes_tool_choice:
        yield "a call of a tool cannot be forced"


def _source(source: str) -> str:
    """Return a link to a page, or the name of a file of a package."""
    if not source.startswith("https://"):
        return f"`{source}`"
    return f"[{source.split('/')[2]}]({source})"


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
