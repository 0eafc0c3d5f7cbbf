"""Chunks of Chat that belong to one of several answers, and streams of them."""

from protocol_bodies import DONE


def chunk(choices: str, rest: str = "") -> bytes:
    body = f'{{"id":"c","model":"m","choices":[{choices}]{rest}}}'
    return f"data: {body}\n\n".encode()


def said(choice: int, text: str) -> bytes:
    return chunk(f'{{"index":{choice},"delta":{{"content":"{text}"}}}}')


def finished(choice: int, reason: str) -> bytes:
    return chunk(f'{{"index":{choice},"delta":{{}},"finish_reason":"{reason}"}}')


def called(choice: int) -> bytes:
    function = f'{{"name":"f","arguments":"{{\\"n\\":{choice}}}"}}'
    return chunk(
        f'{{"index":{choice},"delta":{{"tool_calls":[{{"index":0,"function":{function}}}]}}}}'
    )


USAGE = chunk("", ',"usage":{"prompt_tokens":9,"completion_tokens":40,"total_tokens":49}')


def chat(count: int) -> bytes:
    """Write answers that interleave; every third one calls a tool, and the last one is late."""
    text = b"".join(
        said(choice, f" {choice}w{word}") for word in range(5) for choice in range(count - 1)
    )
    late = said(count - 1, "late")
    ends = b"".join(
        called(choice) + finished(choice, "tool_calls")
        if choice % 3 == 2
        else finished(choice, "length" if choice % 2 else "stop")
        for choice in reversed(range(count))
    )
    return chunk("") + text + late + ends + USAGE + DONE
