"""Other gateways, started with the settings that let them answer on this machine.

In: the name of a gateway and the upstream's address.  Out: a process, and the port that it serves.

Law: each runs as its documentation says, in one process, without a database and with its logs off
as far as its settings allow.
"""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

HOST: Final = "127.0.0.1"
PROGRAMS: Final = Path(sys.prefix).parent / ".venv-peers" / "bin"
PATIENCE: Final = 60.0
"""Seconds until a gateway must listen."""

_SWITCHYARD: Final = """
import sys, time
from switchyard_rust.server import Server
server = Server(sys.argv[1], int(sys.argv[2]))
time.sleep(1e9)
"""


class Peer(NamedTuple):
    """A gateway: its package, and what writes its settings and returns its command."""

    package: str
    command: Callable[[Path, str, int], list[str]]


def _litellm(folder: Path, url: str, port: int) -> list[str]:
    models = [
        _model("chat", {"model": "openai/chat", "api_base": f"{url}/v1"}),
        _model("messages", {"model": "anthropic/messages", "api_base": url}),
    ]
    settings = folder / "config.yaml"
    settings.write_text(json.dumps({"model_list": models}))  # which YAML reads too
    return ["litellm", "--config", str(settings), "--host", HOST, "--port", str(port)]


def _model(name: str, params: Mapping[str, str]) -> dict[str, object]:
    return {"model_name": name, "litellm_params": {**params, "api_key": "unused"}}


def _rosetta(folder: Path, url: str, port: int) -> list[str]:
    providers = {
        "openai_chat": {"api_key": "unused", "base_url": f"{url}/v1"},
        "anthropic": {"api_key": "unused", "base_url": url},
    }
    server = {"host": HOST, "port": port, "open_on_no_keys": True}
    models = {"chat": "openai_chat", "messages": "anthropic"}
    settings = folder / "config.jsonc"
    settings.write_text(json.dumps({"providers": providers, "models": models, "server": server}))
    command = ["llm-rosetta-gateway", "--config", str(settings), "--data-dir", str(folder)]
    return [*command, "--no-banner", "--log-level", "error"]


def _smg(_: Path, url: str, port: int) -> list[str]:
    command = ["smg", "launch", "--host", HOST, "--port", str(port), "--worker-urls", url]
    command += ["--backend", "openai", "--disable-health-check", "--history-backend", "none"]
    return [*command, "--log-level", "error"]


def _switchyard(folder: Path, url: str, port: int) -> list[str]:
    lines = ["schema_version = 1"]
    for name, form, base in (
        ("chat", "openai_chat", f"{url}/v1"),
        ("messages", "anthropic_messages", url),
    ):
        lines += [f"[llm_clients.{name}]", f'format = "{form}"', f'base_url = "{base}"']
        lines += [f"[targets.{name}]", f'id = "{name}"', f'llm_client = "{name}"']
        lines += [
            f"[routes.{name}]",
            f'id = "{name}"',
            'type = "passthrough"',
            f'target = "{name}"',
        ]
    settings = folder / "routes.toml"
    settings.write_text("\n".join(lines))
    return ["python", "-c", _SWITCHYARD, str(settings), str(port)]


PEERS: Final = {
    "smg": Peer("smg", _smg),
    "Switchyard": Peer("nemo-switchyard", _switchyard),
    "llm-rosetta": Peer("llm-rosetta", _rosetta),
    "LiteLLM proxy": Peer("litellm", _litellm),
}


def version_of(name: str) -> str:
    """Return the version of a gateway's package."""
    package = PEERS[name].package.replace("-", "_")
    found = next(PROGRAMS.parent.glob(f"lib/python3*/site-packages/{package}-*.dist-info"))
    return found.name.removesuffix(".dist-info").partition("-")[2]


@contextmanager
def started_peer(name: str, url: str) -> Generator[tuple[subprocess.Popen[str], int]]:
    """Run a gateway in front of an upstream, and yield its process and its port."""
    with socket.socket() as free:
        free.bind((HOST, 0))
        port: int = free.getsockname()[1]
    with TemporaryDirectory() as folder:
        program, *arguments = PEERS[name].command(Path(folder), url, port)
        environment = os.environ | {
            "HOME": folder,
            "ANTHROPIC_API_KEY": "unused",
            "OPENAI_API_KEY": "unused",
            # Prices come with the package, and nothing has to be authenticated here.
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "LITELLM_LOG": "ERROR",
            "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",
            "RUST_LOG": "error",
        }
        process = subprocess.Popen(
            [str(PROGRAMS / program), *arguments],
            cwd=folder,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            _wait(name, process, port)
            yield process, port
        finally:
            process.kill()
            process.wait()


def _wait(name: str, process: subprocess.Popen[str], port: int) -> None:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if process.poll() is not None:
            raise SystemExit(f"{name} ended with {process.returncode}")
        try:
            socket.create_connection((HOST, port), 1).close()
        except OSError:
            time.sleep(0.2)
        else:
            time.sleep(2)  # it listens before it has read its settings
            return
    raise SystemExit(f"{name} does not listen after {PATIENCE:g} s")
