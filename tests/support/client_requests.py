"""The smallest request of each protocol that clients of a gateway speak.

In: a protocol, and whether the answer is streamed.  Out: the path and the body.
"""

from typing import Final

PATHS: Final = {
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic-messages": "/v1/messages",
    "gemini": "/v1beta/models/m:generateContent",
}


def asked(protocol: str, *, streams: bool) -> tuple[str, dict[str, object]]:
    path = PATHS[protocol]
    if protocol == "gemini":
        if streams:
            path = "/v1beta/models/m:streamGenerateContent?alt=sse"
        return path, {"contents": [{"role": "user", "parts": [{"text": "?"}]}]}
    body: dict[str, object] = {"model": "m", "stream": streams}
    if protocol == "openai-responses":
        return path, {**body, "input": "?"}
    return path, {**body, "max_tokens": 9, "messages": [{"role": "user", "content": "?"}]}
