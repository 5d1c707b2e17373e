from __future__ import annotations

import json
from json import encoder

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy_ipc import extras as module
from tritonpy_ipc.extras import read_extras, write_extras

NUMBERS = st.integers() | st.floats(allow_nan=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=9,
)
EXTRAS = st.dictionaries(st.text(max_size=3), VALUES, max_size=3)


@given(EXTRAS, st.integers(0, 15))
def test_encoded_extras_are_decoded_with_or_without_trailing_blanks(
    extras: dict, blanks: int
) -> None:
    text = write_extras(extras)
    assert text == json.dumps(extras, separators=(",", ":"))
    assert read_extras(text.encode() + b" " * blanks) == extras


def test_an_interpreter_without_the_encoder_in_c_writes_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(encoder, "c_make_encoder", None)
    fields = {"ids": ["", "ä"], "errors": {1: [13, "x\n"]}, "never": float("inf")}
    assert module._make_writer()(fields) == write_extras(fields)


def test_a_value_without_a_json_form_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="bytes is not JSON serializable"):
        write_extras({"id": b"7"})


@pytest.mark.parametrize("text", [b'{"a":1}}', b"{} {}", b'{"a":1}\0'])
def test_more_than_blanks_after_the_text_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match="unexpected data after"):
        read_extras(text)
