from __future__ import annotations

import pytest

from tritonpy_worker.api.errors import TritonModelException
from tritonpy_worker.api.queries import query, refusal


def test_the_servers_result_is_returned(host):
    host.answers["color"] = "red"
    assert query(host, "No luck", "color", {"of": "sky"}) == "red"
    assert host.queries == [("color", {"of": "sky"})]


def test_an_error_names_operation_model_and_reason(host):
    host.answers["color"] = TritonModelException("it is night")
    text = "No luck: Failed to process the request for model 'm_0_0', message: it is night"
    with pytest.raises(TritonModelException) as caught:
        query(host, "No luck", "color", {})
    assert str(caught.value) == text
    assert caught.value.__suppress_context__
    assert str(refusal(host, "No luck", "it is night")) == text


def test_other_errors_are_not_converted(host):
    host.answers["color"] = ConnectionError("gone")
    with pytest.raises(ConnectionError):
        query(host, "No luck", "color", {})
