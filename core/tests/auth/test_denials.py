from __future__ import annotations

import logging

from tritonpy.auth import Verb
from tritonpy.auth.denials import FORBIDDEN, METRIC, UNAUTHENTICATED, Denials, RateLimitedLog
from tritonpy.metrics import CustomMetrics, ModelMetrics

LOG = logging.getLogger("tritonpy.auth")
SECOND = 1_000_000_000


class World:
    def __init__(self):
        self.now = 0
        self.metrics = CustomMetrics()
        self.denials = Denials(ModelMetrics(self.metrics), LOG, lambda: self.now)

    def count(self, reason, verb):
        (family,) = self.metrics.snapshot()
        assert family.name == METRIC
        return next(
            one.value
            for one in family.metrics
            if one.labels == {"reason": reason, "verb": verb.value}
        )


def test_each_reason_and_verb_has_its_counter():
    world = World()
    for _ in range(3):
        world.denials.note(UNAUTHENTICATED, Verb.INFER, "m")
    world.denials.note(FORBIDDEN, Verb.ADMIN, "", "anna")
    assert world.count(UNAUTHENTICATED, Verb.INFER) == 3
    assert world.count(FORBIDDEN, Verb.ADMIN) == 1
    assert world.count(FORBIDDEN, Verb.INFER) == 0


def test_the_log_names_principal_verb_and_model(caplog):
    denials = World().denials
    denials.note(FORBIDDEN, Verb.MANAGE, "digits", "anna")
    denials.note(UNAUTHENTICATED, Verb.READ, "")
    assert [record.getMessage() for record in caplog.records] == [
        "denied: 'anna' may not manage model 'digits'",
        "denied: an unknown principal may not read the server",
    ]


def test_refused_clients_cannot_flood_the_log(caplog):
    world = World()
    for _ in range(1000):
        world.denials.note(UNAUTHENTICATED, Verb.INFER, "m" * 10_000)
    assert len(caplog.records) == 10
    assert max(len(record.getMessage()) for record in caplog.records) < 300
    world.now += SECOND
    world.denials.note(UNAUTHENTICATED, Verb.INFER, "m")
    world.denials.note(UNAUTHENTICATED, Verb.INFER, "m")
    assert len(caplog.records) == 11
    assert "990 similar lines suppressed" in caplog.records[-1].getMessage()
    assert world.count(UNAUTHENTICATED, Verb.INFER) == 1002


def test_only_the_type_of_an_authenticator_s_error_is_logged(caplog):
    World().denials.failed("own", RuntimeError("the key was tpy_secret"))
    assert (
        caplog.records[0].getMessage()
        == "authenticator 'own' failed, access is denied: RuntimeError"
    )


def test_lines_are_limited_and_suppressed_lines_are_counted(caplog):
    now = 0
    limited = RateLimitedLog(logging.getLogger("tritonpy.auth"), lambda: now)
    for number in range(1000):
        limited.warn(f"line {number}")
    assert caplog.messages == [f"line {number}" for number in range(10)]
    now += SECOND
    limited.warn("one")
    limited.warn("other")
    assert caplog.messages[10:] == ["one (990 similar lines suppressed)"]


def test_a_pause_allows_at_most_ten_lines(caplog):
    now = 0
    limited = RateLimitedLog(logging.getLogger("tritonpy.auth"), lambda: now)
    now += 1000 * SECOND
    for _ in range(100):
        limited.warn("line")
    assert len(caplog.messages) == 10
