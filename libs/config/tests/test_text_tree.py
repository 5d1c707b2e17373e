from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy_config.text_tree import (
    MAX_DEPTH,
    MessageBlock,
    Scalar,
    TokenKind,
    parse,
    tokens,
)


def problems(text: str) -> list[str]:
    return [str(problem) for problem in parse(text)[1]]


def test_a_tree_has_fields_blocks_lists_and_scalars() -> None:
    fields, found = parse('a: 1; b < c: "x" "y" >, d: [ {}, z ]')
    assert not found
    assert [(field.name, field.colon, field.listed) for field in fields] == [
        ("a", True, False), ("b", False, False), ("d", True, True),
    ]  # fmt: skip
    block = fields[1].values[0]
    assert isinstance(block, MessageBlock)
    inner = block.fields[0].values[0]
    assert isinstance(inner, Scalar)
    assert inner.pieces == ('"x"', '"y"')
    assert [type(value) for value in fields[2].values] == [MessageBlock, Scalar]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a 1", ["line 1, column 3: expected ':' or '{' after 'a', got '1'"]),
        ("a: 1 : 2\nb: 3", ["line 1, column 6: expected the name of a field, got ':'"]),
        ("a:\nb: 3", ["line 2, column 1: expected a value after 'a', got 'b'"]),
        ("a: }\nb: 3", ["line 1, column 4: expected a value after 'a', got '}'", "line 1, column 4: unexpected '}'"]),
        ("a: [1 2]\nb: 3", ["line 1, column 7: expected ',' or ']' before '2'"]),
        ("a: [{} {}]", ["line 1, column 8: expected ',' or ']' before '{'"]),
        ("a: [1,]\nb: 3", ["line 1, column 7: expected a value after ',', got ']'"]),
        ("a: [1\nb: 3", ["line 1, column 4: '[' is never closed"]),
        ("a { b { c: 1 }", ["line 1, column 3: '{' is never closed"]),
        ("a [ { b: 1 ]\nc: 2", ["line 1, column 5: '{' is never closed"]),
        ('a: "x\nb: 3', ["line 1, column 4: expected a value after 'a', got a string without its closing quote: \"x"]),
        ("a: 1 ]\nb: 2", ["line 1, column 6: unexpected ']'"]),
        ("a: ", ["line 1, column 4: expected a value after 'a', got the end of the text"]),
        ("{ a: 1 }\nb: 2", ["line 1, column 1: expected the name of a field, got '{'"]),
        ("a @\nb ?\n", [
            "line 1, column 3: expected ':' or '{' after 'a', got '@'",
            "line 2, column 3: expected ':' or '{' after 'b', got '?'",
        ]),
    ],
)  # fmt: skip
def test_a_syntax_error_is_reported_once_and_parsing_continues(
    text: str, expected: list[str]
) -> None:
    assert problems(text) == expected


def test_fields_after_an_error_are_parsed() -> None:
    fields, found = parse("a { x ? }\nb: 1\nc: ]\nd: 2")
    assert len(found) >= 2
    assert [field.name for field in fields] == ["a", "b", "d"]


def test_deep_nesting_is_an_error() -> None:
    assert any(f"deeper than {MAX_DEPTH} levels" in text for text in problems("a {" * 10_000))
    assert any(f"deeper than {MAX_DEPTH} levels" in text for text in problems("a: [{" * 10_000))


@given(st.text(alphabet='ab:{}[]<>,;"1 \n#\\'))
def test_any_text_is_parsed_to_its_end(text: str) -> None:
    parse(text)


def shape(text: str) -> list[tuple[str, str]]:
    return [(token.kind.name, token.text) for token in tokens(text)[:-1]]


def test_every_kind_of_token_is_recognized() -> None:
    assert shape("""dims: [ -1, 0x1F ] # all\nname: 'a"b'""") == [
        ("WORD", "dims"), ("MARK", ":"), ("MARK", "["), ("NUMBER", "-1"), ("MARK", ","), ("NUMBER", "0x1F"), ("MARK", "]"),
        ("WORD", "name"), ("MARK", ":"), ("STRING", "'a\"b'"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "number", ["1", "-1", "1.5", ".5", "1e-5", "1.5E+3f", "-inf", "0777", "1_0"]
)
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
