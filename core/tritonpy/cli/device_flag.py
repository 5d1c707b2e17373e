"""Parsing of flags for one GPU: `<gpu>:<value>`."""

from __future__ import annotations

from tritonpy.cli.flag import Parse, integer


def device_setting(parse: Parse) -> Parse:
    """Return a parser for `<gpu>:<value>` that returns ("", GPU, value); `parse` reads the value.

    The parser raises ValueError with Triton's text.
    """

    def read(text: str) -> tuple[str, str, object]:
        device, colon, value = text.partition(":")
        if not colon:
            raise ValueError(
                "Cannot parse pair option due to incorrect number of inputs."
                f"--<pair option> argument requires format <first>:<second>. Found: {text}"
            )
        return "", str(integer(device)), parse(value)

    return read
