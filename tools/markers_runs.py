"""Runs of the library over the values of one type.

In: a `Root`.  Out: how many events, members and alternatives there were, and the findings.

Laws: an event of a stream goes into the smallest stream of its protocol, a whole answer is folded
as it is, and a request is parsed and rendered in its own dialect.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

import deltafold
from deltafold import ModelError
from markers_frames import STREAMS
from markers_judge import Finding, Judge, Result, result_of
from markers_lawful import LAWFUL, complete_request, decided
from markers_requests import of_request
from markers_sdks import Root
from markers_values import Marked, Place, Values, marked

if TYPE_CHECKING:
    from any_name import AnyName


@dataclass
class Run:
    """What the values of one type gave.

    Attributes:
        root: the type.
        events: number of the values.
        markers: number of the markers in them.
        paths: number of different members and alternatives.
        kept: number of markers and words that were kept.
        generic: paths that are kept only in a part or a member without a meaning of its own.
        findings: everything else.
        made: alternatives that the values hold, as record, member and alternative.
    """

    root: Root
    events: int = 0
    markers: int = 0
    paths: set[str] = field(default_factory=set[str])
    kept: int = 0
    generic: set[str] = field(default_factory=set[str])
    findings: set[Finding] = field(default_factory=set[Finding])
    made: set[tuple[str, str, str]] = field(default_factory=set[tuple[str, str, str]])


def run(root: Root) -> Run:
    """Make the values of a type and judge each."""
    values, judge = Values(), Judge(root.sdk, root.protocol)
    found = Run(root)
    outcome = OUTCOMES[root.form]
    declared: set[str] = set()
    for event, made in lawful_events(root, values):
        declared.update(made.markers.values())
        sent = made.sent()
        found.events += 1
        found.markers += len(sent.markers) + len(sent.words)
        judge.judge(event, sent, outcome(root.protocol, made.value))
    judge.finish(declared)
    found.paths, found.kept, found.generic = judge.seen, judge.kept, judge.generic
    found.findings, found.made = judge.findings, values.made
    return found


def lawful_events(root: Root, values: Values) -> Iterator[tuple[str, Marked]]:
    """Yield the values of a type with their markers, as the protocol allows them."""
    complete = LAWFUL.get(root.protocol, _as_it_is)
    if root.form == "request":
        complete = partial(complete_request, root.protocol)
    decides = partial(decided, root.protocol)
    for event, shape in root.events():
        for value in values.of(shape, f"{event}:", Place("", root.name)):
            made = marked(value, decides)
            complete(cast("dict[str, Any]", made.value), root.form)
            yield event, made


def _as_it_is(_value: object, _form: str) -> None:
    """Leave a value as it is."""


def run_all(roots: Iterable[Root]) -> list[Run]:
    """Run each type."""
    return [run(root) for root in roots]


def of_body(protocol: "AnyName", body: bytes) -> Result:
    """Fold a body, and return the message, or the error with what came before it."""
    try:
        return result_of(deltafold.fold(body, protocol, logprobs=True))
    except ModelError as error:
        before = result_of(error.partial_message) if error.partial_message else Result({})
        said = {
            "code": error.code,
            "message": error.message,
            "providerCode": error.provider_code,
            "status": error.status,
            "retryAfter": error.retry_after,
            "requestId": error.http_request_id,
            "body": error.body,
        }
        warnings = [*before.warnings, *(dict(warning) for warning in error.warnings)]
        return Result({**before.value, "error": said}, warnings)


def of_stream(protocol: str, event: Any) -> Result:  # noqa: ANN401 - JSON
    """Fold the smallest stream around an event."""
    return of_body(protocol, STREAMS[protocol](event))


def of_answer(protocol: str, answer: Any) -> Result:  # noqa: ANN401 - JSON
    """Fold a whole answer."""
    return of_body(protocol, json.dumps(answer).encode())


OUTCOMES: Final[dict[str, Callable[[str, Any], Result]]] = {
    "stream": of_stream,
    "answer": of_answer,
    "request": of_request,
}
