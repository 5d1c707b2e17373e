from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from tritonpy.frontend_processes import pulse


class Asked:
    """Answers the questions for which `answers(number)` is true, the first has number 1."""

    def __init__(self, answers: Callable[[int], bool]) -> None:
        self.count = 0
        self.open = 0
        self._answers = answers

    async def ask(self) -> None:
        self.count += 1
        if not self._answers(self.count):
            self.open += 1
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                self.open -= 1


@pytest.fixture(autouse=True)
def short_periods(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulse, "PERIOD_S", 0.001)


def test_one_that_stops_to_answer_is_reported_once_and_the_watch_ends() -> None:
    said: list[str] = []
    asked = Asked(lambda number: number < 5)
    asyncio.run(pulse.watch(asked.ask, said.append))
    assert said == ["it did not answer for 0.003 s and was killed"]
    assert (asked.count, asked.open) == (5, 0)


def test_one_that_answers_is_asked_until_the_watch_is_cancelled() -> None:
    async def scenario() -> None:
        watching = asyncio.create_task(pulse.watch(asked.ask, said.append))
        async with asyncio.timeout(20):
            while asked.count < 10:  # noqa: ASYNC110 - the watch has no event for it
                await asyncio.sleep(0)
        watching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await watching

    said: list[str] = []
    asked = Asked(lambda _: True)
    asyncio.run(scenario())
    assert said == []


def test_a_question_that_is_open_is_not_asked_again_and_goes_with_the_watch() -> None:
    async def scenario() -> None:
        watching = asyncio.create_task(pulse.watch(asked.ask, lambda _: None))
        async with asyncio.timeout(20):
            while not asked.open:  # noqa: ASYNC110 - the watch has no event for it
                await asyncio.sleep(0)
        watching.cancel()
        await asyncio.wait((watching,))

    asked = Asked(lambda _: False)
    asyncio.run(scenario())
    assert (asked.count, asked.open) == (1, 0)
