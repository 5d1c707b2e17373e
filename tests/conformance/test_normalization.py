from __future__ import annotations

import pytest

from tests.conformance.normalization import normalized

API_FRAME = "  /some/where/triton_python_backend_utils.py(335): set_max_batch_size\n"
OWN_FRAME = "  /else/where/tritonpy_worker/api/model_config.py(40): set_max_batch_size\n"
MODEL_FRAME = "  /models/m/1/model.py(7): execute\n"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("at <x object at 0x7f12ab34>", "at <x object at 0x55aabbcc>"),
        ("in /tmp/folderAbC123/1", "in /tmp/tritonpy-x1y2/1"),
        ("ipv4:127.0.0.1:8000", "ipv4:127.0.0.1:51234"),
        (f"At:\n{API_FRAME}{MODEL_FRAME}", f"At:\n{OWN_FRAME}{MODEL_FRAME}"),
        (
            "f(): The following argument types are supported:\n    1. (a: str)\n\nInvoked with: 7\n\nAt:\n",
            "f(): The following argument types are supported:\n    1. (a: text)\n\nInvoked with: seven\n\nAt:\n",
        ),
        ({"ns": 1, "count": 2}, {"ns": 99, "count": 2}),
    ],
)
def test_volatile_values_are_ignored(one, other):
    assert normalized([one]) == normalized([other])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Invoked with: 7", "Invoked with: 8"),
        (f"At:\n{MODEL_FRAME}", f"At:\n{MODEL_FRAME}{MODEL_FRAME}"),
        (
            "f(): The following argument types are supported:\n1\n\nInvoked with: 7",
            "g(): The following argument types are supported:\n1\n\nInvoked with: 7",
        ),
        ({"count": 1}, {"count": 2}),
        (1, 2),
        ("port 8000", "port 8001"),
    ],
)
def test_other_values_are_compared(one, other):
    assert normalized([one]) != normalized([other])
