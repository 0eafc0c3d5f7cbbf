"""The mark `one_in(n)`: one in n cases of a test is in `make test`, the others are slow.

And the number of processes: tests wait for sockets, processes and clocks for a third of their time.
And the seed of generated cases: a gate says the same of the same tree. The weekly workflow sets
`HYPOTHESIS_PROFILE=default`, so that each of its runs searches elsewhere.
"""

import os
from collections import Counter
from contextlib import suppress

import pytest

with suppress(ModuleNotFoundError):  # the environments of some checks have no hypothesis
    from hypothesis import settings

    settings.register_profile("same", derandomize=True)
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


@pytest.hookimpl(tryfirst=True)  # before the marks are selected
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the mark `slow` to the cases that are no part of a sample."""
    seen = Counter[str]()
    for item in items:
        mark = item.get_closest_marker("one_in")
        if mark is None:
            continue
        function = item.nodeid.partition("[")[0]
        if seen[function] % mark.args[0]:
            item.add_marker(pytest.mark.slow)
        seen[function] += 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return the number of processes of `--numprocesses auto`: three keep two cores busy."""
    return (os.cpu_count() or 2) * 3 // 2
