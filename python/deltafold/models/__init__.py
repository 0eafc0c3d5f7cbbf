"""Models: one way to call any provider.

Names load on first use, so that importing deltafold imports no SDK.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

from deltafold.dialects import DIALECTS

if TYPE_CHECKING:
    from deltafold.dialects.capability import Capability
    from deltafold.dialects.local.settings import LocalConfig
    from deltafold.dialects.settings import CacheConfig, ModelConfig
    from deltafold.models.adapters import *  # noqa: F403 - the names are there
    from deltafold.models.base import Model
    from deltafold.models.hooks import Hooks, RequestContext
    from deltafold.models.info import ModelInfo, RequestMetadata
    from deltafold.models.loading import load_model
    from deltafold.models.local import LocalModel
    from deltafold.models.vendors import VENDORS, Vendor
    from deltafold.tool_specs import ToolChoice, ToolSpec
    from deltafold.transports.http1 import Http1Client
    from deltafold.transports.response_info import RateLimit, ResponseInfo
    from deltafold.transports.timeouts import Timeouts

__all__ = [
    "VENDORS",
    "CacheConfig",
    "Capability",
    "Hooks",
    "Http1Client",
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

_MODULES: Final = {
    **dict.fromkeys(_ADAPTERS, "deltafold.models.adapters"),
    "CacheConfig": "deltafold.dialects.settings",
    "Capability": "deltafold.dialects.capability",
    "Hooks": "deltafold.models.hooks",
    "Http1Client": "deltafold.transports.http1",
    "LocalConfig": "deltafold.dialects.local.settings",
    "LocalModel": "deltafold.models.local",
    "Model": "deltafold.models.base",
    "ModelConfig": "deltafold.dialects.settings",
    "ModelInfo": "deltafold.models.info",
    "RateLimit": "deltafold.transports.response_info",
    "RequestContext": "deltafold.models.hooks",
    "RequestMetadata": "deltafold.models.info",
    "ResponseInfo": "deltafold.transports.response_info",
    "Timeouts": "deltafold.transports.timeouts",
    "ToolChoice": "deltafold.tool_specs",
    "ToolSpec": "deltafold.tool_specs",
    "VENDORS": "deltafold.models.vendors",
    "Vendor": "deltafold.models.vendors",
    "load_model": "deltafold.models.loading",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_MODULES[name]), name)
    return value
