"""Pydantic models as names in annotations: a model is imported when its annotation is evaluated.

In: the name of a model.  Out: its class.

A stream that is read as deltas or text needs no pydantic.  Its methods are annotated
`"data_types.Message"`: type checkers read the imports below, and `typing.get_type_hints` finds the
class in this module.
"""

from typing import TYPE_CHECKING, Final

from deltafold.lazy_names import names_on_first_use

if TYPE_CHECKING:
    from deltafold.messages import Message
    from deltafold.usage import Usage

__all__ = ["Message", "Usage"]

__getattr__: Final = names_on_first_use(
    __name__, {"deltafold.messages": ("Message",), "deltafold.usage": ("Usage",)}
)
