"""Histories for other clients: the members of a request that hold a conversation.

In: messages in every form that `Model.stream` accepts; a protocol; a model.  Out: the members,
which an SDK's next call takes beside its own arguments.

Laws: the renderer of the dialect writes them, as for a Model. An excerpt gets no turn before it,
and its last turn is that of any other place. Content that the protocol cannot express is noted.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from deltafold.contract.exceptions import MisuseError
from deltafold.contract.names import RequestProtocol
from deltafold.dialects import Dialect, dialect_of
from deltafold.dialects.settings import ModelConfig
from deltafold.message.messages import Message, Role
from deltafold.models.call_inputs import Messages, Repair, conversation_of, examined
from deltafold.models.defaults import fields_for, vendor_of, vendor_speaking
from deltafold.models.vendors import VENDORS, Vendor

_UNKNOWN: Final = "unknown"
"""Model of a history that names none; only state that belongs to every model goes to it."""


class HistoryMembers(dict[str, Any]):
    """Members of a request that hold a conversation, such as `messages` and `system`.

    >>> members = deltafold.render_messages([Message.user("Hi")], "gemini")
    >>> members, members.notes
    ({'contents': [{'role': 'user', 'parts': [{'text': 'Hi'}]}]}, ())

    Attributes:
        notes: content that the members do not express unchanged, as `{code, message, messageIndex?,
            partIndex?}`; the codes are those of `NoteCode`.
    """

    notes: Sequence[Mapping[str, object]] = ()


def render_messages(
    history: Messages,
    protocol: RequestProtocol,
    *,
    model_id: str | None = None,
    vendor: str | None = None,
    system_prompt: str | None = None,
    repair: Repair = "none",
    excerpt: bool = False,
) -> HistoryMembers:
    """Render a conversation as the members of a request of any protocol, for the call of an SDK.

    >>> history = [Message.system("Be brief."), Message.user("Hi")]
    >>> claude = {"model_id": "claude-opus-4-8"}
    >>> members = deltafold.render_messages(history, "anthropic-messages", **claude)
    >>> sorted(members)
    ['messages', 'system']
    >>> members["messages"]
    [{'role': 'user', 'content': [{'type': 'text', 'text': 'Hi'}]}]
    >>> deltafold.render_messages(history, "openai-chat")["messages"][0]
    {'role': 'system', 'content': 'Be brief.'}

    `client.messages.create(model=..., max_tokens=..., **members)` sends them. Where boto3 takes
    bytes, they are bytes.

    Args:
        history: the conversation, in each form that `Model.stream` takes.
        protocol: the protocol of the request.
        model_id: the model of the request, which gets the state of its own answers back, such as
            signatures; None is the model of the newest answer.
        vendor: who is called, a name of `deltafold.VENDORS`: some want reasoning back in a member
            of their own. None is the vendor whose own API has the model, else the author of the
            protocol.
        system_prompt: a system message before the history.
        repair: "auto" mends what providers refuse, as for `Model.stream`.
        excerpt: whether these are some messages of a conversation whose others the caller has, so
            that nothing precedes them, nothing is asked to be continued, and nothing is repaired.

    Raises:
        MisuseError: no request is rendered in this protocol, the vendor does not speak it, or a
            part names a local file, which must be read first.
        ValueError: an item of the history is not a message; the error names its place.
    """
    row = dialect_of(protocol)
    messages = conversation_of(history, system_prompt, None)
    config, known = _config_of(row, _model_of(messages) if model_id is None else model_id, vendor)
    warnings: Sequence[Mapping[str, object]] = ()
    if not excerpt:
        messages, report = examined(messages, protocol, config, repair=repair, strict=False)
        warnings = report.to_warnings()
    rendered = row.render_history(messages, config, vendors=known.names, is_excerpt=excerpt)
    members = HistoryMembers(rendered.body)
    members.notes = (*warnings, *rendered.notes)
    return members


def _model_of(messages: Sequence[Message]) -> str:
    """Return the model of the newest answer."""
    answers = (one for one in reversed(messages) if one.role is Role.ASSISTANT)
    return next((one.meta.model_id for one in answers if one.meta.model_id), _UNKNOWN)


def _config_of(row: Dialect, model_id: str, name: str | None) -> tuple[ModelConfig, Vendor]:
    """Return the settings that the vendor needs for a model, and the vendor."""
    vendor = _vendor_of(row, model_id) if name is None else vendor_speaking(name, row.name)
    fields = fields_for(vendor, row.config_class)
    return row.config_class.model_validate({**fields, "model_id": model_id}), vendor


def _vendor_of(row: Dialect, model_id: str) -> Vendor:
    author = VENDORS[row.author]
    try:
        vendor = vendor_of(model_id)
    except MisuseError:
        return author
    return vendor if row.name in vendor.addresses else author
