"""`deltafold serve`: the gateway on a port, and the settings of clients for it.

In: a TOML file or `name=vendor/model` pairs.  Out: a running server, or the text of a client's
settings.

Laws: on an address that other machines reach, the gateway answers only with `--no-auth`, because
the command has no authentication. A program adds its own with `create_app(on_request=...)`. Models
are called over aiohttp where it is installed: an event costs half the CPU of one over httpx2, and
under uvloop httpx2 holds megabytes for a client that hardly reads.
"""

import gc
import math
import socket
from collections.abc import Sequence
from importlib.util import find_spec
from tomllib import TOMLDecodeError
from typing import TYPE_CHECKING, Final, Literal

from deltafold import MisuseError
from deltafold.cli.clients import CLIENTS
from deltafold.cli.exits import EXIT_DONE, EXIT_ERROR, EXIT_USAGE, complain

if TYPE_CHECKING:
    from deltafold.gateway import ModelTable

_NO_MODELS: Final = (
    "there is nothing to serve: name a model, as in --model fast=openai/gpt-5.6-terra, or a TOML "
    "file with a table [models], or a folder of recordings, --replay FOLDER"
)

_A_TABLE: Final = (
    """below a line [models] a file has lines such as fast = "openai/gpt-5.6-terra\""""
)


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
        from deltafold.gateway import FileFetcher, create_app  # noqa: PLC0415 - an extra
        from deltafold.gateway.serving import make_server  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as missing:
        complain(f"{missing.name} is not installed: pip install 'deltafold[gateway]'")
        return EXIT_USAGE
    try:
        table = _table(file, models, replay)
    except (MisuseError, OSError, ValueError) as problem:
        complain(problem)
        return EXIT_USAGE
    if config_of is not None:
        first = next((name for name in table.names if "*" not in name), "NAME")
        print(CLIENTS[config_of].format(url=f"http://{host}:{port}", model=first), end="")
        return EXIT_DONE
    try:
        _try_address(host, port)
    except OSError as problem:
        why = (problem.strerror or str(problem)).lower()
        complain(f"{host}:{port}: {why}; choose another address with --port and --host")
        return EXIT_USAGE
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
    # A full collection would look at each object of the program, and open streams would wait.
    gc.collect()
    gc.freeze()
    try:
        server.run()
    except KeyboardInterrupt:
        return EXIT_DONE
    return EXIT_DONE if server.started else EXIT_ERROR


def _table(file: str | None, models: Sequence[str], replay: str | None) -> "ModelTable":
    """Make the table of models.

    Raises:
        MisuseError, OSError, ValueError: there is none, or it is wrong.
    """
    from deltafold.gateway import ModelTable, read_table, replay_table  # noqa: PLC0415 - an extra

    given = sum(map(bool, (file, models, replay)))
    if given != 1:
        several = "give a file, or --model, or --replay, not two of them"
        raise MisuseError(several if given else _NO_MODELS)
    if replay is not None:
        return replay_table(replay)
    if file is None:
        return ModelTable(dict(map(_pair, models)), transport=_transport())
    try:
        return read_table(file, transport=_transport())
    except IsADirectoryError as wrong:
        raise MisuseError(
            f"{file} is a folder: --replay {file} answers with the recordings in it"
        ) from wrong
    except MisuseError as wrong:
        if isinstance(wrong.__cause__, TOMLDecodeError) or "no table" in str(wrong):
            raise MisuseError(f"{wrong}; {_A_TABLE}") from wrong
        raise
    except UnicodeDecodeError as wrong:
        raise MisuseError(
            f"{file} is no text: give a TOML file with a table [models], or --model"
        ) from wrong


def _try_address(host: str, port: int) -> None:
    """Listen on an address for a moment: a server that cannot would only log it.

    Raises:
        OSError: the name does not resolve, or the port is in use or needs other rights.
    """
    problem: OSError | None = None
    # A name such as localhost has addresses of IPv4 and of IPv6, which not every machine has.
    for family, _, _, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        try:
            with socket.create_server(address[:2], family=family):
                return
        except OSError as found:
            problem = found
    if problem is not None:
        raise problem


def _transport() -> str:
    return "httpx2" if find_spec("aiohttp") is None else "aiohttp"


def _pair(text: str) -> tuple[str, str]:
    name, mark, target = text.partition("=")
    if not mark or not name or not target:
        raise MisuseError(
            f"--model {text!r} must be NAME=VENDOR/MODEL, such as fast=openai/gpt-5.6-terra"
        )
    return name, target
