from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from tritonpy_frontend_processes import heartbeat


class HeartbeatProbe:
    """Responds to the heartbeats for which `responses(number)` is true; the first has number 1."""

    def __init__(self, responses: Callable[[int], bool]) -> None:
        self.count = 0
        self.open = 0
        self._responses = responses

    async def call(self) -> None:
        self.count += 1
        if not self._responses(self.count):
            self.open += 1
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                self.open -= 1


@pytest.fixture(autouse=True)
def short_periods(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "PERIOD_S", 0.001)


def test_an_unresponsive_process_is_reported_once_and_the_monitor_ends() -> None:
    reasons: list[str] = []
    probe = HeartbeatProbe(lambda number: number < 5)
    asyncio.run(heartbeat.monitor_heartbeat(probe.call, reasons.append))
    assert reasons == ["it did not respond for 0.003 s and was killed"]
    assert (probe.count, probe.open) == (5, 0)


def test_a_responsive_process_is_monitored_until_cancellation() -> None:
    async def scenario() -> None:
        watching = asyncio.create_task(heartbeat.monitor_heartbeat(probe.call, reasons.append))
        async with asyncio.timeout(20):
            while probe.count < 10:  # noqa: ASYNC110 - the watch has no event for it
                await asyncio.sleep(0)
        watching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await watching

    reasons: list[str] = []
    probe = HeartbeatProbe(lambda _: True)
    asyncio.run(scenario())
    assert reasons == []


def test_a_pending_heartbeat_is_not_repeated_and_is_cancelled_with_the_monitor() -> None:
    async def scenario() -> None:
        watching = asyncio.create_task(heartbeat.monitor_heartbeat(probe.call, lambda _: None))
        async with asyncio.timeout(20):
            while not probe.open:  # noqa: ASYNC110 - the watch has no event for it
                await asyncio.sleep(0)
        watching.cancel()
        await asyncio.wait((watching,))

    probe = HeartbeatProbe(lambda _: False)
    asyncio.run(scenario())
    assert (probe.count, probe.open) == (1, 0)
