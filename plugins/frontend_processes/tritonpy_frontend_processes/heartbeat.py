"""Detection of unresponsive processes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

PERIOD_S = 10.0
_MAX_MISSED = 3  # periods on this process's event loop, so that its own delays do not count


async def monitor_heartbeat(
    send_heartbeat: Callable[[], Awaitable[None]], on_unresponsive: Callable[[str], None]
) -> None:
    """Send heartbeats forever, and call `on_unresponsive(reason)` once when one gets no response.

    The timeout of a heartbeat is three periods.
    """
    while True:
        heartbeat = asyncio.ensure_future(send_heartbeat())
        try:
            missed = 0
            while not (await asyncio.wait((heartbeat,), timeout=PERIOD_S))[0]:
                missed += 1
                if missed == _MAX_MISSED:
                    on_unresponsive(
                        f"it did not respond for {missed * PERIOD_S:g} s and was killed"
                    )
                    return
            heartbeat.result()
        finally:
            heartbeat.cancel()
        await asyncio.sleep(PERIOD_S)
