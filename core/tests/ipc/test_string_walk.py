"""The walk over the elements of a BYTES input."""

from __future__ import annotations

import numpy as np
import pytest

from tritonpy.ipc.string_walk import Refusal, string_refusal
from tritonpy.types import encode_strings

WORDS = [b"", b"a", b"bcd"]


def test_a_buffer_that_holds_its_elements_is_not_refused() -> None:
    assert string_refusal(encode_strings(WORDS), 3, "IN", "m") is None
    assert string_refusal(np.zeros(0, np.uint8), 0, "IN", "m") is None


@pytest.mark.parametrize(
    ("data", "count", "said"),
    [
        (encode_strings(WORDS), 4, "expected 4 string elements for inference input 'IN' for model 'm', got 3"),
        (
            encode_strings(WORDS),
            2,
            "unexpected number of string elements 3 for inference input 'IN' for model 'm', expecting 2",
        ),
        (
            encode_strings(WORDS)[:-1],
            3,
            "incomplete string data for inference input 'IN', expecting string of length 3",
        ),
        (encode_strings(WORDS)[:10], 3, "expecting 4 bytes but only 1 bytes available"),
    ],
)
def test_what_is_wrong_is_said_in_tritons_words(data, count: int, said: str) -> None:
    refusal = string_refusal(data, count, "IN", "m")
    assert refusal is not None
    assert said in refusal.text


def test_the_text_for_a_client_begins_with_its_requests_id_where_tritons_does() -> None:
    assert Refusal("no").said_to("7") == "[request id: 7] no"
    assert Refusal("no").said_to("") == "[request id: <id_unknown>] no"
    assert Refusal("no", with_id=False).said_to("7") == "no"
