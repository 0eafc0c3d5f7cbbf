"""Comparison of the content of two request bodies: of a source and of its rendering elsewhere.

In: a parsed request and its walked body, or two walked bodies.  Out: the losses that no note of the
rendered request explains.

Laws: turns keep their order, and so do the texts of one role and the calls. A result answers the
same call. Nothing is sent twice. A note explains one loss, and only a loss of a kind that its code
names.
"""

import base64
import binascii
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from content_kinds import Block, Call, Content, Inside, Json, Medium, Reasoning, Result, Text, Tool
from content_walker import Walk
from conversations import MODELS
from deltafold import ParsedRequest, Rendered
from deltafold.dialects import dialect_of
from sdk_types import check

EXPLAINED_BY: Final[Mapping[str, tuple[str, ...]]] = {
    "arguments": ("arguments_dropped",),
    "border": (),
    "block": ("part_replaced", "part_dropped"),
    "call": ("call_dropped",),
    "error flag": ("error_flag_dropped",),
    "medium": ("part_replaced", "part_dropped"),
    "order": (),
    "reasoning": ("thinking_dropped",),
    "result": (),
    "second": (),
    "text": (),
    "tool": (),
}
"""Codes of the notes that explain the loss of each kind of content."""


MARKED: Final = re.compile(r"<system>\n(.*)\n</system>", re.DOTALL)


class Loss(NamedTuple):
    """Content of the source that the target does not have."""

    kind: str
    shown: str


@dataclass
class Stream:
    """Texts of one speaker with their places among the contents, searched in order."""

    texts: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    is_cited: bool = False
    is_glued: bool = False
    _number: int = 0
    _offset: int = 0

    def next_place(self, text: str) -> int | None:
        """Return the place of a text after the text found before; white space aside.

        Afterwards, `is_glued` states whether both are one word now.
        """
        # The end of an answer that is to be continued has no white space.
        wanted, offset = text.strip(), self._offset
        for number in range(self._number, len(self.texts)):
            place, said = self.texts[number]
            found = said.find(wanted, offset)
            if found >= 0:
                border = said[found - 1 : found + 1]
                self.is_glued = 0 < found == offset and not any(map(str.isspace, border))
                self._number, self._offset = number, found + len(wanted)
                return place
            offset = 0
        return None

    def place_of(self, text: str, after: int = -1) -> int | None:
        """Return the first place of a text, if possible after another place."""
        places = [place for place, said in self.texts if text.strip() in said]
        return next((place for place in places if place >= after), next(iter(places), None))


def faults(request: ParsedRequest, source: Walk, target: str) -> list[object]:
    """Return the silent losses of a request in another dialect, and the refusal of its client."""
    row = dialect_of(target)
    config = row.config_class.model_validate({"model_id": MODELS[target]})
    # The types of the clients are those of the streaming request.
    rendered = row.render(request.messages, request.tools, config, stream=True)
    body = json.loads(json.dumps(rendered.body))
    found: list[object] = [*silent_losses(source, Walk(target, body), rendered)]
    try:
        check(target, body)
    except (AssertionError, LookupError, ValueError) as refusal:
        found.append(refusal)
    return found


def silent_losses(source: Walk, target: Walk, rendered: Rendered) -> list[Loss]:
    """Return the losses that no note explains."""
    notes = Counter(str(note["code"]) for note in rendered.notes)
    silent: list[Loss] = []
    for loss in _Comparison(source, target, rendered).losses:
        code = next((code for code in EXPLAINED_BY[loss.kind] if notes[code]), None)
        if code is None:
            silent.append(loss)
        else:
            notes[code] -= 1
    return silent


