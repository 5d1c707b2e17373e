from __future__ import annotations

from tritonpy_ipc.spin_wait import (
    SHORT_WAIT_NS,
    SPIN_NS,
    STEADY_FRAMES,
    SequentialTraffic,
    SpinWait,
)


class SimulatedClock:
    """A simulated clock, advanced by polls and sleeps, and the time at which data arrives."""

    def __init__(self):
        self.now = self.arrival = 0
        self.looks = self.sleeps = 0
        self.spin_wait = SpinWait(lambda: self.now)

    def wait(self, gap_ns):
        self.arrival = self.now + gap_ns
        assert self.spin_wait.wait(self._poll, self._block) == "found"

    def _poll(self):
        self.looks += 1
        self.now += SPIN_NS // 10
        return "found" if self.now >= self.arrival else None

    def _block(self):
        self.sleeps += 1
        self.now = max(self.now, self.arrival)
        return "found"


def test_single_requests_for_a_while_predict_another():
    traffic = SequentialTraffic()
    assert [traffic.observe(1) for _ in range(STEADY_FRAMES + 2)] == [False] * (
        STEADY_FRAMES - 1
    ) + [True] * 3


def test_a_frame_of_several_requests_resets_the_prediction():
    traffic = SequentialTraffic()
    for _ in range(STEADY_FRAMES):
        traffic.observe(1)
    assert not traffic.observe(2)
    assert not any([traffic.observe(1) for _ in range(STEADY_FRAMES - 1)])
    assert traffic.observe(1)


def test_the_first_wait_sleeps():
    world = SimulatedClock()
    world.wait(10)
    assert (world.looks, world.sleeps) == (0, 1)


def test_after_a_short_wait_it_polls_without_sleeping():
    world = SimulatedClock()
    world.wait(10)
    for _ in range(5):
        world.wait(SPIN_NS // 2)
    assert (world.looks, world.sleeps) == (25, 1)


def test_it_polls_for_a_limited_time_and_then_sleeps():
    world = SimulatedClock()
    world.wait(10)
    world.wait(10 * SHORT_WAIT_NS)
    assert (world.looks, world.sleeps) == (10, 2)


def test_after_a_long_wait_it_sleeps_immediately():
    world = SimulatedClock()
    world.wait(10)
    world.wait(10 * SHORT_WAIT_NS)
    world.looks = 0
    world.wait(10 * SHORT_WAIT_NS)
    world.wait(10 * SHORT_WAIT_NS)
    assert world.looks == 0


def test_a_wait_slightly_longer_than_the_polling_keeps_it_polling():
    world = SimulatedClock()
    world.wait(10)
    world.wait((SPIN_NS + SHORT_WAIT_NS) // 2)
    assert world.sleeps == 2
    world.looks = 0
    world.wait(SPIN_NS // 2)
    assert (world.looks, world.sleeps) == (5, 2)
