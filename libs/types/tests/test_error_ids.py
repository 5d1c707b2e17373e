from __future__ import annotations

import logging
import re

import pytest

from tritonpy import Internal
from tritonpy.frontend import internal_error

LOG = logging.getLogger("tritonpy.test")


def test_the_log_has_the_traceback_and_the_client_only_the_id(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cause = RuntimeError("secret")
    error = internal_error(LOG, "GET /v2", cause)
    assert isinstance(error, Internal)
    match = re.fullmatch(
        r"unexpected error in the server, see error id ([0-9a-f]{8}) in its log", error.message
    )
    assert match is not None, error.message
    [record] = caplog.records
    assert record.levelno == logging.ERROR
    assert record.getMessage() == f"error id {match[1]}: GET /v2 failed unexpectedly"
    assert record.exc_info is not None
    assert record.exc_info[1] is cause


def test_error_ids_are_unique(caplog: pytest.LogCaptureFixture) -> None:
    assert len({internal_error(LOG, "it", RuntimeError()).message for _ in range(100)}) == 100
