"""Each parser reports the same calls however the text of the model is split."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies

from tritonpy_frontend_openai.output import CallStart, OutputParser, ParsedMessage
from tritonpy_frontend_openai.tool_calls import PARSERS, JsonArrayCalls

WEATHER = {
    "name": "get_weather",
    "arguments": {"city": 'a "b" {c} \\ [d]', "days": [1, {"x": -2.5}]},
}
TIME = {"name": "get_time", "arguments": {}}


def hermes(*calls):
    return "\n".join(f"<tool_call>\n{json.dumps(call)}\n</tool_call>" for call in calls)


def llama(*calls):
    return "; ".join(
        json.dumps({"name": call["name"], "parameters": call["arguments"]}) for call in calls
    )


def mistral(*calls):
    return "[TOOL_CALLS]" + json.dumps(list(calls))


def mistral_named(*calls):
    return "".join(
        f"[TOOL_CALLS]{call['name']}[ARGS]{json.dumps(call['arguments'])}" for call in calls
    )


def pythonic(*calls):
    written = (
        call["name"] + "(" + ", ".join(f"{k}={v!r}" for k, v in call["arguments"].items()) + ")"
        for call in calls
    )
    return "[" + ", ".join(written) + "]"


FORMATS = {
    "hermes": ("hermes", hermes),
    "llama": ("llama3_json", llama),
    "mistral": ("mistral", mistral),
    "mistral with names": ("mistral", mistral_named),
    "pythonic": ("pythonic", pythonic),
}


def parse(parser: OutputParser, parts) -> ParsedMessage:
    parsed = ParsedMessage()
    for part in parts:
        parsed.add(parser.feed(part))
    parsed.add(parser.finish())
    return parsed


def calls_of(parsed):
    return [{"name": name, "arguments": json.loads("".join(parts))} for name, parts in parsed.calls]


def split(text, cuts):
    ends = sorted({min(cut, len(text)) for cut in cuts} | {len(text)})
    return [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("calls", [[WEATHER], [TIME], [WEATHER, TIME, WEATHER]])
@given(cuts=strategies.lists(strategies.integers(0, 300), max_size=40))
def test_calls_are_found_however_the_text_is_split(format_, calls, cuts):
    name, write = FORMATS[format_]
    parsed = parse(PARSERS[name](), split(write(*calls), cuts))
    assert calls_of(parsed) == calls
    assert "".join(parsed.content).strip() == ""


@pytest.mark.parametrize("format_", FORMATS)
def test_calls_are_found_character_by_character(format_):
    name, write = FORMATS[format_]
    parsed = parse(PARSERS[name](), write(WEATHER, TIME))
    assert calls_of(parsed) == [WEATHER, TIME]


@pytest.mark.parametrize("name", PARSERS)
@pytest.mark.parametrize(
    "text",
    [
        "It is sunny.",
        "[1, 2, 3] is a list",
        '{"answer": 42}',
        "a < b, <tool is not a mark",
        "{} and more",
        "[TOOL but no call",
        "",
        '{"name": 5}',
        "[f(1)]",
        "   ",
    ],
)
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_other_text_is_content(name, text, size):
    parts = [text[start : start + size] for start in range(0, len(text), size)]
    parsed = parse(PARSERS[name](), parts)
    assert parsed.calls == []
    assert "".join(parsed.content).strip() == text.strip()


@pytest.mark.parametrize("name", ["hermes", "mistral"])
def test_text_before_a_call_is_content(name):
    _, write = FORMATS[name]
    parsed = parse(PARSERS[name](), "Let me see. " + write(WEATHER))
    assert "".join(parsed.content).strip() == "Let me see."
    assert calls_of(parsed) == [WEATHER]


@pytest.mark.parametrize("name", ["hermes", "llama3_json", "mistral"])
def test_arguments_are_reported_before_the_call_is_complete(name):
    write = {"hermes": hermes, "llama3_json": llama, "mistral": mistral}[name]
    text = write(WEATHER)
    parsed, parser = ParsedMessage(), PARSERS[name]()
    parsed.add(parser.feed(text[: text.index("days")]))
    assert parsed.calls[0][0] == "get_weather"
    assert "city" in "".join(parsed.calls[0][1])
    assert parser.held_bytes > 0


def test_arguments_before_the_name_wait_for_it():
    parser = PARSERS["hermes"]()
    assert list(parser.feed('<tool_call>{"arguments": {"a": 1}, ')) == []
    events = list(parser.feed('"name": "f"}</tool_call>'))
    assert events[0] == CallStart(0, "f")


def test_arguments_that_are_a_string_are_decoded():
    text = json.dumps({"name": "f", "arguments": json.dumps({"a": 1})})
    parsed = parse(PARSERS["hermes"](), f"<tool_call>{text}</tool_call>")
    assert calls_of(parsed) == [{"name": "f", "arguments": {"a": 1}}]


def test_an_incomplete_call_without_a_name_becomes_content():
    parsed = parse(PARSERS["hermes"](), '<tool_call>{"arg')
    assert "".join(parsed.content) == '{"arg'
    assert parsed.calls == []


def test_a_call_of_unbalanced_braces_reports_what_it_has():
    parsed = parse(PARSERS["hermes"](), '<tool_call>{"name": "f", "arguments": {"a": ')
    assert [name for name, _ in parsed.calls] == ["f"]


def test_a_call_that_breaks_off_is_followed_by_the_next_one():
    text = '<tool_call>{"name": "f", "arguments": {"a": 1}, x}</tool_call>' + hermes(TIME)
    parsed = parse(PARSERS["hermes"](), text)
    assert [(name, "".join(parts)) for name, parts in parsed.calls] == [
        ("f", '{"a": 1}'),
        ("get_time", "{}"),
    ]
    assert "name" not in "".join(parsed.content)


def test_an_array_of_required_calls_is_read():
    text = json.dumps([{"name": "f", "parameters": {"a": [1]}}, {"name": "g", "parameters": {}}])
    parsed = parse(JsonArrayCalls(), text)
    assert calls_of(parsed) == [
        {"name": "f", "arguments": {"a": [1]}},
        {"name": "g", "arguments": {}},
    ]


@pytest.mark.parametrize("name", PARSERS)
@given(
    text=strategies.text(alphabet='[]{}"\\,:<>|/_ \ntool_callTOOLCALSRGnamerguts()=1', max_size=60)
)
def test_any_text_is_read_without_an_error(name, text):
    for begin in ("", "<tool_call>", "[TOOL_CALLS]", "[f(", '{"name": "f", "arguments": '):
        parse(PARSERS[name](), begin + text)


def test_nested_arrays_are_read_in_linear_time():
    parser = PARSERS["hermes"]()
    parser.feed('<tool_call>{"name": "f", "arguments": ')
    for _ in range(50_000):
        parser.feed("[[")
    assert parser.held_bytes > 100_000


def test_deep_python_expressions_become_content():
    parsed = parse(PARSERS["pythonic"](), ["[f(a=", "(" * 5000, ")" * 5000, ")]"])
    assert parsed.calls == []
    assert isinstance(parsed.content[0], str)
