from __future__ import annotations

import asyncio
import logging
import re

import msgspec
import pytest

from tritonpy.frontend import FrontendContext
from tritonpy_frontend_grpc.call_options import GrpcCallOptions, make_access, make_service
from tritonpy_frontend_grpc.options import GrpcOptions
from tritonpy_frontend_grpc.service import InferenceService

from .fake_engine import FakeEngine
from .recording_authorizer import RecordingAuthorizer

LOG = logging.getLogger("test")


def context(**more):
    return FrontendContext("127.0.0.1", LOG, **more)


def options(**given):
    return msgspec.convert(given, GrpcCallOptions)


def test_the_options_of_calls_are_options_of_the_frontend():
    assert set(GrpcCallOptions.__struct_fields__) < set(GrpcOptions.__struct_fields__)


@pytest.mark.parametrize(
    "given", [{"header_forward_pattern": "("}, {"restricted_apis": [{"apis": ["health"], "key": "k"}] * 2}]
)  # fmt: skip
def test_invalid_options_are_rejected(given):
    with pytest.raises((msgspec.ValidationError, re.error)):
        options(**{name.replace("_", "-"): value for name, value in given.items()})


def test_there_are_no_access_checks_by_default():
    assert make_access(options(), context()) is None


@pytest.mark.parametrize(
    ("given", "more"),
    [
        ({"header-forward-pattern": "x"}, {}),
        ({}, {"authorizer": RecordingAuthorizer()}),
        ({}, {"kept_headers": frozenset({"traceparent"})}),
    ],
)
def test_options_about_principals_enable_access_checks(given, more):
    assert make_access(options(**given), context(**more)) is not None


def test_delay_variables_select_the_delayed_service(monkeypatch):
    async def made():
        return type(make_service(FakeEngine(), options(), context(), None))

    assert asyncio.run(made()) is InferenceService
    monkeypatch.setenv("TRITONSERVER_DELAY_GRPC_PROCESS", "1")
    delayed = asyncio.run(made())
    assert delayed is not InferenceService
    assert issubclass(delayed, InferenceService)
