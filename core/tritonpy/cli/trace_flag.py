"""Parsing of `--trace-config` and the deprecated trace flags."""

from __future__ import annotations

_FORM = "--trace-config option format is '<trace mode>,<setting>=<value>'. Got {}"
_LEVELS = {
    "off": "OFF",
    "false": "OFF",
    "on": "TIMESTAMPS",
    "true": "TIMESTAMPS",
    "min": "TIMESTAMPS",
    "max": "TIMESTAMPS",
    "timestamps": "TIMESTAMPS",
    "tensors": "TENSORS",
}


def trace_level(text: str) -> str:
    """Return the name of a trace level. Raises ValueError with Triton's text."""
    try:
        return _LEVELS[text.lower()]
    except KeyError:
        raise ValueError(f"invalid value for trace level option: {text}") from None


def trace_setting(text: str) -> tuple[str, str, str]:
    """Return mode ("" for all modes), setting and value of `[mode,]setting=value`.

    Raises ValueError with Triton's text.
    """
    head, equals, value = text.partition("=")
    mode, comma, key = head.partition(",")
    if comma and not mode:
        raise ValueError(
            "No trace mode specified. --trace-config option format is <trace mode>,<setting>=<value> or "
            f"<setting>=<value>. Got {text}"
        )
    if not comma:
        mode, key = "", head
    if not equals or not key or not value:
        raise ValueError(_FORM.format(text))
    if not mode and key == "level":
        value = trace_level(value)
    if not mode and key == "mode":
        value = value.lower()
    return mode.lower(), key, value
