"""Each request of the corpus, cut before each answer and rendered, is a prefix of the next one.

In: the accepted requests of the corpus.  Out: their histories in their own dialect and in others.

Law: what breaks it stands in the table of docs/conversation.md. Of the table, histories can only
have the tools that Converse declares again.
"""

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from itertools import islice, pairwise
from typing import Any, Final

import pytest

import deltafold
from any_name import AnyName
from corpus import CORPUS, needs_corpus
from deltafold.dialects import dialect_of
from deltafold.dialects.rendered import IN_INPUT
from deltafold.message.messages import Role
from samples import sampled
from sessions import view

MODELS: Final = {
    "anthropic-messages": "claude-fable-5-1",
    "openai-chat": "gpt-5.4",
    "openai-responses": "gpt-5.4",
    "gemini": "gemini-3-pro",
    "bedrock-converse": "anthropic.claude-sonnet-4-5-20250929-v1:0",
}


def requests() -> Iterator[tuple[str, AnyName, Any]]:
    """Yield the id, the dialect and the body of each request that was answered."""
    with gzip.open(CORPUS / "requests.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            one = json.loads(line)
            if 200 <= one["status"] < 300:
                yield one["id"], one["dialect"], one["body"]


@sampled(10)
@needs_corpus
@pytest.mark.parametrize("target", [None, *MODELS], ids=lambda target: target or "own")
def test_a_history_is_a_prefix_of_the_next_request(target: AnyName | None, every: int) -> None:
    found: Counter[str] = Counter()
    broken: list[str] = []
    for name, dialect, body in islice(requests(), 0, None, every):
        if target == dialect:
            continue
        try:
            parsed = deltafold.parse_request(body, dialect)
            model_id = (body.get("model") or "m") if target is None else MODELS[target]
            config, _ = deltafold.migrate_config(parsed, target or dialect, model_id=model_id)
            bodies = rendered(target or dialect, parsed, config)
        except ValueError:
            found["not rendered"] += 1
            continue
        views = [view(one) for one in bodies]
        for (head, said), (next_head, next_said) in pairwise(views):
            if head[:-1] == next_head[:-1] and head[-1] is None and next_head[-1] is not None:
                found["tools of Converse"] += 1
                break
            if head != next_head or said != next_said[: len(said)]:
                broken.append(name)
                break
        found["histories"] += len(views) > 1
    assert broken == []
    assert found["histories"] > 600 // (2 * every), found
    assert found["tools of Converse"] <= 80, found


def rendered(dialect: str, parsed: Any, config: Any) -> list[Any]:  # noqa: ANN401 - of a dialect
    """Render a history up to each of its answers, and all of it."""
    messages = list(parsed.messages)
    cuts = [
        number
        for number in range(1, len(messages))
        if messages[number].role is Role.ASSISTANT
        and messages[number - 1].role is not Role.ASSISTANT
    ]
    ends = [*cuts, len(messages)]
    # A tool that an item declares is unknown before the item; the item declares it in its dialect.
    tools = [tool for tool in parsed.tools if tool.dialect != dialect or IN_INPUT not in tool.extra]
    return [dialect_of(dialect).render(messages[:end], tools, config).body for end in ends]
