"""Spark folds with two worker processes (`mapInArrow`)."""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from documented import recipe, run

pytest.importorskip("pyspark")
pytestmark = pytest.mark.skipif(
    shutil.which("java") is None, reason="Spark needs a Java runtime, and `java` is not on PATH"
)


def test_two_workers_fold_the_file(
    folder: Path, same: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    names = run(recipe("spark"), {})
    names["spark"].stop()
    same(folder / "messages")
