"""Ray Data folds with two actors; the death of one of them changes nothing."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from documented import recipe, run

ray: Any = pytest.importorskip("ray")


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray.init(
        num_cpus=3,
        include_dashboard=False,
        object_store_memory=1 << 30,
        _node_ip_address="127.0.0.1",
    )
    yield
    ray.shutdown()


def test_two_actors_fold_the_file(folder: Path, same: Callable[[Path], None]) -> None:
    run(recipe("ray"), {})
    same(folder / "messages")


def test_a_killed_worker_changes_nothing(folder: Path, same: Callable[[Path], None]) -> None:
    define, use = recipe("ray")
    names = run([define], {})
    fold = names["Fold"]
    killed = folder / "killed"
    workers = folder / "workers"
    workers.mkdir()

    class Mortal(fold):  # type: ignore[misc, valid-type]
        """The class of the recipe; the first worker with a second batch dies in it."""

        def __call__(self, batch: pa.Table) -> pa.Table:
            worker = workers / str(os.getpid())
            if worker.exists():
                with suppress(FileExistsError), killed.open("x") as file:
                    file.write(worker.name)
                    file.flush()
                    os.kill(os.getpid(), signal.SIGKILL)
            folded = super().__call__(batch)
            worker.touch()
            return folded

    run([use], {**names, "Fold": Mortal})
    assert killed.read_text() in {worker.name for worker in workers.iterdir()}
    same(folder / "messages")
