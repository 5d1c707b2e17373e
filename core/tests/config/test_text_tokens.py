from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy.config.text_tokens import TokenKind, tokens


def shape(text: str) -> list[tuple[str, str]]:
    return [(token.kind.name, token.text) for token in tokens(text)[:-1]]


def test_every_kind_of_token_is_recognized() -> None:
    assert shape("""dims: [ -1, 0x1F ] # all\nname: 'a"b'""") == [
        ("WORD", "dims"), ("MARK", ":"), ("MARK", "["), ("NUMBER", "-1"), ("MARK", ","), ("NUMBER", "0x1F"), ("MARK", "]"),
        ("WORD", "name"), ("MARK", ":"), ("STRING", "'a\"b'"),
    ]  # fmt: skip


@pytest.mark.parametrize("number", ["1", "-1", "1.5", ".5", "1e-5", "1.5E+3f", "-inf", "0777", "1_0"])
def test_a_number_is_one_token(number: str) -> None:
    assert shape(number) == [("NUMBER", number)]


@pytest.mark.parametrize("bad", ['"abc', "'a\\'", "@", "\N{NO-BREAK SPACE}"])
def test_an_invalid_token_is_bad(bad: str) -> None:
    assert shape(bad) == [("BAD", bad)]


def test_positions_count_lines_and_characters_from_one() -> None:
    found = tokens('# comment\n\tname:\n  "é" x')
    assert [token.position for token in found] == [(2, 2), (2, 6), (3, 3), (3, 7), (3, 8)]
    assert found[-1].kind is TokenKind.END


@given(st.text())
def test_any_text_has_an_end_and_tokens_in_order(text: str) -> None:
    found = tokens(text)
    assert found[-1].kind is TokenKind.END
    assert [token.position for token in found] == sorted(token.position for token in found)
    lines = text.split("\n")
    for token in found[:-1]:
        assert lines[token.position.line - 1][token.position.column - 1 :].startswith(token.text)
