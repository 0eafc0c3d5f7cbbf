"""The table of vendors: every row is usable, every recorded provider has one."""

import json
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

import deltafold
from corpus import CORPUS, needs_corpus
from deltafold import MisuseError, ModelError, load_model
from deltafold.models.vendors import VENDORS, Vendor
from deltafold.testing import Recording, ReplayTransport
from sdk_clients import openai_client

# Stands for any server of the tests that it comes from.
NO_VENDOR = {"mock-openai"}


@pytest.mark.parametrize("vendor", VENDORS.values(), ids=list(VENDORS))
def test_a_row_names_known_dialects_and_addresses(vendor: Vendor) -> None:
    assert set(vendor.addresses) <= set(deltafold.dialect_names())
    for base_url in vendor.addresses.values():
        assert base_url is None or base_url.startswith(("https://", "http://127.0.0.1"))
    assert VENDORS[vendor.name] is vendor


@pytest.mark.parametrize("vendor", VENDORS.values(), ids=list(VENDORS))
def test_a_row_has_sources_and_the_month_of_its_check(vendor: Vendor) -> None:
    assert re.fullmatch(r"20\d\d-(0[1-9]|1[0-2])", vendor.checked)
    assert vendor.sources
    for source in vendor.sources:
        if source == "recording" or source.startswith("https://"):
            continue
        assert re.fullmatch(r"\w+(/\w+)+\.py", source)
        package, _, file = source.partition("/")
        spec = find_spec(package)
        # The packages of frameworks are installed in other environments.
        if spec is not None and spec.submodule_search_locations:
            folders = map(Path, spec.submodule_search_locations)
            assert any((folder / file).is_file() for folder in folders), source


def test_writer_is_called_at_a_path_of_its_own() -> None:
    transport = ReplayTransport({"*": Recording.error(500, {})})
    model = load_model("writer/palmyra-x5", client=transport, api_key="k")
    with pytest.raises(ModelError):
        model.send_message_sync("Hello")
    assert transport.requests[0].path == "/v1/chat"


def test_a_client_of_an_sdk_cannot_call_a_path_of_its_own() -> None:
    model = load_model("writer/palmyra-x5", client=openai_client([]))
    with pytest.raises(MisuseError, match="writer answers at /chat"):
        model.send_message_sync("Hello")


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
