"""The first call of a gateway imports nothing and builds no class: open streams would wait."""

import json
import subprocess
import sys
from typing import Final

import pytest

from client_requests import asked

PROGRAM: Final = """
import asyncio, json, sys
import httpx2
from pydantic import BaseModel
import deltafold
from deltafold.gateway import create_app
from deltafold.testing import Recording, ReplayTransport

ANSWERS = {
    "openai-chat": 'data: {"id":"c","choices":[{"delta":{"content":"Hi"},"index":0,'
    '"finish_reason":"stop"}]}\\n\\ndata: [DONE]\\n\\n',
    "anthropic-messages": 'data: {"type":"message_start","message":{"id":"m","content":[]}}\\n\\n'
    'data: {"type":"content_block_start","index":0,'
    '"content_block":{"type":"text","text":"Hi"}}\\n\\n'
    'data: {"type":"content_block_stop","index":0}\\n\\n'
    'data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{}}\\n\\n'
    'data: {"type":"message_stop"}\\n\\n',
}

def unfinished(kind):
    for one in kind.__subclasses__():
        if one.__module__.startswith("deltafold") and not one.__pydantic_complete__:
            yield one.__qualname__
        yield from unfinished(one)

async def main(upstream, path, body):
    transport = ReplayTransport(flat_out=True)
    transport.queue(Recording.of(ANSWERS[upstream].encode()))
    model = deltafold.load_model(
        upstream + "/m", client=transport, base_url="http://up.example", api_key="k"
    )
    app = create_app({"*": model})
    at = httpx2.ASGITransport(app)
    async with httpx2.AsyncClient(transport=at, base_url="http://localhost") as client:
        await client.get("/health")
        before, late = set(sys.modules), set(unfinished(BaseModel))
        answer = await client.post(path, json=json.loads(body))
        assert answer.status_code == 200, answer.text
        imported = {name for name in set(sys.modules) - before if name.startswith("deltafold")}
        print(json.dumps([sorted(imported), sorted(late - set(unfinished(BaseModel)))]))

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize(
    ("protocol", "upstream"),
    [
        ("openai-chat", "anthropic-messages"),
        ("openai-responses", "openai-chat"),
        ("anthropic-messages", "openai-chat"),
        ("gemini", "anthropic-messages"),
    ],
)
def test_the_first_call_imports_and_builds_nothing(protocol: str, upstream: str) -> None:
    path, body = asked(protocol, streams=True)
    command = [sys.executable, "-c", PROGRAM, upstream, path, json.dumps(body)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    imported, built = json.loads(done.stdout)
    assert imported == []
    assert built == []
