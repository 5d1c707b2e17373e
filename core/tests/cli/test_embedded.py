from __future__ import annotations

import asyncio
import signal

import msgspec
import pytest

from tritonpy import StartupError
from tritonpy.cli.embedded import Embedded
from tritonpy.config.server import decode_server_config

NO_PORTS = {"http": False, "grpc": False, "metrics": False}


def document(repository, **more):
    raw = {"repositories": [{"url": str(repository)}], "frontends": NO_PORTS, "logging": {"info": False}, **more}
    return msgspec.json.encode(decode_server_config(raw))


def test_it_serves_until_it_is_told_of_a_signal(tmp_path):
    async def run():
        embedded = Embedded(document(tmp_path))
        serving = asyncio.create_task(embedded.serve())
        await asyncio.sleep(0)
        embedded.signalled(signal.SIGTERM)
        return await serving

    assert asyncio.run(run()) == (0, None)


def test_why_it_cannot_start_is_returned(tmp_path):
    (tmp_path / "broken" / "1").mkdir(parents=True)
    (tmp_path / "broken" / "config.pbtxt").write_text('backend: "nobody"')
    status, failure = asyncio.run(Embedded(document(tmp_path)).serve())
    assert status == 1
    assert failure.text.startswith("failed to load all models: broken.")


def test_what_cannot_be_built_is_raised_at_once(tmp_path):
    with pytest.raises(StartupError, match="no plugin provides transport 'nobody'"):
        Embedded(document(tmp_path, transport="nobody"))
