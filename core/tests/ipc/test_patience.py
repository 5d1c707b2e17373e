from __future__ import annotations

from itertools import pairwise

from tritonpy.ipc.patience import CROWDED_NS, LOOK_NS, MOST_WARY, SOON_NS, Patience


class World:
    """A clock that looks and sleeps move on, and when something arrives."""

    def __init__(self):
        self.now = self.arrival = 0
        self.looks = self.sleeps = 0
        self.others_ns = 0  # how long others have the processor when it gives way
        self.patience = Patience(lambda: self.now, self._give_way)

    def wait(self, gap_ns):
        self.arrival = self.now + gap_ns
        assert self.patience.wait(self._look, self._sleep) == "found"

    def _look(self):
        self.looks += 1
        self.now += LOOK_NS // 10
        return "found" if self.now >= self.arrival else None

    def _give_way(self):
        self.now += self.others_ns

    def _sleep(self):
        self.sleeps += 1
        self.now = max(self.now, self.arrival)
        return "found"


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


def look_in_vain(world):
    """A wait that is short and yet too long to look through; returns how many times it looked."""
    before = world.looks
    world.wait((LOOK_NS + SOON_NS) // 2)
    return world.looks - before


def test_looks_in_vain_become_rarer_and_rarer():
    world = World()
    world.wait(10)
    looked = [number for number in range(600) if look_in_vain(world)]
    assert looked[:6] == [0, 2, 6, 14, 30, 62]
    assert all(later - earlier <= MOST_WARY + 1 for earlier, later in pairwise(looked))


def test_a_look_that_finds_something_makes_it_bold_again():
    world = World()
    world.wait(10)
    for _ in range(14):
        look_in_vain(world)
    world.wait(LOOK_NS // 2)
    assert world.sleeps == 15, "it was to look this time"
    world.looks = 0
    world.wait(LOOK_NS // 2)
    world.wait(LOOK_NS // 2)
    assert (world.looks, world.sleeps) == (10, 15)


def test_it_stops_looking_where_others_want_the_processor():
    world = World()
    world.wait(10)
    world.others_ns = CROWDED_NS
    world.wait(LOOK_NS // 2)
    assert (world.looks, world.sleeps) == (1, 2)
    world.wait(LOOK_NS // 2)
    assert (world.looks, world.sleeps) == (1, 3), "nor is it tried again at once"
