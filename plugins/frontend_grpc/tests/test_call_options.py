from __future__ import annotations

import asyncio
import logging
import re

import msgspec
import pytest

from tritonpy import FrontendContext
from tritonpy_frontend_grpc.call_options import CallOptions, access_of, service_of
from tritonpy_frontend_grpc.options import GrpcOptions
from tritonpy_frontend_grpc.service import InferenceService

from .doorkeeper import Doorkeeper
from .fake_engine import FakeEngine

LOG = logging.getLogger("test")


def context(**more):
    return FrontendContext("127.0.0.1", LOG, **more)


def options(**given):
    return msgspec.convert(given, CallOptions)


def test_the_options_of_calls_are_options_of_the_frontend():
    assert set(CallOptions.__struct_fields__) < set(GrpcOptions.__struct_fields__)


@pytest.mark.parametrize(
    "given", [{"header_forward_pattern": "("}, {"restricted_apis": [{"apis": ["health"], "key": "k"}] * 2}]
)  # fmt: skip
def test_what_can_not_be_is_refused(given):
    with pytest.raises((msgspec.ValidationError, re.error)):
        options(**{name.replace("_", "-"): value for name, value in given.items()})


def test_nobody_is_asked_where_nothing_is_configured():
    assert access_of(options(), context()) is None


@pytest.mark.parametrize(
    ("given", "more"),
    [
        ({"header-forward-pattern": "x"}, {}),
        ({}, {"gatekeeper": Doorkeeper()}),
        ({}, {"kept_headers": frozenset({"traceparent"})}),
    ],
)
def test_whatever_concerns_callers_needs_somebody_to_ask(given, more):
    assert access_of(options(**given), context(**more)) is not None


def test_a_variable_for_tests_makes_another_service(monkeypatch):
    async def made():
        return type(service_of(FakeEngine(), options(), context(), None))

    assert asyncio.run(made()) is InferenceService
    monkeypatch.setenv("TRITONSERVER_DELAY_GRPC_PROCESS", "1")
    delayed = asyncio.run(made())
    assert delayed is not InferenceService
    assert issubclass(delayed, InferenceService)
