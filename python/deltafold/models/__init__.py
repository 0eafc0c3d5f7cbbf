"""Models: one way to call any provider.

Names load on first use, so that importing deltafold imports no SDK.
"""

from typing import TYPE_CHECKING, Final

from deltafold.contract.lazy_names import names_on_first_use
from deltafold.dialects import DIALECTS

if TYPE_CHECKING:
    from deltafold.dialects.capability import Capability
    from deltafold.dialects.local.settings import LocalConfig
    from deltafold.dialects.settings import CacheConfig, ModelConfig
    from deltafold.models.adapters import *  # noqa: F403 - the names are there
    from deltafold.models.base import Model
    from deltafold.models.hooks import Hooks, RequestContext
    from deltafold.models.info import ModelInfo, RequestMetadata
    from deltafold.models.loader import load_model
    from deltafold.models.local import LocalModel
    from deltafold.models.vendors import VENDORS, Vendor
    from deltafold.specs.tool_specs import ToolChoice, ToolSpec
    from deltafold.transports.response_info import RateLimit, ResponseInfo
    from deltafold.transports.timeouts import Timeouts

__all__ = [
    "VENDORS",
    "CacheConfig",
    "Capability",
    "Hooks",
    "LocalConfig",
    "LocalModel",
    "Model",
    "ModelConfig",
    "ModelInfo",
    "RateLimit",
    "RequestContext",
    "RequestMetadata",
    "ResponseInfo",
    "Timeouts",
    "ToolChoice",
    "ToolSpec",
    "Vendor",
    "load_model",
]

_ADAPTERS: Final = [name for row in DIALECTS.values() for name in (row.config, row.model)]

if not TYPE_CHECKING:  # type checkers read the names in adapters.py
    __all__ += list(_ADAPTERS)

__getattr__: Final = names_on_first_use(
    __name__,
    {
        "deltafold.dialects.capability": ("Capability",),
        "deltafold.dialects.local.settings": ("LocalConfig",),
        "deltafold.dialects.settings": ("CacheConfig", "ModelConfig"),
        "deltafold.models.adapters": _ADAPTERS,
        "deltafold.models.base": ("Model",),
        "deltafold.models.hooks": ("Hooks", "RequestContext"),
        "deltafold.models.info": ("ModelInfo", "RequestMetadata"),
        "deltafold.models.loader": ("load_model",),
        "deltafold.models.local": ("LocalModel",),
        "deltafold.models.vendors": ("VENDORS", "Vendor"),
        "deltafold.specs.tool_specs": ("ToolChoice", "ToolSpec"),
        "deltafold.transports.response_info": ("RateLimit", "ResponseInfo"),
        "deltafold.transports.timeouts": ("Timeouts",),
    },
)
