from __future__ import annotations

import msgspec
import pytest

from tritonpy_backend_trt.options import TensorRtOptions


def test_options_have_the_names_that_triton_gives_them():
    found = msgspec.convert(
        {
            "coalesce-request-input": True,
            "execution-policy": "BLOCKING",
            "plugins": "a.so;b.so",
            "version-compatible": True,
        },
        TensorRtOptions,
    )
    assert (found.coalesce_request_input, found.execution_policy, found.plugins, found.version_compatible) == (
        True, "BLOCKING", "a.so;b.so", True,
    )  # fmt: skip


def test_an_unknown_policy_is_refused():
    with pytest.raises(msgspec.ValidationError, match="SOON"):
        msgspec.convert({"execution-policy": "SOON"}, TensorRtOptions)