class _Comparison:
    def __init__(self, source: Walk, target: Walk, rendered: Rendered) -> None:
        self.losses: list[Loss] = []
        self._names, self._ids = rendered.tool_names, rendered.call_ids
        self._spoken: dict[str, Stream] = {}
        self._media: dict[tuple[str, str], list[tuple[int, str]]] = {}
        self._every_text = Stream()
        self._blocks: dict[Block, int] = {}
        self._encrypted: list[int] = []
        self._results: dict[int, Result] = {}
        self._strays: dict[str | None, list[Result]] = {}
        self._calls: list[tuple[int, Call]] = []
        codes = {str(note["code"]) for note in rendered.notes}
        self._marks_system = "system_as_user" in codes
        for place, content in enumerate(target.contents):
            self._collect(content, place)
        self._compare_contents(source)
        self._compare_tools(source.tools, target.tools)

    def _lose(self, kind: str, shown: object) -> None:
        self.losses.append(Loss(kind, repr(shown)[:500]))

    def _collect(self, content: Content, place: int) -> None:  # noqa: C901 - one case a form
        match content:
            case Text("user", text, _) if self._marks_system and (said := MARKED.fullmatch(text)):
                # A system message between the turns, in a protocol that has none there.
                self._stream("system").texts.append((place, said[1]))
            case Text(role, text, _):
                self._stream(role).texts.append((place, text))
                self._every_text.texts.append((place, text))
            case Reasoning(""):
                self._encrypted.append(place)
            case Reasoning(text):
                self._stream("reasoning").texts.append((place, text))
            case Medium(_, form, value, kind):
                self._media.setdefault((form, value), []).append((place, kind))
            case Block(_, _, texts):
                self._blocks[content] = place
                self._every_text.texts.extend((place, text) for text in texts)
            case Json(value):
                self._every_text.texts.append((place, json.dumps(value, ensure_ascii=False)))
            case Call():
                self._calls.append((place, content))
            case Result(call, call_id, contents):
                if call is None:
                    self._strays.setdefault(self._ids.get(call_id or "", call_id), []).append(
                        content
                    )
                else:
                    self._results[call] = content
                for inner in contents:
                    self._collect(inner, place)

    def _stream(self, role: str) -> Stream:
        return self._spoken.setdefault(role, Stream())

    def _compare_contents(self, source: Walk) -> None:
        """Compare in the order of the source: the turns of the target have the same order."""
        self._counterparts: list[int | None] = []
        self._latest = before = -1
        speaker = ""
        inside = [c for r in source.contents if isinstance(r, Result) for c in r.contents]
        seen = Counter(
            (m.form, m.value) for m in [*source.contents, *inside] if isinstance(m, Medium)
        )
        for content in source.contents:
            if isinstance(content, Result):
                self._compare_result(content)
                continue
            role = content.role if isinstance(content, Text | Medium) else "assistant"
            place = self._place_of(content)
            # Of equal media, any can be the one that a note explains.
            is_ordered = not isinstance(content, Reasoning | Block)
            if isinstance(content, Medium):
                is_ordered = seen[content.form, content.value] == 1
            if place is None or role in {"system", "refusal"} or not is_ordered:
                continue
            if role != speaker:
                speaker, before = role, self._latest
            if place < before:
                self._lose("order", content)
            self._latest = max(self._latest, place)
        sent = [number for number in self._counterparts if number is not None]
        second = [call for n, (_, call) in enumerate(self._calls) if n not in sent]
        for extra in [*second, *(item for item in self._media.items() if item[1])]:
            self._lose("second", extra)

    def _place_of(  # noqa: C901 - one case a form
        self, content: Inside | Reasoning | Call
    ) -> int | None:
        """Return the place of a content in the target, None if it is lost or blank."""
        place: int | None = None
        match content:
            case Text(_, text, _) if not text.strip():
                return None
            case Text("system", text, _):
                # System messages can move to the front.
                place = self._stream("system").place_of(text)
            case Text("refusal", text, _):
                # Chat has refusals beside the texts; most protocols have texts only.
                streams = map(self._stream, ("refusal", "assistant"))
                found = (stream.place_of(text) for stream in streams)
                place = next((place for place in found if place is not None), None)
            case Text(role, _, _):
                place = self._next_place(content, self._stream(role))
            case Reasoning(""):
                place = self._encrypted.pop(0) if self._encrypted else None
            case Reasoning(text):
                place = self._stream("reasoning").next_place(text)
            case Medium():
                place = self._place_of_medium(content)
            case Block() if content in self._blocks:
                place = self._blocks[content]
            case Block(_, _, texts):
                places = [self._every_text.place_of(text) for text in texts]
                place = None if None in places else next(iter(places), None)
            case Call():
                place = self._place_of_call(content)
            case Json():
                pass
        if place is None:
            self._lose(type(content).__name__.lower(), content)
        return place

    def _next_place(self, text: Text, stream: Stream) -> int | None:
        """Return the place of a text; texts that no citation splits keep a border."""
        place = stream.next_place(text.text)
        if place is not None and stream.is_glued and not (text.is_cited or stream.is_cited):
            self._lose("border", text)
        stream.is_cited = text.is_cited
        return place

    def _place_of_call(self, call: Call) -> int | None:
        """Pair the calls in order."""
        start = max((n for n in self._counterparts if n is not None), default=-1) + 1
        for number in range(start, len(self._calls)):
            place, target = self._calls[number]
            has_id = None in {call.id, target.id} or self._ids.get(target.id or "") == call.id
            has_id = has_id or target.id == call.id
            if has_id and self._names.get(target.name, target.name) == call.name:
                self._counterparts.append(number)
                if target.arguments != call.arguments:
                    self._lose("arguments", (call, target))
                return place
        self._counterparts.append(None)
        return None

    def _place_of_medium(self, medium: Medium) -> int | None:
        found = self._media.get((medium.form, medium.value), [])
        for position, (place, kind) in enumerate(found):
            if kind == medium.kind or not kind or not medium.kind:
                del found[position]
                return place
        text = _text_of(medium)
        return None if text is None else self._every_text.place_of(text, self._latest)

    def _compare_result(self, result: Result) -> None:
        target: Result | None = None
        if result.call is None:
            strays = self._strays.get(result.id)
            target = strays.pop(0) if strays else None
        else:
            call = self._counterparts[result.call]
            target = None if call is None else self._results.get(call)
        if target is None:
            self._lose("result", result)
            return
        if result.is_error and not target.is_error:
            self._lose("error flag", result)
        texts = [inner.text for inner in target.contents if isinstance(inner, Text)]
        said = Stream(list(enumerate(texts)))
        for content in result.contents:
            match content:
                case Text(_, text, _):
                    if text.strip() and self._next_place(content, said) is None:
                        self._lose("text", (content, target))
                case Json(value):
                    if not any(_holds(inner, value) for inner in target.contents):
                        self._lose("result", (content, target))
                case _:
                    self._place_of(content)

    def _compare_tools(self, source: Sequence[Tool], target: Sequence[Tool]) -> None:
        found = {self._names.get(tool.name, tool.name): tool for tool in target}
        for tool in source:
            again = found.get(tool.name)
            if again is None or again.description != tool.description:
                self._lose("tool", (tool, again))
            elif again.schema != tool.schema:
                self._lose("tool", (tool.name, tool.schema, again.schema))


def _text_of(medium: Medium) -> str | None:
    """Return the text of a text file."""
    if medium.form != "data":
        return None
    try:
        return base64.b64decode(medium.value + "=" * (-len(medium.value) % 4)).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


def _holds(inner: Inside, value: Any) -> bool:  # noqa: ANN401 - any JSON
    """Return whether a content of a result is a JSON value, or its text."""
    if isinstance(inner, Json):
        return inner.value in (value, {"error": value}, {"output": value})
    if not isinstance(inner, Text):
        return False
    try:
        return bool(json.loads(inner.text) == value)
    except ValueError:
        forms = (json.dumps(value, ensure_ascii=False, separators=s) for s in (None, (",", ":")))
        return any(form in inner.text for form in forms)
