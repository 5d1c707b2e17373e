from __future__ import annotations

import random
from collections import Counter

import pytest
from google.protobuf import text_format
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tritonpy_protos.model_config_pb2 import ModelInstanceGroup
from tritonpy_rate_limiter.execution_count import ExecutionCountLimiter
from tritonpy_testing import RateLimiterContract
from tritonpy_types.errors import InvalidArgument


def group(demands, priority=0, shared=()):
    lines = [
        f'resources {{ name: "{name}" count: {count} global: {str(name in shared).lower()} }}'
        for name, count in demands.items()
    ]
    return text_format.Parse(
        f"rate_limiter {{ {' '.join(lines)} priority: {priority} }}", ModelInstanceGroup()
    )


class TestContract(RateLimiterContract):
    shared_group = 'rate_limiter { resources { name: "R" count: 1 } }'
    impossible_group = 'rate_limiter { resources { name: "R" count: 2 } }'

    def make(self):
        return ExecutionCountLimiter({"R": 1})


class Simulation:
    """Instances with endless work; each execution lasts `duration` in simulated time."""

    def __init__(self, limiter, groups, duration):
        self.limiter, self.duration = limiter, duration
        self.running = {}  # instance -> end
        self.grants = Counter()
        self.order = []
        self.now = 0.0
        for name, one in groups.items():
            assert limiter.register(name, 0, one)
        for name in groups:
            self.request(name, limiter.acquire)

    def request(self, name, how):
        if how(name, lambda: self.begin(name)):
            self.begin(name)

    def begin(self, name):
        self.grants[name] += 1
        self.order.append(name)
        self.running[name] = self.now + self.duration(name)

    def run(self, turns):
        for _ in range(turns):
            name = min(self.running, key=self.running.get)
            self.now = self.running.pop(name)
            self.request(name, self.limiter.reacquire)


def test_grants_match_the_priorities_over_a_long_run():
    chances = random.Random(7)
    groups = {
        f"{priority}-{number}": group({"R": 1}, priority)
        for priority in (1, 2, 3)
        for number in (0, 1)
    }
    simulation = Simulation(
        ExecutionCountLimiter({"R": 2}), groups, lambda _: chances.uniform(0.5, 1.5)
    )
    simulation.run(11_000)
    share = sum(simulation.grants.values()) / (2 * (1 + 1 / 2 + 1 / 3))
    for name, turns in simulation.grants.items():
        assert turns == pytest.approx(share / int(name[0]), rel=0.01)


def test_two_instances_that_share_one_busy_resource_alternate_by_priority():
    simulation = Simulation(
        ExecutionCountLimiter(), {"a": group({"R": 1}, 1), "b": group({"R": 1}, 2)}, lambda _: 1.0
    )
    simulation.run(300)
    assert simulation.grants["a"] == pytest.approx(2 * simulation.grants["b"], abs=3)


@pytest.mark.parametrize(
    ("first", "order"),
    [("a", "aabaabaabaab"), ("b", "baaaabaabaab")],
    ids=["priority 1 first", "priority 2 first"],
)
def test_the_order_is_that_of_triton_no_matter_which_client_begins(first, order):
    groups = {"a": group({"R": 4}, 1), "b": group({"R": 2}, 2)}
    simulation = Simulation(
        ExecutionCountLimiter({"R": 4}),
        dict(sorted(groups.items(), reverse=first == "b")),
        lambda _: 1.0,
    )
    simulation.run(11)
    assert "".join(simulation.order) == order


def test_a_large_demand_is_not_starved_by_many_small_ones():
    groups = {"large": group({"R": 4})} | {f"small{number}": group({"R": 1}) for number in range(8)}
    chances = random.Random(3)
    simulation = Simulation(
        ExecutionCountLimiter({"R": 4}), groups, lambda _: chances.uniform(0.1, 2.0)
    )
    simulation.run(4_500)
    assert simulation.grants["large"] == pytest.approx(min(simulation.grants.values()), abs=2)
    assert simulation.grants["large"] == pytest.approx(max(simulation.grants.values()), rel=0.02)


def test_a_late_instance_does_not_block_the_others():
    limiter = ExecutionCountLimiter({"R": 1})
    simulation = Simulation(limiter, {"old": group({"R": 1})}, lambda _: 1.0)
    simulation.run(1_000)
    limiter.register("new", 0, group({"R": 1}))
    simulation.request("new", limiter.acquire)
    before = Counter(simulation.grants)
    simulation.run(100)
    assert simulation.grants["old"] - before["old"] == pytest.approx(50, abs=1)


def test_an_instance_without_resources_is_not_limited():
    limiter = ExecutionCountLimiter({"R": 1})
    assert limiter.register("free", 0, group({}, priority=3)) is False
    limiter.unregister("free")


