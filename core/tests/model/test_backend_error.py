from __future__ import annotations

import pytest

from tritonpy.errors import Cancelled, FailureReason, Internal, InvalidArgument, TritonError
from tritonpy.model.backend_error import backend_error


class Unprintable(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


@pytest.mark.parametrize(
    ("raised", "kind", "text", "reason"),
    [
        (ValueError("bad"), Internal, "ValueError: bad", FailureReason.BACKEND),
        (KeyError("XX"), Internal, "KeyError: 'XX'", FailureReason.BACKEND),
        (KeyError(), Internal, "KeyError", FailureReason.BACKEND),
        (Unprintable(), Internal, "Unprintable", FailureReason.BACKEND),
        (SystemExit(3), Internal, "SystemExit: 3", FailureReason.BACKEND),
        (InvalidArgument("no such class"), InvalidArgument, "no such class", FailureReason.BACKEND),
        (Cancelled("stopped"), Cancelled, "stopped", FailureReason.CANCELED),
    ],
)
def test_backend_errors_keep_code_and_text_or_name_their_type(
    raised: Exception, kind: type[TritonError], text: str, reason: FailureReason
) -> None:
    error = backend_error(raised)
    assert (type(error), error.message, error.reason) == (kind, text, reason)
