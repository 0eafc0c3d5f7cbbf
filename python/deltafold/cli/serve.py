"""`deltafold serve`: the gateway on a port, and the settings of clients for it.

In: a TOML file or `name=vendor/model` pairs.  Out: a running server, or the text of a client's
settings.

Laws: on an address that other machines reach, the gateway answers only with `--no-auth`, because
the command has no authentication. A program adds its own with `create_app(on_request=...)`. Models
are called over aiohttp where it is installed: an event costs half the CPU of one over httpx2, and
under uvloop httpx2 holds megabytes for a client that hardly reads.
"""

import math
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Literal

from deltafold import MisuseError, UnknownDialectError
from deltafold.cli.clients import CLIENTS
from deltafold.cli.exits import EXIT_DONE, EXIT_ERROR, EXIT_USAGE, complain


def serve(
    file: str | None,
    models: Sequence[str],
    *,
    replay: str | None,
    host: str,
    port: int,
    no_auth: bool,
    fetch_files: bool,
    on_cut: Literal["event", "break", "event_and_break"] | None,
    drain: float,
    allowed_hosts: Sequence[str],
    allowed_origins: Sequence[str],
    config_of: str | None,
) -> int:
    """Run the gateway until it is interrupted; returns the exit code.

    Args:
        file: a TOML file with a table `[models]`.
        models: models in place of a file, each as `name=vendor/model`.
        replay: a folder of recordings in place of models.
        host: the address to listen on.
        port: the port to listen on.
        no_auth: answer clients of other machines.
        fetch_files: fetch files of the internet for providers that take only their bytes.
        on_cut: what a client sees of an upstream that was lost inside of an answer.
        drain: seconds that answers may go on after the first signal.
        allowed_hosts: names in `Host` that count as names of this machine.
        allowed_origins: origins of pages that may call.
        config_of: print the settings of this client instead.
    """
    try:
        from deltafold.gateway import (  # noqa: PLC0415 - an extra
            FileFetcher,
            ModelTable,
            create_app,
            read_table,
            replay_table,
        )
        from deltafold.gateway.serving import make_server  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as missing:
        complain(f"{missing.name} is not installed: pip install 'deltafold[gateway]'")
        return EXIT_USAGE
    if sum(map(bool, (file, models, replay))) > 1:
        complain("give a file, or --model, or --replay, not two of them")
        return EXIT_USAGE
    try:
        if replay is not None:
            table = replay_table(replay)
        elif file is not None:
            table = read_table(file, transport=_transport())
        else:
            table = ModelTable(dict(map(_pair, models)), transport=_transport())
    except (MisuseError, UnknownDialectError, OSError) as problem:
        complain(problem)
        return EXIT_USAGE
    if config_of is not None:
        first = next((name for name in table.names if "*" not in name), "NAME")
        print(CLIENTS[config_of].format(url=f"http://{host}:{port}", model=first), end="")
        return EXIT_DONE
    fetcher = FileFetcher() if fetch_files else None
    app = create_app(
        table,
        allow_anyone=no_auth,
        fetcher=fetcher,
        on_cut=on_cut,
        allowed_hosts=allowed_hosts,
        allowed_origins=allowed_origins,
    )
    # uvicorn counts whole seconds.
    server = make_server(app, host=host, port=port, timeout_graceful_shutdown=math.ceil(drain))
    try:
        server.run()
    except KeyboardInterrupt:
        return EXIT_DONE
    return EXIT_DONE if server.started else EXIT_ERROR


def _transport() -> str:
    return "httpx2" if find_spec("aiohttp") is None else "aiohttp"


def _pair(text: str) -> tuple[str, str]:
    name, mark, target = text.partition("=")
    if not mark or not name or not target:
        raise MisuseError(f"--model {text!r} must be name=vendor/model")
    return name, target
