"""Requests of agent sessions, as clients write them, and with what goes wrong in some of them.

In: a seed, the protocol of the client, and whether the session has faults.  Out: the bytes of a
request.

Laws: the same seed gives the same request. Texts, ids and arguments differ from seed to seed.
"""

import json
import random
from collections.abc import Callable
from typing import Any, Final, TypeAlias, cast

Body: TypeAlias = dict[str, Any]

WORDS: Final = (
    "def",
    "return",
    "x = 1",
    '"text"',
    "{",
    "}",
    "überprüfen",
    "東京",
    "🙂",
    "a\\b",
    "\t",
)
NUMBERS: Final = (0, -7, 2.5, 1e22, 1e-7, 10**20, -0.0, 123456789.25)

TOOLS: Final = ("read_file", "write_file", "run_tests")


class Session:
    """One session: what its user, its model and its tools say."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - no secret
        self._ids = 0

    def text(self, words: int = 12) -> str:
        """Return a text that shows something."""
        rest = [self.random.choice(WORDS) for _ in range(self.random.randrange(words))]
        return " ".join([f"text {self.random.randrange(10**9)}", *rest])

    def call_id(self) -> str:
        """Return an id that no other call has."""
        self._ids += 1
        return f"call_{self.random.randrange(10**6)}_{self._ids}"

    def arguments(self, *, odd: bool = False) -> Body:
        """Return the arguments of a call."""
        made: Body = {
            "path": f"/src/{self.random.randrange(10**6)}.py",
            "n": self.random.randrange(9),
        }
        if self.random.random() < 0.3:
            made["inner"] = {"list": [1, None, True, self.text(4)], "empty": {}}
        if odd:
            made["number"] = self.random.choice(NUMBERS)
        return made

    def chance(self, share: float) -> bool:
        """Return True in this share of the cases."""
        return self.random.random() < share


def chat(session: Session, turns: int) -> Body:
    """Return a request of Chat Completions."""
    messages: list[Body] = [{"role": "system", "content": session.text(400)}]
    messages.append({"role": "user", "content": session.text()})
    for _ in range(turns):
        calls = [
            {
                "id": session.call_id(),
                "type": "function",
                "function": {
                    "name": session.random.choice(TOOLS),
                    "arguments": json.dumps(session.arguments(odd=session.chance(0.02))),
                },
            }
            for _ in range(session.random.choice((0, 1, 1, 1, 2, 3)))
        ]
        answer: Body = {"role": "assistant", "content": session.text()}
        if calls:
            answer["tool_calls"] = calls
            if session.chance(0.3):
                answer["content"] = None
        messages.append(answer)
        results = [
            {"role": "tool", "tool_call_id": call["id"], "content": session.text(40)}
            for call in calls
        ]
        if session.chance(0.1):
            session.random.shuffle(results)
        messages += results
        if not calls or session.chance(0.1):
            messages.append({"role": "user", "content": session.text()})
    tools = [
        {
            "type": "function",
            "function": {
                "name": name,
                "description": "Reads a file. " * 9,
                "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
            },
        }
        for name in TOOLS
    ]
    return {"model": "gpt-5-mini", "messages": messages, "tools": tools, "stream": True}


def messages(session: Session, turns: int) -> Body:
    """Return a request of Anthropic's Messages."""
    mark = {"cache_control": {"type": "ephemeral"}}
    said: list[Body] = [{"role": "user", "content": [{"type": "text", "text": session.text()}]}]
    for _ in range(turns):
        blocks: list[Body] = []
        if session.chance(0.2):
            signature = f"sig{session.random.randrange(10**12)}=="
            blocks.append({"type": "thinking", "thinking": session.text(), "signature": signature})
        if session.chance(0.7):
            blocks.append({"type": "text", "text": session.text()})
        calls = [
            {
                "type": "tool_use",
                "id": session.call_id(),
                "name": session.random.choice(TOOLS),
                "input": session.arguments(odd=session.chance(0.02)),
            }
            for _ in range(session.random.choice((0, 1, 1, 2)) if blocks else 1)
        ]
        said.append({"role": "assistant", "content": [*blocks, *calls]})
        answers: list[Body] = []
        for call in calls:
            content: Any = session.text(40)
            if session.chance(0.5):
                content = [{"type": "text", "text": content}]
            result = {"type": "tool_result", "tool_use_id": call["id"], "content": content}
            answers.append(result | ({"is_error": True} if session.chance(0.1) else {}))
        if not calls or session.chance(0.1):
            answers.append({"type": "text", "text": session.text()})
        said.append({"role": "user", "content": answers})
    said[-1]["content"][-1] |= mark
    system = [{"type": "text", "text": session.text(400), **mark}]
    tools = [
        {"name": name, "description": "Reads a file. " * 9, "input_schema": {"type": "object"}}
        for name in TOOLS
    ]
    return {
        "model": "claude-sonnet-4-5",
        "max_tokens": 4096,
        "system": system,
        "messages": said,
        "tools": tools,
    }


