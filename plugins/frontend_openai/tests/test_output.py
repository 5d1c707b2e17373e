from __future__ import annotations

import pytest
from hypothesis import given, strategies

from tritonpy_frontend_openai.output import (
    CallArguments,
    CallStart,
    FunctionOutput,
    ParsedMessage,
    PlainOutput,
    ReasoningOutput,
    prefix_length,
)


def parse(parser, parts):
    parsed = ParsedMessage()
    for part in parts:
        parsed.add(parser.feed(part))
    parsed.add(parser.finish())
    return "".join(parsed.reasoning), "".join(parsed.content)


@pytest.mark.parametrize(
    ("text", "starts_open", "expected"),
    [
        ("<think>why</think>\n\nthus", False, ("why", "thus")),
        ("\n<think>why</think>thus", False, ("why", "thus")),
        ("no reasoning", False, ("", "no reasoning")),
        ("<thing>", False, ("", "<thing>")),
        ("why</think>thus", True, ("why", "thus")),
        ("why < because", True, ("why < because", "")),
        ("<think>cut off", False, ("cut off", "")),
        ("<thi", False, ("", "<thi")),
        ("", False, ("", "")),
    ],
)
@given(size=strategies.integers(1, 40))
def test_reasoning_is_separated_however_the_text_is_split(text, starts_open, expected, size):
    parts = [text[start : start + size] for start in range(0, len(text), size)]
    assert parse(ReasoningOutput(PlainOutput(), starts_open=starts_open), parts) == expected


def test_reasoning_is_passed_on_while_it_is_generated():
    parser = ReasoningOutput(PlainOutput(), starts_open=False)
    assert [event.text for event in parser.feed("<think>a b</th")] == ["a b"]


def test_a_chosen_function_gets_all_text_as_arguments():
    parser = FunctionOutput("f")
    assert [*parser.feed('{"a"'), *parser.feed(""), *parser.feed(": 1}")] == [
        CallStart(0, "f"),
        CallArguments(0, '{"a"'),
        CallArguments(0, ": 1}"),
    ]


@pytest.mark.parametrize(
    ("text", "mark", "length"),
    [("ab<", "<t>", 1), ("<t", "<t>", 2), ("<t>", "<t>", 0), ("", "x", 0)],
)
def test_the_prefix_of_a_mark_is_measured(text, mark, length):
    assert prefix_length(text, mark) == length
