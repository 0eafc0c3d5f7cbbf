"""`deltafold chat`: a conversation with a model in the terminal.

In: the name of a model; lines of the user, or a prompt.  Out: each answer while it grows, its usage
and its cost.

Laws: Ctrl-C ends the answer and keeps what came. A failed turn is taken back, so that the next one
starts from a history that the provider accepts. Nothing is stored.
"""

import json
import sys
from collections.abc import Iterable
from typing import Any, Final

from deltafold import DeltaKind, Message, MisuseError, Model, ModelError, load_model
from deltafold.cli.exits import EXIT_DONE, EXIT_ERROR, EXIT_USAGE, complain
from deltafold.cli.screen import open_screen, say

_SCALARS: Final = {"true": True, "false": False}
_TEXTS: Final = frozenset({"api_key", "base_url", "known_as", "specification", "transport"})
"""Settings that are texts, also where one looks like a number."""
_OF_A_PROGRAM: Final = frozenset({"client", "error_mapper", "hooks", "timeouts"})
"""Arguments of a Model that no text can be."""


def chat(name: str, prompt: str | None, system_prompt: str | None, settings: Iterable[str]) -> int:
    """Talk with a model; returns the exit code.

    Args:
        name: `vendor/model`.
        prompt: the only message of the user; None reads lines, or all of a pipe.
        system_prompt: the system prompt.
        settings: fields of the configuration, each as `name=value`; objects and lists are JSON.
    """
    try:
        given: dict[str, Any] = dict(map(_setting, settings))
        model = load_model(name, **given)
    except (MisuseError, ValueError) as problem:
        complain(problem)
        return EXIT_USAGE
    with model:
        if prompt is None and not sys.stdin.isatty():
            prompt = sys.stdin.read()
        if prompt is not None:
            return _answer(model, [Message.user(prompt)], system_prompt)
        return _converse(model, system_prompt)


def _setting(text: str) -> tuple[str, Any]:
    name, mark, value = text.partition("=")
    if not mark or not name:
        raise MisuseError(f"--set {text!r} must be NAME=VALUE, such as max_tokens=500")
    if name in _OF_A_PROGRAM:
        raise MisuseError(f"--set {name}: it is an object, which a program alone can give")
    if name in _TEXTS:
        return name, value
    if value in _SCALARS:
        return name, _SCALARS[value]
    if value.startswith(("{", "[")):
        try:
            return name, json.loads(value)
        except ValueError as wrong:
            raise MisuseError(f"--set {name}: not valid JSON: {wrong}") from wrong
    for number in (int, float):
        try:
            return name, number(value)
        except ValueError:
            continue
    return name, value


def _converse(model: Model[Any], system_prompt: str | None) -> int:
    say(f"{model.provider_id}/{model.model_id}; an empty line or Ctrl-D ends the conversation")
    messages: list[Message] = []
    while True:
        try:
            line = input("> ").strip()
        except (EOFError, KeyboardInterrupt):
            print()
            return EXIT_DONE
        if not line:
            return EXIT_DONE
        messages.append(Message.user(line))
        if _answer(model, messages, system_prompt) == EXIT_USAGE:
            return EXIT_USAGE


def _answer(model: Model[Any], messages: list[Message], system_prompt: str | None) -> int:
    """Show the answer and append it; a message without an answer is taken back."""
    try:
        stream = model.stream_sync(messages, system_prompt=system_prompt)
    except (MisuseError, ValueError) as problem:
        complain(problem)
        return EXIT_USAGE
    is_interrupted = False
    with stream:
        try:
            with open_screen() as screen:
                for delta in stream:
                    if delta.kind is not DeltaKind.ERROR:
                        screen.show(delta)
        except KeyboardInterrupt:
            is_interrupted = True
        try:
            message = stream.snapshot() if is_interrupted else stream.final_message()
        except ModelError as error:
            messages.pop()
            complain(error)
            return EXIT_ERROR
        if is_interrupted and not message.text:
            messages.pop()
            return EXIT_ERROR
        messages.append(message)
        say(_footer(message, stream.cost_usd, is_lower_bound=stream.is_lower_bound))
    return EXIT_ERROR if is_interrupted else EXIT_DONE


def _footer(message: Message, cost_usd: float | None, *, is_lower_bound: bool) -> str:
    facts: list[str] = []
    usage = message.meta.usage
    if usage is not None and usage.input_tokens is not None:
        facts.append(f"{usage.input_tokens:,} input tokens")
    if usage is not None and usage.output_tokens is not None:
        facts.append(f"{usage.output_tokens:,} output tokens")
    if cost_usd is not None:
        facts.append(f"{'at least ' if is_lower_bound else ''}${cost_usd:.6f}")
    if message.meta.finish_reason is not None:
        facts.append(f"finish reason {message.meta.finish_reason}")
    return f"[{', '.join(facts)}]"
