"""A gateway that answers from recordings."""

import re
import time
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest

from deltafold import MisuseError
from deltafold.gateway import create_app, replay_table
from deltafold.gateway.recorded_models import ReplayTable
from deltafold.inspector import read_page
from deltafold.testing import Recording, ReplayServer
from gateway_clients import CALLS, TEXT, recorded
from gateways import serve_process, served
from recorded_upstreams import ENCODED


def chat(url: str, model: str) -> Any:  # noqa: ANN401 - a completion of the SDK
    with openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client:
        return client.chat.completions.create(
            model=model, messages=[{"role": "user", "content": "?"}]
        )


@pytest.mark.parametrize("dialect", ENCODED)
@pytest.mark.parametrize("is_saved", [True, False], ids=["recorder", "body"])
def test_a_recording_answers_under_its_name(
    dialect: str, tmp_path: Path, *, is_saved: bool
) -> None:
    recording = recorded(TEXT, dialect)
    if is_saved:
        recording.save(tmp_path / f"{dialect}.rain.jsonl")
    else:
        (tmp_path / f"{dialect}.rain.sse").write_bytes(recording.body)
    with served(create_app(replay_table(tmp_path))) as url:
        for _ in range(2):
            assert chat(url, f"{dialect}.rain").choices[0].message.content == TEXT.text
        assert httpx2.get(f"{url}/v1/models").json()["data"][0]["id"] == f"{dialect}.rain"


def test_other_names_are_answered_in_the_order_of_the_recordings(tmp_path: Path) -> None:
    recorded(CALLS, "anthropic-messages").save(tmp_path / "1.jsonl")
    recorded(TEXT, "gemini").save(tmp_path / "2.jsonl")
    Recording.error(429, {"error": {"message": "slow down", "type": "rate_limit"}}).save(
        tmp_path / "openai-chat.3.jsonl"
    )
    with served(create_app(replay_table(tmp_path))) as url:
        for _ in range(2):
            assert len(chat(url, "any").choices[0].message.tool_calls) == 2
            # Counting tokens calls no upstream, so that the next answer stays the next one.
            httpx2.post(f"{url}/v1/messages/count_tokens", json={"model": "any", "messages": []})
            assert chat(url, "any").choices[0].message.content == TEXT.text
            with pytest.raises(openai.RateLimitError, match="slow down"):
                chat(url, "any")
        assert chat(url, "2").choices[0].message.content == TEXT.text


def test_recorded_pauses_can_be_left_out(tmp_path: Path) -> None:
    body = recorded(TEXT, "openai-chat").body
    Recording(((100.0, body),)).save(tmp_path / "slow.jsonl")
    with served(create_app(replay_table(tmp_path, flat_out=True))) as url:
        assert chat(url, "slow").choices[0].message.content == TEXT.text


def test_a_folder_without_recordings_is_named(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("none")
    with pytest.raises(MisuseError, match="no file ends with"):
        replay_table(tmp_path)
    (tmp_path / "odd.sse").write_bytes(b"data: hello\n\n")
    with pytest.raises(MisuseError, match=r"name the file DIALECT\.odd\.sse"):
        replay_table(tmp_path)
    (tmp_path / "odd.sse").unlink()
    for name in ("openai-chat.a.sse", "openai-chat.a.json"):
        (tmp_path / name).write_bytes(b"data: {}\n\n")
    with pytest.raises(MisuseError, match=r"two files have the name 'openai-chat\.a'"):
        replay_table(tmp_path)
    for name in ("openai-chat.a.sse", "openai-chat.a.json"):
        (tmp_path / name).unlink()
    (tmp_path / "cut.jsonl").write_bytes(b'{"recording": 99}\n')
    with pytest.raises(MisuseError, match=r"cut\.jsonl: not a recording"):
        replay_table(tmp_path)


def test_a_browser_is_shown_the_recordings_and_their_differences() -> None:
    name = "a <b> & c/ü"
    recordings: dict[str, tuple[Any, Recording]] = {
        name: ("gemini", recorded(TEXT, "gemini")),
        "calls": ("anthropic-messages", recorded(CALLS, "anthropic-messages")),
    }
    with served(create_app(ReplayTable(recordings))) as url:
        index = httpx2.get(f"{url}/inspect")
        assert index.headers["content-type"].startswith("text/html")
        assert "frame-ancestors 'none'" in index.headers["content-security-policy"]
        assert "<b>" not in index.text
        addresses = re.findall('<a href="([^"]+)"', index.text)
        pages = [httpx2.get(url + address).text for address in addresses]
        assert [read_page(page)[0].name for page in pages] == list(recordings)
        both = read_page(httpx2.get(f"{url}/inspect/calls", params={"diff": name}).text)
        assert [inspection.name for inspection in both] == ["calls", name]
        assert httpx2.get(f"{url}/inspect/no-such").status_code == 404


def test_recordings_are_not_shown_under_the_name_of_another_host() -> None:
    table = ReplayTable({"text": ("gemini", recorded(TEXT, "gemini"))})
    with served(create_app(table)) as url, served(create_app(table, allow_anyone=True)) as open_url:
        for path in ("/inspect", "/inspect/text"):
            foreign = {"host": "rebound.example"}
            assert httpx2.get(url + path, headers=foreign).status_code == 403
            assert httpx2.get(open_url + path, headers=foreign).status_code == 200


def test_a_gateway_in_front_of_models_has_no_such_page() -> None:
    with served(create_app({"m": "openai/gpt-5"})) as url:
        assert httpx2.get(f"{url}/inspect").status_code == 404


@pytest.mark.slow
def test_serve_keeps_an_idle_connection_longer_than_clients_reuse_it(tmp_path: Path) -> None:
    recorded(TEXT, "openai-chat").save(tmp_path / "rain.jsonl")
    opened: list[str] = []

    def trace(stage: str, _: object) -> None:
        if "connect_tcp" in stage:
            opened.append(stage)

    extensions = {"trace": trace}
    limits = httpx2.Limits(keepalive_expiry=60)
    with (
        serve_process("--replay", str(tmp_path)) as (url, _),
        httpx2.Client(limits=limits) as client,
    ):
        assert client.get(f"{url}/health", extensions=extensions).status_code == 200
        time.sleep(5.5)  # uvicorn closes an idle connection after 5 seconds by default
        assert client.get(f"{url}/health", extensions=extensions).status_code == 200
    assert opened == ["connection.connect_tcp.started", "connection.connect_tcp.complete"]


def test_serve_calls_models_over_aiohttp_unless_they_say_otherwise(tmp_path: Path) -> None:
    pytest.importorskip("aiohttp")
    table = tmp_path / "gateway.toml"
    with ReplayServer([recorded(TEXT, "openai-chat")] * 2) as server:
        entry = f'model = "openai/m"\nbase_url = "{server.url}/v1"\napi_key = "k"\n'
        table.write_text(f'[models.a]\n{entry}[models.b]\n{entry}transport = "httpx2"\n')
        with serve_process(str(table)) as (url, _):
            for model, client in (("a", "aiohttp"), ("b", "httpx2")):
                assert chat(url, model).choices[0].message.content == TEXT.text
                assert client in server.requests[-1].headers["user-agent"]
