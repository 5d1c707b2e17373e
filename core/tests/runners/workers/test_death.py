from __future__ import annotations

import pytest

from tritonpy.runners.workers.death import describe


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (None, "it ended, with a status that is not known"),
        (0, "it exited with status 0"),
        (137, "it exited with status 137"),
        (-11, "it was killed by signal 11 (SIGSEGV)"),
        (-6, "it was killed by signal 6 (SIGABRT)"),
        (-9, "it was killed by signal 9 (SIGKILL): by somebody, or by the system for want of memory"),
        (-250, "it was killed by signal 250"),
    ],
)
def test_a_status_is_put_into_words(status, text):
    assert describe(status) == text
