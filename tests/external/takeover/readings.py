"""Functions of the projects that read a stream, for the tests that put another iterable there.

In: a project's name.  Out: its functions, replaced by ones whose stream is folded beneath.

Law: an object that no stream is, such as a whole answer, passes unchanged.
"""

from collections.abc import Callable, Iterator
from functools import wraps
from importlib import import_module
from inspect import iscoroutinefunction, signature
from typing import Any, Final, NamedTuple, Self

from beneath import beneath


class Reading(NamedTuple):
    """A function that reads a stream.

    Attributes:
        module: its module.
        name: its class and its name.
        argument: the argument that has the stream.
        dialect: the dialect of the objects.
    """

    module: str
    name: str
    argument: str
    dialect: str


_HAYSTACK: Final = "haystack.components.generators.chat"
_CLAUDE: Final = "haystack_integrations.components.generators.anthropic.chat.chat_generator"

READINGS: Final = {
    "haystack": (
        *(
            Reading(f"{_HAYSTACK}.{module}", f"{kind}.{name}", argument, dialect)
            for module, kind, argument, dialect in (
                ("openai", "OpenAIChatGenerator", "chat_completion", "openai-chat"),
                (
                    "openai_responses",
                    "OpenAIResponsesChatGenerator",
                    "responses",
                    "openai-responses",
                ),
            )
            for name in ("_handle_stream_response", "_handle_async_stream_response")
        ),
        *(
            Reading(_CLAUDE, f"AnthropicChatGenerator.{name}", "response", "anthropic-messages")
            for name in ("_process_response", "_process_response_async")
        ),
    ),
}
"""The functions by project."""


def fold_readings(project: str) -> None:
    """Fold beneath the functions of a project, and beneath the clients that it makes."""
    for reading in READINGS.get(project, ()):
        path, _, name = reading.name.rpartition(".")
        owner = getattr(import_module(reading.module), path)
        setattr(owner, name, _over(getattr(owner, name), reading))
    if project == "llm-anthropic":
        fold_clients_of_llm()


def _over(read: Callable[..., Any], reading: Reading) -> Callable[..., Any]:
    """Return a function that reads the folded objects."""
    bound_by = signature(read)

    def replaced(arguments: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, Any]:
        bound = bound_by.bind(*arguments, **options)
        bound.arguments[reading.argument] = beneath(
            bound.arguments[reading.argument], reading.dialect
        )
        return bound.args, bound.kwargs

    @wraps(read)
    def reads(*arguments: Any, **options: Any) -> Any:
        arguments, options = replaced(arguments, options)
        return read(*arguments, **options)

    @wraps(read)
    async def awaits(*arguments: Any, **options: Any) -> Any:
        arguments, options = replaced(arguments, options)
        return await read(*arguments, **options)

    return awaits if iscoroutinefunction(read) else reads


class _Client:
    """A test's client of Messages, whose streams are folded."""

    def __init__(self, held: Any) -> None:
        self.held = held

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.held, name)
        return _Client(found) if name in {"beta", "messages"} else found

    def stream(self, **options: Any) -> "_Helper":
        """Open a stream."""
        return _Helper(self.held.stream(**options))


class _Helper:
    """Helper that `messages.stream()` of a test's client returns."""

    def __init__(self, held: Any) -> None:
        self.held = held

    def __getattr__(self, name: str) -> Any:
        return getattr(self.held, name)

    def __enter__(self) -> Self:
        self.held = self.held.__enter__()
        return self

    def __exit__(self, *failure: object) -> Any:
        return self.held.__exit__(*failure)

    async def __aenter__(self) -> Self:
        self.held = await self.held.__aenter__()
        return self

    async def __aexit__(self, *failure: object) -> Any:
        return await self.held.__aexit__(*failure)

    def __iter__(self) -> Iterator[Any]:
        return iter(beneath(iter(self.held), "anthropic-messages"))

    def __aiter__(self) -> Any:
        return aiter(beneath(aiter(self.held), "anthropic-messages"))


def fold_clients_of_llm() -> None:
    """Fold the streams of the clients that tests put in place of anthropic's.

    `execute` makes the client by a global name and reads its stream in one function, so that the
    name is replaced while it runs. The streams of anthropic's own clients are folded below.
    """
    module = import_module("llm_anthropic")

    def replaced(name: str) -> Callable[[], None]:
        make = getattr(module, name)
        if isinstance(make, type):
            return lambda: None
        setattr(module, name, lambda **options: _Client(make(**options)))
        return lambda: setattr(module, name, make)

    read, await_ = module.ClaudeMessages.execute, module.AsyncClaudeMessages.execute

    @wraps(read)
    def execute(*arguments: Any, **options: Any) -> Any:
        restore = replaced("Anthropic")
        try:
            yield from read(*arguments, **options)
        finally:
            restore()

    @wraps(await_)
    async def aexecute(*arguments: Any, **options: Any) -> Any:
        restore = replaced("AsyncAnthropic")
        try:
            async for one in await_(*arguments, **options):
                yield one
        finally:
            restore()

    module.ClaudeMessages.execute, module.AsyncClaudeMessages.execute = execute, aexecute
