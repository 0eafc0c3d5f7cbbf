"""The table of vendors: every row is usable, every recorded provider has one."""

import json

import pytest

import deltafold
from corpus import CORPUS, needs_corpus
from deltafold.models.vendors import VENDORS, Vendor

# Stands for any server of the tests that it comes from.
NO_VENDOR = {"mock-openai"}


@pytest.mark.parametrize("vendor", VENDORS.values(), ids=list(VENDORS))
def test_a_row_names_known_dialects_and_addresses(vendor: Vendor) -> None:
    assert set(vendor.addresses) <= set(deltafold.dialect_names())
    for base_url in vendor.addresses.values():
        assert base_url is None or base_url.startswith(("https://", "http://127.0.0.1"))
    assert VENDORS[vendor.name] is vendor


def test_names_are_unique() -> None:
    rows = {id(row): row for row in VENDORS.values()}.values()
    assert sum(1 + len(row.aliases) for row in rows) == len(VENDORS)


@needs_corpus
def test_every_recorded_provider_has_its_row() -> None:
    manifest = CORPUS / "manifest.jsonl"
    streams = [json.loads(line) for line in manifest.read_text().splitlines()]
    for stream in streams:
        if stream["provider"] in NO_VENDOR:
            continue
        vendor = VENDORS[stream["provider"]]
        if stream["dialect"] != "other":
            assert stream["dialect"] in vendor.addresses, stream["id"]