def responses(session: Session, turns: int) -> Body:
    """Return a request of Responses."""
    items: list[Body] = [
        {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": session.text()}],
        }
    ]
    for number in range(turns):
        if session.chance(0.3):
            items.append(
                {
                    "type": "reasoning",
                    "id": f"rs_{number}",
                    "summary": [],
                    "encrypted_content": f"gAAAA{session.random.randrange(10**12)}",
                }
            )
        calls = [session.call_id() for _ in range(session.random.choice((0, 1, 1, 2)))]
        if not calls or session.chance(0.5):
            content: list[Body] = [
                {"type": "output_text", "text": session.text(), "annotations": []}
            ]
            answer = {"type": "message", "id": f"msg_{number}", "status": "completed"}
            items.append({**answer, "role": "assistant", "content": content})
        items += [
            {
                "type": "function_call",
                "call_id": call,
                "name": session.random.choice(TOOLS),
                "arguments": json.dumps(session.arguments()),
            }
            for call in calls
        ]
        items += [
            {"type": "function_call_output", "call_id": call, "output": session.text(40)}
            for call in calls
        ]
        if not calls:
            items.append({"role": "user", "content": session.text()})
    tools: list[Body] = [
        {
            "type": "function",
            "name": name,
            "description": "Reads a file. " * 9,
            "parameters": {"type": "object", "properties": {}},
        }
        for name in TOOLS
    ]
    return {
        "model": "gpt-5-mini",
        "instructions": session.text(400),
        "input": items,
        "tools": tools,
    }


CLIENTS: Final[dict[str, tuple[Callable[[Session, int], Body], str]]] = {
    "openai-chat": (chat, "messages"),
    "anthropic-messages": (messages, "messages"),
    "openai-responses": (responses, "input"),
}
"""What writes the requests of a protocol, and the member of the history."""


def _strings(value: object, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Return the places of all texts in a value: their container, and their key or index."""
    places: list[tuple[Any, object]] = []
    if isinstance(value, dict):
        places = [*cast("Body", value).items()]
    elif isinstance(value, list):
        places = [*enumerate(cast("list[object]", value))]
    for key, inner in places:
        if isinstance(inner, str):
            found.append((cast("Any", value), key))
        else:
            _strings(inner, found)
    return found


ODD_TEXTS: Final = (
    "",
    " ",
    "\n\t",
    "\u00a0",
    "\ud800",
    "call_1",
    "call_0_1",
    "<system>\nx\n</system>",
    "eyJkZWx0YWZvbGQiOjF9",
    "[1]",
    "{}",
    '{"a":1,"a":2}',
    '{"n": 1e400}',
    "\u0000",
    "x" * 90,
)


Change: TypeAlias = Callable[[Session, list[Any]], None]


def _place(session: Session, items: list[Any]) -> int:
    return session.random.randrange(len(items))


def _leave_out(session: Session, items: list[Any]) -> None:
    del items[_place(session, items)]


def _repeat(session: Session, items: list[Any]) -> None:
    items.insert(_place(session, items), json.loads(json.dumps(session.random.choice(items))))


def _odd_text(session: Session, items: list[Any]) -> None:
    holder, key = session.random.choice(_strings(items, []))
    holder[key] = session.random.choice(ODD_TEXTS)


def _unknown_member(session: Session, items: list[Any]) -> None:
    value: Any = session.random.choice(("1", "null", '{"deep": [[[]]]}'))
    session.random.choice(items)["unknown"] = json.loads(value)


def _image(session: Session, items: list[Any]) -> None:
    url = {"url": "data:image/png;base64,iVBORw0KGgo="}
    content = [{"type": "text", "text": session.text()}, {"type": "image_url", "image_url": url}]
    items.insert(_place(session, items), {"role": "user", "content": content})


def _another_message(session: Session, items: list[Any]) -> None:
    role = session.random.choice(("system", "user", "assistant"))
    items.insert(_place(session, items), {"role": role, "content": session.text()})


def _exchange(session: Session, items: list[Any]) -> None:
    first, second = _place(session, items), _place(session, items)
    items[first], items[second] = items[second], items[first]


def _cut(session: Session, items: list[Any]) -> None:
    del items[_place(session, items) :]


def _wrong_type(session: Session, items: list[Any]) -> None:
    holder, key = session.random.choice(_strings(items, []))
    holder[key] = json.loads(session.random.choice(("null", "7", "[]", "{}")))


CHANGES: Final[tuple[Change, ...]] = (
    _leave_out,
    _repeat,
    _odd_text,
    _unknown_member,
    _image,
    _another_message,
    _exchange,
    _cut,
    _wrong_type,
)


def broken(session: Session, body: Body, history: str) -> Body:
    """Change a request in a few places, as bugs of clients and edits of histories do."""
    items: list[Any] = body[history]
    for _ in range(session.random.randrange(1, 4)):
        session.random.choice(CHANGES)(session, items)
        if not items:
            items.append({"role": "user", "content": session.text()})
    return body


def written(session: Session, body: Body) -> bytes:
    """Return the JSON of a request in one of the ways that clients write it."""
    ways: tuple[dict[str, Any], ...] = (
        {},
        {"separators": (",", ":"), "ensure_ascii": False},
        {"indent": 1},
    )
    text = json.dumps(body, **session.random.choice(ways))
    if session.chance(0.03):  # a key twice, which the last value decides
        text = text.replace('"role": "user"', '"role": "assistant", "role": "user"', 1)
    return text.encode(errors="surrogatepass")


def request_of(seed: int, protocol: str, *, faulty: bool) -> bytes:
    """Return the request of a session."""
    session = Session(seed)
    write, history = CLIENTS[protocol]
    body = write(session, session.random.choice((1, 3, 8, 20)))
    return written(session, broken(session, body, history) if faulty else body)
