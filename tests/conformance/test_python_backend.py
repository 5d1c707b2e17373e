"""The real Triton and tritonpy serve the same Python models and are asked the same questions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.conformance.comparing import differences
from tests.conformance.exchange import Exchange, Topic
from tests.conformance.intended import judge, read
from tests.conformance.interviewer import Interviewer
from tests.conformance.topics import TOPICS, full_name

LISTED = read()


def parameters() -> Iterator[Any]:
    for topic in TOPICS:
        for exchange in topic.exchanges:
            yield pytest.param(topic, exchange, id=full_name(topic, exchange))


@pytest.mark.parametrize(("topic", "exchange"), list(parameters()))
def test_both_servers_answer_alike(
    triton: Interviewer, tritonpy: Interviewer, topic: Topic, exchange: Exchange
) -> None:
    found = list(differences(triton.answers(topic, exchange), tritonpy.answers(topic, exchange)))
    verdict = judge(full_name(topic, exchange), found, LISTED)
    assert verdict.good, f"\n{verdict}"
