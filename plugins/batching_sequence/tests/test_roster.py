"""The roster under every order of events that hypothesis finds."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tritonpy import CallbackSink, InferRequest
from tritonpy_batching_sequence.roster import MissingStart, Roster

SEATS = 2
IDLE_NS = 1_000
IDS = st.integers(1, 6)


def request(timeout_us=0, queued_ns=0):
    return InferRequest("m", {}, CallbackSink(lambda *_: None), timeout_us=timeout_us, queued_ns=queued_ns)


class Life(RuleBasedStateMachine):
    """Clients, instances and a clock. `sent` are the requests of each sequence object in order, `gone` those that were pulled, dropped or refused."""

    one_at_a_time = False

    def __init__(self):
        super().__init__()
        self.roster = Roster(SEATS, IDLE_NS, self.one_at_a_time)
        self.now = 1
        self.instances = [0, 1]
        self.last = 1
        self.roster.change(self.instances)
        self.sent = defaultdict(list)
        self.pulled = defaultdict(list)
        self.running = []
        self.gone = set()
        self.places = {}

    @rule(name=IDS, start=st.booleans(), end=st.booleans(), timeout_us=st.sampled_from([0, 0, 1, 5]))
    def send(self, name, start, end, timeout_us):
        made = request(timeout_us, self.now)
        known = name in self.roster.live
        try:
            sequence = self.roster.add(made, name, start, end, self.now)
        except MissingStart:
            assert not start
            assert not known
            assert self.roster.of(made) is None
            return
        assert known or start
        assert (name in self.roster.live) != end
        self.sent[sequence].append(made)

    @precondition(lambda self: any(lane.ready for lane in self.roster.lanes.values()))
    @rule(data=st.data())
    def pull(self, data):
        ready = [sequence for lane in self.roster.lanes.values() for sequence in lane.ready]
        sequence = data.draw(st.sampled_from(ready))
        place = (sequence.lane.instance, sequence.seat)
        assert self.places.setdefault(sequence, place) == place, "a sequence that had begun moved"
        assert not (self.one_at_a_time and sequence.running)
        made = self.roster.pull(sequence)
        self.pulled[sequence].append(made)
        self.gone.add(made)
        self.running.append(made)

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def answer(self, data):
        made = self.running.pop(data.draw(st.integers(0, len(self.running) - 1)))
        assert self.roster.release(made) is not None
        assert self.roster.release(made) is None

    @precondition(lambda self: any(self.waiting()))
    @rule(data=st.data())
    def cancel(self, data):
        victim = data.draw(st.sampled_from(self.waiting()))
        sequence = self.roster.of(victim)
        seated = sequence.lane is not None
        dropped = self.roster.drop(victim)
        order = self.sent[sequence]
        assert victim in dropped
        assert sequence.ended
        if seated:
            assert dropped == [each for each in order[order.index(victim) :] if each not in self.gone]
        else:
            assert dropped == [each for each in order if each not in self.gone]
        self.gone.update(dropped)

    @rule(ns=st.integers(1, 2 * IDLE_NS))
    def pass_time(self, ns):
        self.roster.look(self.now)
        self.now += ns
        idle = [each for each in self.roster.live.values() if not each.open]
        for made in self.roster.expire(self.now):
            assert made not in self.gone
            self.gone.add(made)
        due = self.roster.due(self.now)
        assert due is None or due > self.now
        assert due is not None or not self.roster.live
        if ns >= IDLE_NS:
            assert not any(each.id in self.roster.live and self.roster.live[each.id] is each for each in idle)

    @rule()
    def add_instance(self):
        if len(self.instances) < 3:
            self.last += 1
            self.instances.append(self.last)
            self.roster.change(self.instances)

    @precondition(lambda self: len(self.instances) > 1)
    @rule(data=st.data())
    def remove_instance(self, data):
        self.instances.remove(data.draw(st.sampled_from(self.instances)))
        self.roster.change(self.instances)

    @invariant()
    def nothing_is_lost_and_nothing_overtakes(self):
        pending = list(self.roster.pending())
        assert len(pending) == len(set(map(id, pending)))
        for sequence, order in self.sent.items():
            assert [each for each in order if each in set(pending)] == list(sequence.waiting)
            served = self.pulled[sequence]
            assert served == [each for each in order if each in served]
        everything = [each for order in self.sent.values() for each in order]
        assert {each for each in everything if each not in self.gone} == set(pending)

    @invariant()
    def seats_are_neither_lost_nor_made(self):
        live = [lane for lane in self.roster.lanes.values() if not lane.leaving]
        assert {lane.instance for lane in live} == set(self.instances)
        taken = sum(len(lane.sequences()) for lane in live)
        assert taken + len(self.roster._free) == SEATS * len(self.instances)
        assert not (self.roster._free and self.roster._backlog)
        for lane in self.roster.lanes.values():
            assert lane.sequences() or not lane.leaving
            for seat, sequence in enumerate(lane.seats):
                assert sequence is None or (sequence.lane is lane and sequence.seat == seat)
                assert sequence is None or sequence.open or not sequence.ended, "a seat leaked"
            wanted = {each for each in lane.sequences() if each.waiting and not (self.one_at_a_time and each.running)}
            assert set(lane.ready) == wanted

    def waiting(self):
        return list(self.roster.pending())

    def teardown(self):
        """Whatever happened: when all is served and the clients are gone, nothing is left."""
        for _ in range(1_000):
            self.now += IDLE_NS
            self.gone.update(self.roster.expire(self.now))
            while self.running:
                self.roster.release(self.running.pop())
            for lane in list(self.roster.lanes.values()):
                for sequence in list(lane.ready):
                    self.running.append(self.roster.pull(sequence))
            self.roster.look(self.now)
            if not (self.roster.live or self.running or self.waiting()):
                break
        assert not self.roster.live
        assert sorted(self.roster.lanes) == sorted(self.instances)
        assert len(self.roster._free) == SEATS * len(self.instances)
        assert not self.roster._homes
        assert not self.roster._idle


class OneAtATime(Life):
    one_at_a_time = True


TestRoster = Life.TestCase
TestRosterOneAtATime = OneAtATime.TestCase
TestRoster.settings = TestRosterOneAtATime.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


@pytest.fixture
def roster():
    made = Roster(1, IDLE_NS, one_at_a_time=True)
    made.change([0])
    return made


def test_a_request_that_runs_again_comes_before_the_others(roster):
    first, second = request(), request()
    sequence = roster.add(first, 1, True, False, 0)
    roster.add(second, 1, False, False, 0)
    assert roster.pull(sequence) is first
    assert roster.put_back(first) is sequence
    assert roster.put_back(first) is None
    assert list(sequence.waiting) == [first, second]
    assert roster.pull(sequence) is first


def test_an_ended_sequence_keeps_its_seat_for_a_request_that_runs_again(roster):
    only, other = request(), request()
    sequence = roster.add(only, 1, True, True, 0)
    roster.add(other, 2, True, False, 0)
    roster.pull(sequence)
    roster.put_back(only)
    assert roster.pull(sequence) is only
    roster.release(only)
    assert list(roster.lanes[0].ready) == [roster.of(other)]


def test_one_request_can_be_forgotten_without_the_others(roster):
    made = [request() for _ in range(3)]
    sequence = roster.add(made[0], 1, True, False, 0)
    for each in made[1:]:
        roster.add(each, 1, False, False, 0)
    assert roster.forget(made[1])
    assert not roster.forget(made[1])
    assert list(sequence.waiting) == [made[0], made[2]]
    assert not sequence.ended


def test_a_sequence_whose_first_requests_are_all_forgotten_is_over_and_its_instance_can_go(roster):
    first, second = request(), request()
    roster.add(first, 1, True, False, 0)
    roster.add(second, 1, False, False, 0)
    assert roster.forget(first)
    assert 1 in roster.live
    assert roster.forget(second)
    assert not roster.live
    roster.change([])
    assert not roster.lanes


def test_what_is_idle_is_looked_at_again_in_time(roster):
    only = request()
    sequence = roster.add(only, 1, True, False, 100)
    assert roster.due(100) == 100 + IDLE_NS
    roster.pull(sequence)
    roster.expire(100 + IDLE_NS)
    assert 1 in roster.live
    roster.release(only)
    roster.look(5_000)
    assert roster.due(5_001) == 5_000 + IDLE_NS
    roster.expire(5_000 + IDLE_NS)
    assert not roster.live
    assert roster.due(6_001) is None
