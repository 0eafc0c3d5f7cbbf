"""The store of docs/how-to/stores.md is that of examples/folder_store.py, and passes the check."""

import inspect
from pathlib import Path

import pytest

import folder_store
from deltafold.conversation import Store
from deltafold.testing import check_store
from documentation import text_of


def test_the_store_of_the_page_is_the_example() -> None:
    assert inspect.getsource(folder_store.FolderStore) in text_of("docs/how-to/stores.md")


def test_the_example_is_a_store(tmp_path: Path) -> None:
    store = folder_store.FolderStore(tmp_path)
    assert isinstance(store, Store)
    check_store(lambda: store)
    check_store(lambda: folder_store.FolderStore(tmp_path))


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    folder_store.main()
    assert capsys.readouterr().out == "1\n"
