from __future__ import annotations

import pytest

from tritonpy import CallbackSink, InferRequest
from tritonpy.auth import Principal
from tritonpy_queueing_fair.tenant_name import tenant_name

SINK = CallbackSink(lambda *_: None)


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({}, ""),
        ({"principal": Principal("acme")}, "acme"),
        ({"principal": Principal("key 7 of acme", account="acme")}, "acme"),
        ({"principal": "acme"}, ""),
        ({"headers": {"x-tenant": "given"}, "principal": Principal("acme")}, "given"),
        ({"headers": {"x-tenant": ""}, "principal": Principal("acme")}, "acme"),
        (
            {"parameters": {"x-tenant": "what the body says"}, "principal": Principal("acme")},
            "acme",
        ),
    ],
)
def test_a_header_overrides_the_client_s_name(fields, name):
    assert tenant_name(InferRequest("m", {}, SINK, **fields), "x-tenant") == name


def test_without_a_configured_header_none_is_used():
    assert tenant_name(InferRequest("m", {}, SINK, headers={"x-tenant": "y"}), "") == ""


def test_a_request_from_a_model_belongs_to_its_parent_s_tenant():
    first = InferRequest("m", {}, SINK, principal=Principal("acme"))
    call = InferRequest(
        "n",
        {},
        SINK,
        principal=Principal("other"),
        parent=InferRequest("m", {}, SINK, parent=first),
    )
    assert tenant_name(call, "x-tenant") == "acme"
