"""Whether a process that lives still answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

PERIOD_S = 10.0
_MOST_MISSED = 3  # periods of this process's own time: one that was held up itself must not blame others


async def watch(ask: Callable[[], Awaitable[None]], silent: Callable[[str], None]) -> None:
    """Ask again and again; call `silent(reason)` once where a question stays open too long, which is for three periods. Endless otherwise."""
    while True:
        question = asyncio.ensure_future(ask())
        try:
            missed = 0
            while not (await asyncio.wait((question,), timeout=PERIOD_S))[0]:
                missed += 1
                if missed == _MOST_MISSED:
                    silent(f"it did not answer for {missed * PERIOD_S:g} s and was killed")
                    return
            question.result()
        finally:
            question.cancel()
        await asyncio.sleep(PERIOD_S)
