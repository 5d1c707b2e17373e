"""The real Triton and tritonpy serve the same Python models and get the same requests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.conformance.difference import differences
from tests.conformance.exchange import Exchange, Topic
from tests.conformance.exchange_runner import ExchangeRunner, run_on_both
from tests.conformance.intended_differences import judge, read
from tests.conformance.topics import TOPICS, full_name
from tests.sampling import Sampling

LISTED = read()
SAMPLE = Sampling.of_environment("conformance").share < 1
# The real server sometimes loses a race (a stub that dies during a response), so one result proves
# nothing.
ATTEMPTS = 3


def parameters() -> Iterator[Any]:
    for topic in TOPICS:
        for exchange in topic.exchanges:
            yield pytest.param(topic, exchange, id=full_name(topic, exchange))


@pytest.mark.parametrize(("topic", "exchange"), list(parameters()))
def test_both_servers_respond_identically(
    triton: ExchangeRunner, tritonpy: ExchangeRunner, topic: Topic, exchange: Exchange
) -> None:
    name = full_name(topic, exchange)
    for _ in range(ATTEMPTS):
        found = list(differences(*run_on_both(triton, tritonpy, topic, exchange)))
        verdict = judge(name, found, LISTED, sample=SAMPLE)
        if verdict.good:
            return
        print(f"{name}: {verdict}")
    pytest.fail(f"\n{verdict}")
