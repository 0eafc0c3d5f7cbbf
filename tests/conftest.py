"""The mark `one_in(n)`: one in n cases of a test is in `make test`, the others are slow."""

from collections import Counter

import pytest


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
