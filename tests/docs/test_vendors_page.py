"""docs/vendors.md is what tools/vendors_page.py writes from the table of vendors."""

import re

from deltafold import VENDORS
from vendors_page import PAGE, page


def test_the_page_is_what_the_script_writes() -> None:
    assert PAGE.read_text(encoding="utf-8") == page()


def test_the_page_has_each_name_key_and_address_of_the_table() -> None:
    text = page()
    for vendor in VENDORS.values():
        (row,) = [line for line in text.splitlines() if line.startswith(f"| `{vendor.name}`")][:1]
        shown = re.findall(r"`(.+?)`|<code[^>]*>(.+?)</code>", row.replace("<wbr>", ""))
        stated = (*vendor.names, *vendor.addresses, *vendor.addresses.values(), vendor.key_variable)
        assert {*stated} - {None} <= {name for pair in shown for name in pair}