def test_devices_have_their_own_and_global_resources_are_shared():
    limiter = ExecutionCountLimiter()
    for name, device in (("zero", 0), ("one", 1)):
        limiter.register(name, device, group({"R": 1}))
        assert limiter.acquire(name, _unexpected)
    for name, device in (("two", 2), ("three", 3)):
        limiter.register(name, device, group({"G": 1}, shared={"G"}))
    assert limiter.acquire("two", _unexpected)
    assert not limiter.acquire("three", list)


def test_at_verbose_level_1_the_totals_are_logged_as_in_triton(caplog):
    caplog.set_level("DEBUG", "tritonpy")
    limiter = ExecutionCountLimiter()
    limiter.register("a", 0, group({"R1": 3, "R2": 1}))
    limiter.register("b", 1, group({"R1": 2}, shared=("G",)))
    limiter.unregister("a")
    first = "\nMax Resource Map===>\n\tDevice: 0\n\t\tResource: R1\t Count: 3\n\t\tResource: R2\t Count: 1\n"
    assert caplog.messages[0] == first
    assert "\tDevice: 0\n" not in caplog.messages[2]
    caplog.clear()
    caplog.set_level("INFO", "tritonpy")
    limiter.unregister("b")
    assert caplog.messages == []


def test_totals_follow_added_and_removed_instances():
    limiter, granted_names = ExecutionCountLimiter(), []
    limiter.register("small", 0, group({"R": 1}))
    limiter.register("other", 0, group({"R": 1}))
    assert limiter.acquire("small", _unexpected)
    assert not limiter.acquire("other", lambda: granted_names.append("other"))
    limiter.register("large", 0, group({"R": 2}))  # the total is now two, and one is free
    assert granted_names == ["other"]
    limiter.release("small")
    limiter.unregister("large")  # the total is one again
    assert not limiter.acquire("small", lambda: granted_names.append("small"))
    limiter.release("other")
    assert granted_names == ["other", "small"]


def test_a_refused_instance_changes_nothing():
    limiter = ExecutionCountLimiter({"R": 2})
    limiter.register("one", 0, group({"R": 2}))
    with pytest.raises(InvalidArgument):
        limiter.register("greedy", 0, group({"R": 3}))
    with pytest.raises(InvalidArgument):
        limiter.register("strange", 0, group({"R": 1}, shared={"R"}))
    assert limiter.acquire("one", _unexpected)
    limiter.unregister("greedy")
    limiter.unregister("strange")


def test_a_release_by_an_unregistered_instance_changes_nothing():
    limiter = ExecutionCountLimiter({"R": 1})
    for name in ("gone", "next"):
        limiter.register(name, 0, group({"R": 1}))
    assert limiter.acquire("gone", _unexpected)
    limiter.unregister("gone")
    assert limiter.acquire("next", _unexpected), "its resources are released with it"
    limiter.release("gone")
    limiter.register("third", 0, group({"R": 1}))
    assert not limiter.acquire("third", list)


class AnyOrder(RuleBasedStateMachine):
    """Any order of events: grants fit the totals, and no runnable instance waits."""

    def __init__(self):
        super().__init__()
        self.total = 4
        self.limiter = ExecutionCountLimiter({"R": self.total})
        self.demands, self.held, self.waiting = {}, set(), set()
        self.number = 0

    def granted(self, name):
        def grant():
            assert name in self.waiting, "granted although it did not wait"
            self.waiting.discard(name)
            self.held.add(name)

        return grant

    def request(self, name, how):
        self.waiting.add(name)
        if how(name, self.granted(name)):
            self.granted(name)()

    @rule(count=st.integers(1, 4), priority=st.integers(0, 3))
    def come(self, count, priority):
        self.number += 1
        name = f"i{self.number}"
        self.limiter.register(name, 0, group({"R": count}, priority))
        self.demands[name] = count

    @precondition(lambda self: set(self.demands) - self.held - self.waiting)
    @rule(data=st.data())
    def acquire(self, data):
        self.request(
            data.draw(st.sampled_from(sorted(set(self.demands) - self.held - self.waiting))),
            self.limiter.acquire,
        )

    @precondition(lambda self: self.held)
    @rule(data=st.data(), more=st.booleans())
    def end(self, data, more):
        name = data.draw(st.sampled_from(sorted(self.held)))
        self.held.discard(name)
        if more:
            self.request(name, self.limiter.reacquire)
        else:
            self.limiter.release(name)

    @precondition(lambda self: self.demands)
    @rule(data=st.data())
    def go(self, data):
        name = data.draw(st.sampled_from(sorted(self.demands)))
        self.held.discard(name)
        self.waiting.discard(name)
        del self.demands[name]
        self.limiter.unregister(name)

    @invariant()
    def nothing_is_lent_twice(self):
        assert sum(self.demands[name] for name in self.held) <= self.total

    @invariant()
    def an_instance_runs_while_any_waits(self):
        assert self.held or not self.waiting


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def _unexpected():
    raise AssertionError("an unexpected grant was notified")
