from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy_backend_transformer.stop_strings import StopStrings


def run(pieces, *strings, keep=False):
    stop = StopStrings(strings, keep)
    returned = [stop.feed(piece) for piece in pieces]
    return [*returned, stop.flush()], stop.matched


@pytest.mark.parametrize(
    ("pieces", "strings", "returned", "matched"),
    [
        (["ab", "cd"], (), ["ab", "cd", ""], None),
        (["ab", "cd", "ef"], ("cde",), ["ab", "", "", ""], "cde"),
        (["ab", "cd", "xf"], ("cde",), ["ab", "", "cdxf", ""], None),
        (["ab", "c"], ("cde",), ["ab", "", "c"], None),
        (["xSTOP and more", "again"], ("STOP",), ["x", "", ""], "STOP"),
        (["aab"], ("b", "ab"), ["a", ""], "ab"),
        (["<", "<", "<end>"], ("<end>",), ["", "<", "<", ""], "<end>"),
    ],
)
def test_text_is_held_back_until_it_cannot_be_a_stop_string(pieces, strings, returned, matched):
    assert run(pieces, *strings) == (returned, matched)


def test_a_stop_string_can_be_kept():
    assert run(["a", "b.", "c"], "b.", keep=True) == (["a", "b.", "", ""], "b.")


@given(
    st.lists(st.text("ab", max_size=4)),
    st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=3),
)
def test_the_joined_pieces_are_the_text_before_the_first_match(pieces, strings):
    returned, matched = run(pieces, *strings)
    text = "".join(pieces)
    # The first complete match ends the text, even if a longer string that begins earlier might be
    # completed later.
    ends = [text.find(string) for string in strings if string in text]
    assert (matched is not None) == bool(ends)
    assert text.startswith("".join(returned))
    if matched is None:
        assert "".join(returned) == text
    else:
        assert text[len("".join(returned)) :].startswith(matched)
        assert not any(string in "".join(returned) for string in strings)
