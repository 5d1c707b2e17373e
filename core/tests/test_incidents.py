from __future__ import annotations

import logging
import re

import pytest

from tritonpy import Internal, incident

LOG = logging.getLogger("tritonpy.test")


def test_the_log_has_the_traceback_and_the_client_the_id_alone(caplog: pytest.LogCaptureFixture) -> None:
    cause = RuntimeError("secret")
    error = incident(LOG, "GET /v2", cause)
    assert isinstance(error, Internal)
    told = re.fullmatch(r"unexpected error in the server, see incident ([0-9a-f]{8}) in its log", error.message)
    assert told is not None, error.message
    [record] = caplog.records
    assert record.levelno == logging.ERROR
    assert record.getMessage() == f"incident {told[1]}: GET /v2 failed unexpectedly"
    assert record.exc_info is not None
    assert record.exc_info[1] is cause


def test_no_two_incidents_have_the_same_id(caplog: pytest.LogCaptureFixture) -> None:
    assert len({incident(LOG, "it", RuntimeError()).message for _ in range(100)}) == 100
