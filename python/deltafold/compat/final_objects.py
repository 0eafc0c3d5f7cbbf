"""Body of the whole answer that a message was folded from, for the final objects of the SDKs.

In: a folded message.  Out: the members of the answer in a protocol, with the counts, the time and
the facts that the provider itself sent.

Law: what a message does not hold is left out: the settings of the request, which some providers
repeat in their answer.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, cast

from deltafold.contract.exceptions import MisuseError
from deltafold.message import data_types
from deltafold.streams.encoded import encode_message

_OK: Final = 200


class Facts(NamedTuple):
    """Members of a protocol that a message keeps beside its parts.

    Attributes:
        details: names of `message.meta.details` that are members of the answer.
        of_choice: names of it that are members of the one choice.
        counts: members of every record of counts of this protocol.
        others: members of such records of other protocols alone.
    """

    details: Sequence[str]
    of_choice: Sequence[str]
    counts: frozenset[str]
    others: frozenset[str] = frozenset()


def final_body(
    message: "data_types.Message", dialect: "data_types.TargetName", facts: Facts
) -> dict[str, object]:
    """Return the members of the answer.

    Raises:
        MisuseError: the message is not an answer, or its protocol has it as an error.
    """
    written = encode_message(message, dialect)
    if written.status != _OK:
        raise MisuseError("the protocol has an error in place of this answer")
    body = cast("dict[str, object]", written.json)
    known = message.meta.details or {}
    body.update((name, known[name]) for name in facts.details if name in known)
    choices = cast("list[dict[str, object]]", body.get("choices", []))
    for choice in choices:
        choice.update((name, known[name]) for name in facts.of_choice if name in known)
    raw = None if message.meta.usage is None else message.meta.usage.raw
    if raw is not None and facts.counts <= raw.keys() and facts.others.isdisjoint(raw):
        body["usage"] = dict(raw)
    return body
