"""Answers that stop on the way, and a Model without limits over every asynchronous client."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import httpx
import httpx2
import pytest

from deltafold import AnthropicModel
from deltafold.testing import Recording
from deltafold.transports.timeouts import Timeouts
from wires import ANTHROPIC

CLIENTS = [
    ("httpx", "asyncio"),
    ("httpx", "trio"),
    ("httpx2", "asyncio"),
    ("httpx2", "trio"),
    ("aiohttp", "asyncio"),
]
HALF = Recording.of_events(ANTHROPIC).stopping("stall", len(ANTHROPIC) // 2)
SILENT = HALF.stopping("stall", before_headers=True)
UNLIMITED = Timeouts(connect=None, first_byte=None, idle=None)

every_client = pytest.mark.parametrize(("package", "loop"), CLIENTS)


@asynccontextmanager
async def model_of(
    package: str, url: str, timeouts: Timeouts = UNLIMITED
) -> AsyncGenerator[AnthropicModel]:
    makers: dict[str, Any] = {
        "httpx": httpx.AsyncClient,
        "httpx2": httpx2.AsyncClient,
        "aiohttp": aiohttp.ClientSession,
    }
    async with makers[package]() as client:
        yield AnthropicModel(
            {"model_id": "m"}, client=client, base_url=url, api_key="key", timeouts=timeouts
        )
