"""SequenceTable under random orders of events."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tritonpy import CallbackSink, InferRequest
from tritonpy_batching_sequence.sequence_table import MissingStart, SequenceTable

SLOTS = 2
IDLE_NS = 1_000
IDS = st.integers(1, 6)


def request(timeout_us=0, queued_ns=0):
    return InferRequest(
        "m", {}, CallbackSink(lambda *_: None), timeout_us=timeout_us, queued_ns=queued_ns
    )


class SequenceTableMachine(RuleBasedStateMachine):
    """Clients, instances and a clock.

    `sent` holds each sequence's requests in order. `gone` holds requests that were pulled, dropped
    or rejected.
    """

    one_at_a_time = False

    def __init__(self):
        super().__init__()
        self.table = SequenceTable(SLOTS, IDLE_NS, self.one_at_a_time)
        self.now = 1
        self.instances = [0, 1]
        self.last = 1
        self.table.set_instances(self.instances)
        self.sent = defaultdict(list)
        self.pulled = defaultdict(list)
        self.running = []
        self.gone = set()
        self.places = {}

    @rule(
        name=IDS, start=st.booleans(), end=st.booleans(), timeout_us=st.sampled_from([0, 0, 1, 5])
    )
    def send(self, name, start, end, timeout_us):
        made = request(timeout_us, self.now)
        known = name in self.table.live
        try:
            sequence = self.table.add(made, name, start, end, self.now)
        except MissingStart:
            assert not start
            assert not known
            assert self.table.sequence_of(made) is None
            return
        assert known or start
        assert (name in self.table.live) != end
        self.sent[sequence].append(made)

    @precondition(lambda self: any(group.ready for group in self.table.groups.values()))
    @rule(data=st.data())
    def pull(self, data):
        ready = [sequence for group in self.table.groups.values() for sequence in group.ready]
        sequence = data.draw(st.sampled_from(ready))
        place = (sequence.group.instance, sequence.slot)
        assert self.places.setdefault(sequence, place) == place, "a sequence that had begun moved"
        assert not (self.one_at_a_time and sequence.running)
        made = self.table.pull(sequence)
        self.pulled[sequence].append(made)
        self.gone.add(made)
        self.running.append(made)

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def finish(self, data):
        made = self.running.pop(data.draw(st.integers(0, len(self.running) - 1)))
        assert self.table.release(made) is not None
        assert self.table.release(made) is None

    @precondition(lambda self: any(self.waiting()))
    @rule(data=st.data())
    def cancel(self, data):
        victim = data.draw(st.sampled_from(self.waiting()))
        sequence = self.table.sequence_of(victim)
        has_slot = sequence.group is not None
        dropped = self.table.cancel(victim)
        order = self.sent[sequence]
        assert victim in dropped
        assert sequence.ended
        if has_slot:
            assert dropped == [
                each for each in order[order.index(victim) :] if each not in self.gone
            ]
        else:
            assert dropped == [each for each in order if each not in self.gone]
        self.gone.update(dropped)

    @rule(ns=st.integers(1, 2 * IDLE_NS))
    def advance(self, ns):
        self.table.stamp(self.now)
        self.now += ns
        idle = [each for each in self.table.live.values() if not each.has_requests]
        for made in self.table.expire(self.now):
            assert made not in self.gone
            self.gone.add(made)
        due = self.table.due(self.now)
        assert due is None or due > self.now
        assert due is not None or not self.table.live
        if ns >= IDLE_NS:
            assert not any(
                each.id in self.table.live and self.table.live[each.id] is each for each in idle
            )

    @rule()
    def add_instance(self):
        if len(self.instances) < 3:
            self.last += 1
            self.instances.append(self.last)
            self.table.set_instances(self.instances)

    @precondition(lambda self: len(self.instances) > 1)
    @rule(data=st.data())
    def remove_instance(self, data):
        self.instances.remove(data.draw(st.sampled_from(self.instances)))
        self.table.set_instances(self.instances)

    @invariant()
    def no_request_is_lost_or_reordered(self):
        pending = list(self.table.pending())
        assert len(pending) == len(set(map(id, pending)))
        for sequence, order in self.sent.items():
            assert [each for each in order if each in set(pending)] == list(sequence.waiting)
            served = self.pulled[sequence]
            assert served == [each for each in order if each in served]
        everything = [each for order in self.sent.values() for each in order]
        assert {each for each in everything if each not in self.gone} == set(pending)

    @invariant()
    def the_number_of_slots_is_constant(self):
        live = [group for group in self.table.groups.values() if not group.draining]
        assert {group.instance for group in live} == set(self.instances)
        taken = sum(len(group.sequences()) for group in live)
        assert taken + len(self.table._free) == SLOTS * len(self.instances)
        assert not (self.table._free and self.table._backlog)
        for group in self.table.groups.values():
            assert group.sequences() or not group.draining
            for slot, sequence in enumerate(group.slots):
                assert sequence is None or (sequence.group is group and sequence.slot == slot)
                assert sequence is None or sequence.has_requests or not sequence.ended, (
                    "a slot leaked"
                )
            expected = {
                each
                for each in group.sequences()
                if each.waiting and not (self.one_at_a_time and each.running)
            }
            assert set(group.ready) == expected

    def waiting(self):
        return list(self.table.pending())

    def teardown(self):
        """Check that nothing remains when all requests are served and the clients have gone."""
        for _ in range(1_000):
            self.now += IDLE_NS
            self.gone.update(self.table.expire(self.now))
            while self.running:
                self.table.release(self.running.pop())
            for group in list(self.table.groups.values()):
                for sequence in list(group.ready):
                    self.running.append(self.table.pull(sequence))
            self.table.stamp(self.now)
            if not (self.table.live or self.running or self.waiting()):
                break
        assert not self.table.live
        assert sorted(self.table.groups) == sorted(self.instances)
        assert len(self.table._free) == SLOTS * len(self.instances)
        assert not self.table._sequences
        assert not self.table._idle


class OneAtATime(SequenceTableMachine):
    one_at_a_time = True


TestRoster = SequenceTableMachine.TestCase
TestRosterOneAtATime = OneAtATime.TestCase
TestRoster.settings = TestRosterOneAtATime.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None
)


@pytest.fixture
def table():
    made = SequenceTable(1, IDLE_NS, one_at_a_time=True)
    made.set_instances([0])
    return made


def test_a_request_that_runs_again_comes_before_the_others(table):
    first, second = request(), request()
    sequence = table.add(first, 1, True, False, 0)
    table.add(second, 1, False, False, 0)
    assert table.pull(sequence) is first
    assert table.put_back(first) is sequence
    assert table.put_back(first) is None
    assert list(sequence.waiting) == [first, second]
    assert table.pull(sequence) is first


def test_an_ended_sequence_keeps_its_slot_for_a_request_that_runs_again(table):
    only, other = request(), request()
    sequence = table.add(only, 1, True, True, 0)
    table.add(other, 2, True, False, 0)
    table.pull(sequence)
    table.put_back(only)
    assert table.pull(sequence) is only
    table.release(only)
    assert list(table.groups[0].ready) == [table.sequence_of(other)]


def test_one_request_can_be_removed_without_the_others(table):
    made = [request() for _ in range(3)]
    sequence = table.add(made[0], 1, True, False, 0)
    for each in made[1:]:
        table.add(each, 1, False, False, 0)
    assert table.remove(made[1])
    assert not table.remove(made[1])
    assert list(sequence.waiting) == [made[0], made[2]]
    assert not sequence.ended


def test_a_sequence_without_its_first_requests_ends(table):
    first, second = request(), request()
    table.add(first, 1, True, False, 0)
    table.add(second, 1, False, False, 0)
    assert table.remove(first)
    assert 1 in table.live
    assert table.remove(second)
    assert not table.live
    table.set_instances([])
    assert not table.groups


def test_due_returns_the_end_of_the_idle_time(table):
    only = request()
    sequence = table.add(only, 1, True, False, 100)
    assert table.due(100) == 100 + IDLE_NS
    table.pull(sequence)
    table.expire(100 + IDLE_NS)
    assert 1 in table.live
    table.release(only)
    table.stamp(5_000)
    assert table.due(5_001) == 5_000 + IDLE_NS
    table.expire(5_000 + IDLE_NS)
    assert not table.live
    assert table.due(6_001) is None
