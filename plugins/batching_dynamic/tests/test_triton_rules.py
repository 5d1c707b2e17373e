"""The scheduler under random events against a slow and simple model of Triton's rules."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tritonpy import CallbackSink, InferRequest, QueueFull, Tensor
from tritonpy.scheduling import SchedulerContext
from tritonpy_batching_dynamic.preferred import PreferredPolicy
from tritonpy_batching_dynamic.scheduler import DynamicScheduler
from tritonpy_protos.model_config_pb2 import ModelConfig, ModelQueuePolicy

US = 1_000


@dataclass
class Waiting:
    number: int
    level: int
    rows: int
    width: int
    queued_ns: int
    deadline_ns: int | None
    delayed: int = 0  # 0: within its timeout, otherwise its position among the delayed


@dataclass
class Rules:
    """A simple implementation of the rules, evaluated from scratch at every call."""

    config: ModelConfig
    waiting: list[Waiting] = field(default_factory=list)
    ended: list[tuple[int, str]] = field(default_factory=list)
    delays: int = 0

    def policy(self, level):
        batching = self.config.dynamic_batching
        return batching.priority_queue_policy.get(level, batching.default_queue_policy)

    def arrive(self, number, request):
        levels = self.config.dynamic_batching.priority_levels
        default = self.config.dynamic_batching.default_priority_level
        level = request.priority if 1 <= request.priority <= levels else default
        policy = self.policy(level)
        if (
            policy.max_queue_size
            and sum(each.level == level for each in self.waiting) >= policy.max_queue_size
        ):
            return False
        times = [policy.default_timeout_microseconds]
        if policy.allow_timeout_override and request.timeout_us:
            times.append(request.timeout_us)
        deadline = (
            request.queued_ns + min(times) * US if policy.default_timeout_microseconds else None
        )
        width = request.inputs["IN"].shape[1]
        self.waiting.append(
            Waiting(number, level, request.batch_size, width, request.queued_ns, deadline)
        )
        return True

    def order(self):
        return sorted(self.waiting, key=lambda each: (each.level, each.delayed, each.number))

    def tick(self, now):
        for each in self.order():
            if each.deadline_ns is not None and now >= each.deadline_ns:
                each.deadline_ns = None
                if self.policy(each.level).timeout_action == ModelQueuePolicy.DELAY:
                    self.delays += 1
                    each.delayed = self.delays
                else:
                    self.end([each], "timeout")

    def end(self, gone, how):
        self.ended.extend((each.number, how) for each in gone)
        self.waiting = [each for each in self.waiting if each not in gone]

    def head(self):
        """Return the head that fits one batch, and whether a later request cannot join."""
        order = self.order()
        head = order[:1]
        for each in order[1:]:
            if (
                sum(one.rows for one in head) + each.rows > self.config.max_batch_size
                or each.width != head[0].width
            ):
                return head, True
            head.append(each)
        return head, False

    def batch(self, now):
        """Return the requests that may run now, or when to call again (None: none waiting)."""
        self.tick(now)
        if not self.waiting:
            return None
        batching = self.config.dynamic_batching
        preferred = list(batching.preferred_batch_size)
        delay = batching.max_queue_delay_microseconds * US
        head, closed = self.head()
        due = min(each.queued_ns for each in head) + delay
        if delay and now >= due:
            return head
        sums = [sum(each.rows for each in head[: count + 1]) for count in range(len(head))]
        exact = [count + 1 for count, rows in enumerate(sums) if rows in preferred]
        past = [count for count, rows in enumerate(sums) if rows > max(preferred) and count > 0]
        if exact:
            return head[: exact[-1]]
        if past:
            return head[: past[0]]
        if not delay or closed or sums[-1] >= max(preferred):
            return head
        return due


@st.composite
def configs(draw):
    maximum = draw(st.integers(1, 6))
    config = ModelConfig(max_batch_size=maximum)
    config.input.add(name="IN", dims=[-1])
    batching = config.dynamic_batching
    batching.preferred_batch_size.extend(
        draw(st.sets(st.integers(1, maximum), min_size=1, max_size=2))
    )
    batching.max_queue_delay_microseconds = draw(st.sampled_from([0, 0, 3, 10]))
    policies = st.builds(
        ModelQueuePolicy,
        timeout_action=st.sampled_from([ModelQueuePolicy.REJECT, ModelQueuePolicy.DELAY]),
        default_timeout_microseconds=st.sampled_from([0, 4, 12]),
        allow_timeout_override=st.booleans(),
        max_queue_size=st.sampled_from([0, 0, 3]),
    )
    batching.default_queue_policy.CopyFrom(draw(policies))
    batching.priority_levels = draw(st.sampled_from([0, 0, 3]))
    if batching.priority_levels:
        batching.default_priority_level = 2
        if draw(st.booleans()):
            batching.priority_queue_policy[1].CopyFrom(draw(policies))
    return config


ARRIVAL = st.tuples(
    st.just("arrive"),
    st.integers(1, 3),
    st.sampled_from([4, 4, 4, 5]),
    st.integers(0, 4),
    st.sampled_from([0, 0, 2, 99]),
)
STEPS = st.one_of(
    ARRIVAL,
    ARRIVAL,
    ARRIVAL,
    st.tuples(st.just("check_ready")),
    st.tuples(st.just("wait"), st.sampled_from([1, US, 2 * US, 3 * US, 9 * US])),
    st.tuples(st.just("take"), st.sampled_from([99, 99, 2])),
    st.tuples(st.just("cancel"), st.integers(0, 60)),
    st.tuples(st.just("tick")),
)


class Comparison:
    """Runs the scheduler and the rules on the same events."""

    def __init__(self, config):
        self.rules = Rules(config)
        self.ended = []
        self.now = 1
        self.requests = []
        self.sink = CallbackSink(self.record_response)
        context = SchedulerContext(
            "m", 1, config, None, lambda _name: PreferredPolicy(config), lambda: None
        )
        self.scheduler = DynamicScheduler(context)

    def record_response(self, request, response):
        text = {"Request timeout expired": "timeout", "Request cancelled": "cancel"}[
            response.error.message
        ]
        self.ended.append((request.tag, text))

    def arrive(self, rows, width, priority, timeout_us):
        number = len(self.requests)
        rows = min(rows, self.rules.config.max_batch_size)
        inputs = {"IN": Tensor("IN", "INT8", (rows, width), np.zeros((rows, width), np.int8))}
        request = InferRequest(
            "m", inputs, self.sink, tag=number, priority=priority, timeout_us=timeout_us
        )
        request.batch_size, request.queued_ns = rows, self.now
        self.requests.append(request)
        try:
            self.scheduler.enqueue(request)
        except QueueFull:
            accepted = False
        else:
            accepted = True
        assert accepted == self.rules.arrive(number, request)
        if not accepted:
            self.ended.append((number, "full"))
            self.rules.ended.append((number, "full"))
        self.tick()

    def check_ready(self):
        expected = self.rules.batch(self.now)
        found = self.scheduler.ready(0, self.now)
        if isinstance(expected, list):
            assert found is True
        else:
            assert found == (expected or False)

    def take(self, limit):
        expected = self.rules.batch(self.now)
        batch = self.scheduler.take(0, self.now, limit)
        if not isinstance(expected, list):
            assert batch is None
            return
        expected = expected[:limit]
        assert [request.tag for request in batch.requests] == [each.number for each in expected]
        assert batch.size <= self.rules.config.max_batch_size
        self.rules.end(expected, "run")
        self.ended.extend((request.tag, "run") for request in batch.requests)

    def cancel(self, index):
        if index < len(self.requests):
            self.scheduler.cancel(self.requests[index])
            self.rules.end([each for each in self.rules.waiting if each.number == index], "cancel")

    def tick(self):
        self.rules.tick(self.now)
        due = self.scheduler.expire(self.now)
        deadlines = [
            each.deadline_ns for each in self.rules.waiting if each.deadline_ns is not None
        ]
        assert not deadlines or self.now < due <= min(deadlines)

    def step(self, kind, *arguments):
        if kind == "wait":
            self.now += arguments[0]
        else:
            getattr(self, kind)(*arguments)
        assert sorted(self.ended) == sorted(self.rules.ended)

    def drain(self):
        while self.rules.waiting:
            self.now += 20 * US
            self.take(99)


@given(config=configs(), steps=st.lists(STEPS, max_size=40))
@settings(max_examples=200)
def test_the_scheduler_follows_the_rules_and_finishes_each_request_once(config, steps):
    comparison = Comparison(config)
    for step in steps:
        comparison.step(*step)
    assert [request.tag for request in comparison.scheduler.pending()] == [
        each.number for each in comparison.rules.order()
    ]
    comparison.drain()
    assert sorted(number for number, _ in comparison.ended) == list(range(len(comparison.requests)))
    assert comparison.scheduler.pending() == ()
