from __future__ import annotations

import pytest

from tritonpy_worker.api.errors import TritonModelException
from tritonpy_worker.api.questions import ask, refusal


def test_an_answer_is_the_servers(host):
    host.answers["colour"] = "red"
    assert ask(host, "No luck", "colour", {"of": "sky"}) == "red"
    assert host.asked == [("colour", {"of": "sky"})]


def test_a_refusal_says_what_failed_where_and_why(host):
    host.answers["colour"] = TritonModelException("it is night")
    text = "No luck: Failed to process the request for model 'm_0_0', message: it is night"
    with pytest.raises(TritonModelException) as caught:
        ask(host, "No luck", "colour", {})
    assert str(caught.value) == text
    assert caught.value.__suppress_context__
    assert str(refusal(host, "No luck", "it is night")) == text


def test_other_errors_are_not_the_servers(host):
    host.answers["colour"] = ConnectionError("gone")
    with pytest.raises(ConnectionError):
        ask(host, "No luck", "colour", {})
