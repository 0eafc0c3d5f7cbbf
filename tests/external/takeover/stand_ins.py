"""Replacements of modules that a project's tests import and that cannot be had without a network.

In: a project's name.  Out: the modules, replaced before a test module is imported.

Law: a replacement is the same in each run.
"""

import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import pytest


def stand_in(project: str) -> None:
    """Replace the modules of a project."""
    if project == "smolagents":
        _markers()
    if project == "langroid":
        _encoding()


def _markers() -> None:
    """Make `tests.utils.markers`, which the source of smolagents lacks.

    Its marks leave out tests that need a network, or a package that is not installed.
    """
    markers: Any = ModuleType("tests.utils.markers")
    markers.require_run_all = pytest.mark.skip(reason="needs the network")
    for package in ("torch", "soundfile"):
        missing = find_spec(package) is None
        mark = pytest.mark.skipif(missing, reason=f"{package} is not installed")
        setattr(markers, f"require_{package}", mark)
    sys.modules["tests.utils.markers"] = markers


def _encoding() -> None:
    """Replace the encodings that langroid loads from the network when it is imported.

    It counts tokens by them that a provider does not report. Here each byte is a token.
    """
    tiktoken: Any = import_module("tiktoken")
    encoding = tiktoken.Encoding(
        "bytes",
        pat_str=r"(?s).",
        mergeable_ranks={bytes([byte]): byte for byte in range(256)},
        special_tokens={},
    )
    tiktoken.get_encoding = tiktoken.encoding_for_model = lambda _: encoding
