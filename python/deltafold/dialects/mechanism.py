"""Mechanisms of providers that hold an answer to a schema, as data of the registry.

Source: the guides of the providers to structured outputs (read 2026-11).
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mechanism:
    """Form of a schema that a provider accepts.

    Attributes:
        has_name: whether the request has a name and a description of the schema.
        has_strict: whether the request has the member `strict`.
        is_closed: whether the provider refuses a schema outside its strict subset.
        keeps_limits: whether the strict subset has limits of values.
        is_recursive: whether the strict subset has recursive definitions.
        takes_tools: whether one request can have a schema and tools.
    """

    has_name: bool = False
    has_strict: bool = False
    is_closed: bool = False
    keeps_limits: bool = False
    is_recursive: bool = True
    takes_tools: bool = True
