from __future__ import annotations

import pytest

from tests.conformance.exchange import Http, load, topic
from tests.conformance.intended_differences import read
from tests.conformance.model_source import keys
from tests.conformance.repository import write
from tests.conformance.topics import TOPICS, full_name

NAMES = [full_name(one, exchange) for one in TOPICS for exchange in one.exchanges]


def test_exchange_names_are_unique():
    assert len(NAMES) >= 300
    assert len(set(NAMES)) == len(NAMES)


def test_two_exchanges_of_a_topic_cannot_share_a_name():
    one = TOPICS[0].exchanges[0]
    with pytest.raises(ValueError, match="two exchanges"):
        topic("twice", "", [one, one])


def test_every_model_of_a_topic_is_in_the_repository(tmp_path):
    there = {path.name for path in write(tmp_path / "models").iterdir()}
    assert {model for one in TOPICS for model in one.models} <= there


def test_every_listed_difference_matches_an_exchange():
    assert [
        entry.exchange for entry in read() if not any(entry.concerns(name) for name in NAMES)
    ] == []


def test_a_request_has_the_documented_wire_form():
    assert Http("/v2").wire() == b"GET /v2 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    assert load("m").wire() == (
        b"POST /v2/repository/models/m/load HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
    )


def test_a_model_s_keys_are_read_from_its_source():
    assert keys("tensors", "MAKE")[0] == "int32"
    with pytest.raises(ValueError, match="no dictionary"):
        keys("tensors", "NOT_THERE")
