from __future__ import annotations

import pytest

from tritonpy_engine_rpc.exit_status import describe_exit


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (None, "it exited with an unknown status"),
        (0, "it exited with status 0"),
        (137, "it exited with status 137"),
        (-11, "it was killed by signal 11 (SIGSEGV)"),
        (-6, "it was killed by signal 6 (SIGABRT)"),
        (-9, "it was killed by signal 9 (SIGKILL), possibly because the system was out of memory"),
        (-250, "it was killed by signal 250"),
    ],
)
def test_a_status_is_described(status, text):
    assert describe_exit(status) == text
