"""Envoy's own door, a Unix domain socket that nobody else can open."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re

_AGAIN_S = 0.005
_STATUS = re.compile(rb"HTTP/1\.1 (\d+)")


class Admin:
    """Asks Envoy; `path` is its socket. When Envoy is `ending` by itself it would not answer, and is not asked."""

    def __init__(self, path: str) -> None:
        self.ending = False
        self._path = path

    async def addresses(self) -> dict[str, str]:
        """Return where each listener listens, as soon as all of them do that can: `host:port` or `unix:/path`."""
        while True:
            with contextlib.suppress(OSError):
                status, _ = await self._ask("GET", "/ready")
                if status == 200:
                    break
            await asyncio.sleep(_AGAIN_S)
        _, body = await self._ask("GET", "/listeners?format=json")
        return {each["name"]: _shown(each["local_address"]) for each in json.loads(body)["listener_statuses"]}

    async def stop_listening(self) -> None:
        """Let Envoy take no more connections; those that are open go on."""
        if not self.ending:
            await self._ask("POST", "/drain_listeners")

    async def quit(self) -> None:
        """Let Envoy end."""
        if not self.ending:
            await self._ask("POST", "/quitquitquit")

    async def _ask(self, method: str, path: str) -> tuple[int, bytes]:
        reader, writer = await asyncio.open_unix_connection(self._path)
        try:
            writer.write(f"{method} {path} HTTP/1.1\r\nhost: envoy\r\nconnection: close\r\n\r\n".encode())
            answer = await reader.read()
        finally:
            writer.close()
        head, _, body = answer.partition(b"\r\n\r\n")
        status = _STATUS.match(head)
        return (int(status[1]) if status else 0), _unchunked(body) if b"chunked" in head else body


def _shown(address: dict[str, dict[str, object]]) -> str:
    where = address.get("socket_address")
    if where is None:
        return f"unix:{address['pipe']['path']}"
    host = str(where["address"])
    return f"[{host}]:{where['port_value']}" if ":" in host else f"{host}:{where['port_value']}"


def _unchunked(body: bytes) -> bytes:
    parts = []
    while body:
        size, _, body = body.partition(b"\r\n")
        length = int(size, 16)
        if not length:
            break
        parts.append(body[:length])
        body = body[length + 2 :]
    return b"".join(parts)
