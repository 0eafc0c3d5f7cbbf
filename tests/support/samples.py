"""Samples: a part of a large set in `make test`, and all of it in `make check NAME=slow`.

In: how large the part is.  Out: the parameter `every` of a test, which reads each so-manieth case.

Law: the whole set is always a test too, with the mark `slow`. Where each case is a test of its own,
the mark `one_in` of `conftest.py` takes the sample.
"""

import pytest


def sampled(every: int) -> pytest.MarkDecorator:
    """Run a test on a sample, and with the mark `slow` on all cases (`every` is 1)."""
    sample = pytest.param(every, id=f"1 in {every}")
    whole = pytest.param(1, id="all", marks=pytest.mark.slow)
    return pytest.mark.parametrize("every", [sample, whole])
