"""Types as names in annotations: a type is imported when its annotation is evaluated.

In: the name of a type.  Out: the type.

A stream that is read as deltas or text needs no pydantic, no cost and no timing.  Its methods are
annotated `"data_types.Message"`: type checkers read the imports below, and `typing.get_type_hints`
finds the class in this module.
"""

from typing import TYPE_CHECKING, Final

from deltafold.contract.lazy_names import names_on_first_use

if TYPE_CHECKING:
    from deltafold.contract.names import MarkupName, ProtocolName, TargetName
    from deltafold.contract.usage import Usage
    from deltafold.message.cost import Cost, CostSource
    from deltafold.message.messages import Message
    from deltafold.message.timing import Timing

__all__ = [
    "Cost",
    "CostSource",
    "MarkupName",
    "Message",
    "ProtocolName",
    "TargetName",
    "Timing",
    "Usage",
]

__getattr__: Final = names_on_first_use(
    __name__,
    {
        "deltafold.contract.names": ("MarkupName", "ProtocolName", "TargetName"),
        "deltafold.message.cost": ("Cost", "CostSource"),
        "deltafold.message.messages": ("Message",),
        "deltafold.message.timing": ("Timing",),
        "deltafold.contract.usage": ("Usage",),
    },
)
