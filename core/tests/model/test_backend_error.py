from __future__ import annotations

import pytest

from tritonpy.errors import Cancelled, FailureReason, Internal, InvalidArgument, TritonError
from tritonpy.model.backend_error import backend_error


@pytest.mark.parametrize(
    ("raised", "kind", "text", "reason"),
    [
        (ValueError("bad"), Internal, "bad", FailureReason.BACKEND),
        (KeyError(), Internal, "KeyError", FailureReason.BACKEND),
        (InvalidArgument("no such class"), InvalidArgument, "no such class", FailureReason.BACKEND),
        (Cancelled("stopped"), Cancelled, "stopped", FailureReason.CANCELED),
    ],
)
def test_text_and_code_are_the_backend_s_and_so_is_the_failure(
    raised: Exception, kind: type[TritonError], text: str, reason: FailureReason
) -> None:
    error = backend_error(raised)
    assert (type(error), error.message, error.reason) == (kind, text, reason)
