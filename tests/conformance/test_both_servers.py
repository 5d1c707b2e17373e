"""The real Triton and tritonpy serve the same Python models and are asked the same questions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.conformance.comparing import differences
from tests.conformance.exchange import Exchange, Topic
from tests.conformance.intended import judge, read
from tests.conformance.interviewer import Interviewer, both_answers
from tests.conformance.sampling import Sampling
from tests.conformance.topics import TOPICS, full_name

LISTED = read()
SAMPLE = Sampling.of_environment().share < 1
# The real server loses a race of its own now and then (a stub that dies while it answers): what it does once is not yet what it does.
ATTEMPTS = 3


def parameters() -> Iterator[Any]:
    for topic in TOPICS:
        for exchange in topic.exchanges:
            yield pytest.param(topic, exchange, id=full_name(topic, exchange))


@pytest.mark.parametrize(("topic", "exchange"), list(parameters()))
def test_both_servers_answer_alike(
    triton: Interviewer, tritonpy: Interviewer, topic: Topic, exchange: Exchange
) -> None:
    name = full_name(topic, exchange)
    for _ in range(ATTEMPTS):
        found = list(differences(*both_answers(triton, tritonpy, topic, exchange)))
        verdict = judge(name, found, LISTED, sample=SAMPLE)
        if verdict.good:
            return
        print(f"{name}: {verdict}")
    pytest.fail(f"\n{verdict}")
