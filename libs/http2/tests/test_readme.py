from __future__ import annotations

import asyncio
import re
import socket
from pathlib import Path

import httpx

from tritonpy_http2.abuse_limits import PingRules
from tritonpy_http2.limits import Http2Limits
from tritonpy_http2.timeouts import TimeoutSettings

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def test_the_example_runs():
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
    names = {"__name__": "example"}
    exec(README.partition("```python\n")[2].partition("```")[0], names)  # noqa: S102 - our own page

    async def scenario():
        serving = asyncio.create_task(names["serve"](port))
        await asyncio.sleep(0)
        async with httpx.AsyncClient(
            http1=False,
            http2=True,
            transport=httpx.AsyncHTTPTransport(http1=False, http2=True, retries=5),
        ) as client:
            response = await client.post(f"http://127.0.0.1:{port}/", content=b"hello")
        assert (response.http_version, response.content) == ("HTTP/2", b"hello")
        serving.cancel()
        await asyncio.wait([serving])

    asyncio.run(scenario())


def test_all_options_are_documented():
    documented = set(re.findall(r"^\| `(\w+)` +\|", README, re.MULTILINE))
    assert {*Http2Limits._fields, *PingRules._fields, *TimeoutSettings._fields} <= documented
