from __future__ import annotations

import asyncio
import json

from tritonpy_frontend_envoy.embedded.admin import Admin

LISTENERS = {
    "listener_statuses": [
        {"name": "http", "local_address": {"socket_address": {"address": "127.0.0.1", "port_value": 8000}}},
        {"name": "grpc", "local_address": {"socket_address": {"address": "::1", "port_value": 8001}}},
        {"name": "both", "local_address": {"pipe": {"path": "/run/x"}}},
    ]
}


def asked(tmp_path, ask, answers):
    """Return what `ask(admin)` gives, and the requests of it; the toy Envoy answers with these bodies in turn."""
    requests = []

    async def answer(reader, writer):
        requests.append((await reader.readuntil(b"\r\n\r\n")).split(b" HTTP/")[0].decode())
        status, body = answers.pop(0)
        half = len(body) // 2
        parts = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:half], body[half:]) if part)
        writer.write(b"HTTP/1.1 %d x\r\ntransfer-encoding: chunked\r\n\r\n%b0\r\n\r\n" % (status, parts))
        writer.close()

    async def run():
        admin = Admin(str(tmp_path / "admin.sock"))
        server = None

        async def serve_late():
            nonlocal server
            server = await asyncio.start_unix_server(answer, tmp_path / "admin.sock")

        late = asyncio.get_running_loop().call_soon(lambda: asyncio.ensure_future(serve_late()))
        result = await asyncio.wait_for(ask(admin), 30)
        late.cancel()
        if server is not None:
            server.close()
            await server.wait_closed()
        return result

    return asyncio.run(run()), requests


def test_the_addresses_are_known_when_envoy_listens(tmp_path):
    answers = [(503, b"PRE_INITIALIZING\n"), (200, b"LIVE\n"), (200, json.dumps(LISTENERS).encode())]
    found, requests = asked(tmp_path, Admin.addresses, answers)
    assert found == {"http": "127.0.0.1:8000", "grpc": "[::1]:8001", "both": "unix:/run/x"}
    assert requests == ["GET /ready", "GET /ready", "GET /listeners?format=json"]


def test_an_envoy_that_ends_by_itself_is_not_asked(tmp_path):
    async def ask(admin):
        admin.ending = True
        await admin.stop_listening()
        await admin.quit()

    assert asked(tmp_path, ask, []) == (None, [])
