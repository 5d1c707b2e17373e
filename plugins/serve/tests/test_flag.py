from __future__ import annotations

import pytest

from tritonpy_serve.flag import (
    Flag,
    Status,
    at_least_one,
    boolean,
    choice,
    integer,
    integer_or_boolean,
    not_empty,
    not_negative,
    number,
    positive,
    setting,
    within,
)


@pytest.mark.parametrize("text", ["true", "on", "1", "TRUE", "On"])
def test_true_has_tritons_spellings(text):
    assert boolean(text) is True


@pytest.mark.parametrize("text", ["false", "off", "0", "False"])
def test_false_has_tritons_spellings(text):
    assert boolean(text) is False


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (integer, "-3", -3),
        (number, "1.5", 1.5),
        (integer_or_boolean, "true", 1),
        (integer_or_boolean, "3", 3),
        (not_negative, "-3", 0),
        (at_least_one, "0", 1),
        (choice("m", "none", "poll"), "POLL", "poll"),
        (within("m", 2, 128), "2", 2),
        (setting("backend-config", "backend"), "onnx,a=b=c,d", ("onnx", "a", "b=c,d")),
        (setting("backend-config", "backend"), "a=b", ("", "a", "b")),
        (setting("metrics-config"), "a=b", ("", "a", "b")),
    ],
)
def test_texts_become_values(parse, text, value):
    assert parse(text) == value


@pytest.mark.parametrize(
    ("parse", "text", "expected"),
    [
        (boolean, "maybe", "invalid value for bool option: maybe"),
        (integer, "abc", "Invalid option value. Got abc"),
        (number, "abc", "Invalid option value. Got abc"),
        (choice("model-control-mode", "none"), "bad", "invalid argument for --model-control-mode"),
        (
            choice("log-format", "ISO8601", fold=False),
            "iso8601",
            "invalid argument for --log-format",
        ),
        (not_empty("model-config-name"), "", "Error: empty argument for --model-config-name"),
        (
            positive("http-max-input-size"),
            "0",
            "Error: --http-max-input-size must be greater than 0.",
        ),
        (within("n", 2, 128), "1", "invalid argument for --n. Must be in the range 2 to 128."),
        (
            setting("backend-config", "backend"),
            "x",
            "option format is '<backend name>,<setting>=<value>'. Got x",
        ),
        (setting("backend-config", "backend"), ",a=b", "Got ,a=b"),
        (
            setting("metrics-config"),
            "x,a=b",
            "--metrics-config option format is '<setting>=<value>'. Got x,a=b",
        ),
        (
            setting("cache-config", "cache", required=True),
            "a=b",
            "No cache specified. --cache-config option format is",
        ),
    ],
)
def test_bad_texts_are_refused_in_tritons_words(parse, text, expected):
    with pytest.raises(ValueError) as caught:
        parse(text)
    assert expected in str(caught.value)


def test_a_flag_describes_its_status():
    assert Flag("a", "G", integer, "Help.", path="b.c").meaning() == "implemented: b.c"
    ineffective = Flag("a", "G", integer, "Help.", Status.NO_EFFECT, note="one loop")
    assert ineffective.meaning() == "no effect: one loop"
