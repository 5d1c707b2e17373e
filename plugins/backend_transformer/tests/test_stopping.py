from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy_backend_transformer.stopping import StopStrings


def run(pieces, *strings, keep=False):
    stop = StopStrings(strings, keep)
    told = [stop.feed(piece) for piece in pieces]
    return [*told, stop.flush()], stop.matched


@pytest.mark.parametrize(
    ("pieces", "strings", "told", "matched"),
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
def test_text_is_held_back_until_it_cannot_be_a_stop_string(pieces, strings, told, matched):
    assert run(pieces, *strings) == (told, matched)


def test_a_stop_string_may_be_part_of_the_text():
    assert run(["a", "b.", "c"], "b.", keep=True) == (["a", "b.", "", ""], "b.")


@given(st.lists(st.text("ab", max_size=4)), st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=3))
def test_pieces_joined_are_the_text_before_the_first_match(pieces, strings):
    told, matched = run(pieces, *strings)
    whole = "".join(pieces)
    # What is found first ends the text, though a longer string that begins earlier might have been completed later.
    ends = [whole.find(string) for string in strings if string in whole]
    assert (matched is not None) == bool(ends)
    assert whole.startswith("".join(told))
    if matched is None:
        assert "".join(told) == whole
    else:
        assert whole[len("".join(told)) :].startswith(matched)
        assert not any(string in "".join(told) for string in strings)
