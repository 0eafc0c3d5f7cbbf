"""The logger `deltafold`, which every room writes to."""

import logging
from typing import Final

LOGGER: Final = logging.getLogger("deltafold")
LOGGER.addHandler(logging.NullHandler())  # without it, Python prints warnings to standard error
