from __future__ import annotations

import json
from json import encoder

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy.ipc import extras as module
from tritonpy.ipc.extras import read_extras, write_extras

NUMBERS = st.integers() | st.floats(allow_nan=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=9,
)
EXTRAS = st.dictionaries(st.text(max_size=3), VALUES, max_size=3)


@given(EXTRAS, st.integers(0, 15))
def test_what_is_written_is_read_again_blanks_after_it_or_not(extras: dict, blanks: int) -> None:
    text = write_extras(extras)
    assert text == json.dumps(extras, separators=(",", ":"))
    assert read_extras(text.encode() + b" " * blanks) == extras


def test_an_interpreter_without_the_encoder_in_c_writes_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder, "c_make_encoder", None)
    said = {"ids": ["", "ä"], "errors": {1: [13, "x\n"]}, "never": float("inf")}
    assert module._writer()(said) == write_extras(said)


def test_what_json_does_not_know_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="bytes is not JSON serializable"):
        write_extras({"id": b"7"})


@pytest.mark.parametrize("text", [b'{"a":1}}', b"{} {}", b'{"a":1}\0'])
def test_more_than_blanks_after_the_text_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match="there is more after"):
        read_extras(text)
