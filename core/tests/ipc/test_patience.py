from __future__ import annotations

from tritonpy.ipc.patience import LOOK_NS, SOON_NS, STEADY, Alone, Patience


class World:
    """A clock that looks and sleeps move on, and when something arrives."""

    def __init__(self):
        self.now = self.arrival = 0
        self.looks = self.sleeps = 0
        self.patience = Patience(lambda: self.now)

    def wait(self, gap_ns):
        self.arrival = self.now + gap_ns
        assert self.patience.wait(self._look, self._sleep) == "found"

    def _look(self):
        self.looks += 1
        self.now += LOOK_NS // 10
        return "found" if self.now >= self.arrival else None

    def _sleep(self):
        self.sleeps += 1
        self.now = max(self.now, self.arrival)
        return "found"


def test_requests_that_come_singly_for_a_while_are_expected_to_go_on_so():
    alone = Alone()
    assert [alone.came(1) for _ in range(STEADY + 2)] == [False] * (STEADY - 1) + [True] * 3


def test_requests_that_come_together_are_not_followed_by_single_ones():
    alone = Alone()
    for _ in range(STEADY):
        alone.came(1)
    assert not alone.came(2)
    assert not any([alone.came(1) for _ in range(STEADY - 1)])
    assert alone.came(1)


def test_the_first_wait_is_a_sleep():
    world = World()
    world.wait(10)
    assert (world.looks, world.sleeps) == (0, 1)


def test_after_a_short_wait_it_looks_and_does_not_sleep():
    world = World()
    world.wait(10)
    for _ in range(5):
        world.wait(LOOK_NS // 2)
    assert (world.looks, world.sleeps) == (25, 1)


def test_it_looks_for_a_bounded_time_and_then_sleeps():
    world = World()
    world.wait(10)
    world.wait(10 * SOON_NS)
    assert (world.looks, world.sleeps) == (10, 2)


def test_after_a_long_wait_it_sleeps_at_once():
    world = World()
    world.wait(10)
    world.wait(10 * SOON_NS)
    world.looks = 0
    world.wait(10 * SOON_NS)
    world.wait(10 * SOON_NS)
    assert world.looks == 0


def test_a_wait_that_was_nearly_looked_through_keeps_it_looking():
    world = World()
    world.wait(10)
    world.wait((LOOK_NS + SOON_NS) // 2)
    assert world.sleeps == 2
    world.looks = 0
    world.wait(LOOK_NS // 2)
    assert (world.looks, world.sleeps) == (5, 2)
