"""The class of a client of the mistralai SDK.

Out: the class, from the module that has it in the installed version: `mistralai.client` since
version 2, `mistralai` before.
"""

from importlib import import_module
from typing import Any, Final

_MODULES: Final = tuple(map(import_module, ("mistralai.client", "mistralai")))

Mistral: Final[Any] = next(module.Mistral for module in _MODULES if hasattr(module, "Mistral"))
