from __future__ import annotations

import asyncio
import os
import shutil

import msgspec
import pytest

from tritonpy_frontend_envoy.embedded import renewal as module
from tritonpy_frontend_envoy.embedded.renewal import Renewal
from tritonpy_frontend_envoy.handover import TlsWatch
from tritonpy_frontend_http.tls_options import HttpTlsOptions


@pytest.fixture
def watch(tmp_path, pem):
    for name in ("pem", "key"):
        shutil.copy(pem / f"server.{name}", tmp_path / f"mine.{name}")
    options = HttpTlsOptions(certificate_file=str(tmp_path / "mine.pem"), key_file=str(tmp_path / "mine.key"))
    folder = tmp_path / "watched"
    folder.mkdir()
    return TlsWatch("frontends.http.tls", str(folder), msgspec.to_builtins(options))


def test_a_renewed_pair_is_told_and_half_of_it_is_not(watch, pem, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(module, "PERIOD_S", 0.001)

    async def until(condition):
        async with asyncio.timeout(30):
            while not condition():  # noqa: ASYNC110 - files have no event
                await asyncio.sleep(0.001)

    async def run():
        renewal = Renewal([watch])
        shutil.copy(pem / "client.pem", tmp_path / "mine.pem")
        await until(lambda: any("changed TLS files are not used" in message for message in caplog.messages))
        assert os.listdir(watch.folder) == []
        shutil.copy(pem / "client.key", tmp_path / "mine.key")
        await until(lambda: os.listdir(watch.folder) == ["changed"])
        await renewal.stop()

    asyncio.run(run())
