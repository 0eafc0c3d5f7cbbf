"""The first use of a model class, when pydantic may not have built its validator yet.

Each case runs in a process of its own, in which several threads use the classes first at the same
moment.
"""

import json
import subprocess
import sys
from typing import Final

import pytest

PROGRAM: Final = """
import copy, json, pickle, sys, threading
import pydantic, pydantic_core
import deltafold

body = b'data: {"id":"a","model":"m","choices":[{"delta":{"reasoning_content":"H","content":"Hi",'
body += b'"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]},'
body += b'"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":1,'
body += b'"total_tokens":2}}\\n\\ndata: [DONE]\\n\\n'

def folded():
    return deltafold.fold(body, "openai-chat", run_id="r")

def holder():
    class Holder(pydantic.BaseModel):
        message: deltafold.Message
        parts: list[deltafold.MessagePart]
        usage: deltafold.Usage
        meta: deltafold.Meta
    return Holder

def held(make):
    message = folded()
    return make(message=message, parts=message.parts, usage=message.meta.usage, meta=message.meta)

def kinds(values):
    return [type(value).__name__ for value in values]

def use():
    try:
        start.wait()
        found.append(eval(sys.argv[1]))
    except Exception as error:
        found.append(f"{type(error).__name__}: {error}")

sys.setswitchinterval(1e-5)
found, start = [], threading.Barrier(4)
threads = [threading.Thread(target=use) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(json.dumps(found))
"""
BUILT_BETWEEN: Final = """
import linecache, sys
import deltafold

def build_before_pydantic_does(frame, event, argument):
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
    if event == "line" and ".rebuild()" in line:
        sys.settrace(None)
        kind.model_rebuild()
    return build_before_pydantic_does

kind = getattr(deltafold, sys.argv[1])
sys.settrace(build_before_pydantic_does)
print(kind.model_json_schema()["title"])
"""
KINDS: Final = ["thinking", "text", "tool_call"]
CASES: Final = {
    "[part['kind'] for part in folded().model_dump()['parts']]": KINDS,
    "[part['kind'] for part in json.loads(folded().model_dump_json())['parts']]": KINDS,
    "[part.model_dump()['kind'] for part in folded().parts]": KINDS,
    "folded().meta.model_dump(mode='json')['usage']['totalTokens']": 2,
    "folded().meta.usage.model_dump()['totalTokens']": 2,
    "[part['kind'] for part in held(holder()).model_dump()['parts']]": KINDS,
    "json.loads(held(holder().model_construct).model_dump_json())['message']['role']": "assistant",
    "json.loads(pydantic.TypeAdapter(object).dump_json(folded()))['role']": "assistant",
    "[part['kind'] for part in pydantic_core.to_jsonable_python(folded().parts)]": KINDS,
    "json.loads(pydantic_core.to_json([folded().meta, folded()]))[1]['role']": "assistant",
    "kinds(pydantic.TypeAdapter(list[deltafold.MessagePart]).validate_python("
    "[{'kind': 'text', 'payload': {'text': 'a'}}]))": ["TextPart"],
    "type(deltafold.Message.user('a')).__name__": "Message",
    "kinds(deltafold.Message.from_json(folded().to_json()).parts)": [
        "ThinkingPart",
        "TextPart",
        "ToolCallPart",
    ],
    "folded().same_content(copy.deepcopy(folded()))": True,
    "folded().same_content(pickle.loads(pickle.dumps(folded())))": True,
    "folded().model_copy(update={'run_id': 'other'}, deep=True).run_id": "other",
    "deltafold.Message.model_json_schema()['title']": "Message",
    "type('Own', (deltafold.Message,), {})(role='user', parts=[]).to_dict()['role']": "user",
    "deltafold.AnthropicConfig(model_id='m').model_dump()['model_id']": "m",
}


@pytest.mark.parametrize("use", CASES)
def test_threads_use_a_class_first(use: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, use],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [CASES[use]] * 4


@pytest.mark.parametrize("kind", ["Message", "Usage", "AnthropicConfig", "CacheConfig"])
def test_another_thread_builds_a_class_before_pydantic_makes_its_schema(kind: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BUILT_BETWEEN, kind],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.strip() == kind, done.stderr
